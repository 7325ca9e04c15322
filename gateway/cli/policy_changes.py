"""`peergate policy changes`: that new policies differ from old ones only where it is said, and what is known of that."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.cli.exits import USAGE, CommandError
from gateway.cli.opening import find_settings, opened, refusals
from gateway.cli.output import counted, print_json, print_prose, progress
from gateway.cli.policy.verb import add_old, add_verb, old_of
from gateway.cli.policy_prove import EXITS, code_of, print_counterexample, print_proof, proof_json, require
from gateway.operations.fields import Fields
from gateway.operations.replay import redecide_data
from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError
from gateway.policy.folder import find
from gateway.policy.redecided import Redecided

if TYPE_CHECKING:  # a proof needs an extra, and no other command pays for it
    from gateway.policy.prove.trial import Standing, Trial

MOST_SAMPLES = 100_000


def add_verbs(verbs: Any) -> None:
    """Put `changes` into the parser of `policy`."""
    changes = add_verb(
        verbs,
        "changes",
        _changes,
        "prove that new policies differ from old ones only where you say, and only narrow there",
        about="CLAIM is a Cedar condition, or a list of actions, principal types and principals. Of a kind of question that no "
        "proof reaches, the cases of the new folder are decided under both, and requests that chance makes of them. With --data "
        "so are the decisions of a stopped gateway, of every kind.",
        examples=(
            "changes candidate --only 'memory.search, memory.read, Connection'",
            "changes policies candidate --only 'principal is Agent && context.clock.weekday > 5' --data ./data",
        ),
        exits=EXITS,
    )
    add_old(changes)
    changes.add_argument("new", metavar="NEW", type=Path, help="the folder that might")
    changes.add_argument("--only", metavar="CLAIM", required=True, help="where they may differ")
    changes.add_argument("--data", metavar="DIR", help="decide what this data directory has recorded again under both")
    changes.add_argument("--since", metavar="T", help="of that, only what was recorded at this RFC 3339 time or later")
    samples = "requests to make of each kind of question that is not proved (200)"
    changes.add_argument("--samples", metavar="N", type=int, default=200, help=samples)
    changes.add_argument("--seed", metavar="N", type=int, default=0, help="what makes the same requests again (0)")


def _changes(given: argparse.Namespace) -> int:
    require()
    from gateway.policy.prove import claim, proof, trial

    if not 0 <= given.samples <= MOST_SAMPLES:
        raise CommandError(f"`--samples` is from 0 to {MOST_SAMPLES}", USAGE)
    old, folder = old_of(given).bundle(), find(given.new)
    new = folder.bundle()
    try:
        only = claim.read(old, given.only)
    except PolicyError as wrong:
        raise CommandError(
            f"`--only` is no condition of the schema, and no list of its actions and principals: {wrong}", USAGE
        ) from wrong
    log = _log(given, old, new, only)
    with progress("changes") as shown:
        proved = proof.changes(old, new, only, progress=shown)
        tried = trial.tried(proved, old, new, only, folder.cases(), log=log, samples=given.samples, seed=given.seed)
    if given.json:
        print_json({"proofs": [{**proof_json(tried.proof), "kinds": [_kind(one) for one in tried.standings]}], **_left(log)})
    else:
        _print(tried, log)
    return code_of(tried.proof)


def _log(given: argparse.Namespace, old: Bundle, new: Bundle, only: Bundle) -> Redecided | None:
    if given.data is None:
        if given.since is not None:
            raise CommandError("`--since` is of a log: `--data` is missing", USAGE)
        return None
    with refusals():
        since = Fields({"--since": given.since}).optional_timestamp("--since")
    with opened(find_settings({"data": given.data})) as services, progress("replaying") as shown:
        return asyncio.run(redecide_data(services, old, new, only, since=since, progress=shown))


def _kind(standing: Standing) -> dict[str, object]:
    counts = {name: value for name, value in asdict(standing).items() if name != "question"}
    return {**asdict(standing.question), **counts}


def _left(log: Redecided | None) -> dict[str, object]:
    return {"left_out": log and dict(log.left_out)}


def _print(tried: Trial, log: Redecided | None) -> None:
    print_proof(tried.proof)
    if tried.proof.status != "refuted":
        for about, who in _alike(tried, log):
            print_prose(f"    {', '.join(who)} {about}")
        for unknown in _unknown(tried, log):
            print_prose(f"    NOT KNOWN: {unknown}")
    print_counterexample(tried.proof)


def _alike(tried: Trial, log: Redecided | None) -> Iterator[tuple[str, list[str]]]:
    """Yields what is known of some kinds of question, and the principals of which it is."""
    told = [(f"{one.question.action} {one.question.resource}: {_known(one, log)}", one) for one in tried.standings]
    for about, alike in groupby(sorted(told, key=lambda pair: pair[0]), key=lambda pair: pair[0]):
        yield about, [one.question.principal for _, one in alike]


def _known(one: Standing, log: Redecided | None) -> str:
    counts = [] if log is None else [f"replayed {counted(one.replayed, 'decision')}"]
    if not one.proved:
        counts += [f"tried {counted(one.cases, 'case')}", f"sampled {counted(one.sampled, 'request')}"]
    return "; ".join(("proved" if one.proved else "not proved", *counts))


def _unknown(tried: Trial, log: Redecided | None) -> Iterator[str]:
    if open_ := sum(not one.proved for one in tried.standings):
        yield f"the other answers to {counted(open_, 'kind')} of question: nothing that was asked of them breaks the claim"
    if tried.proof.status == "open" and not tried.proof.reached:
        yield "any kind of question that no case is of and no recorded decision"
    if never := [one for one in tried.standings if not (one.proved or one.replayed or one.cases or one.sampled)]:
        yield f"anything of {len(never)} of them, of which nothing could be asked"
    if listings := sum(one.listings for one in tried.standings if not one.proved):
        yield f"which rows {counted(listings, 'recorded listing')} would show, under another condition"
    for why, count in (log.left_out if log is not None else {}).items():
        if count:
            yield f"{counted(count, 'recorded decision')} ({why}), not taken again"
