"""`peergate policy prove`: what holds of policies for every request and every store."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.cli.exits import DIFFERENCE, DONE, USAGE, CommandError
from gateway.cli.output import bold, counted, print_json, print_prose, progress
from gateway.cli.policy.verb import add_folder, add_verb, folder_of
from gateway.policy.cases import expand
from gateway.policy.finding import PolicyError
from gateway.policy.folder import find
from gateway.policy.prove.schema import Unprovable

if TYPE_CHECKING:  # a proof needs an extra, and no other command pays for it
    from gateway.policy.bundle import Bundle
    from gateway.policy.prove.invariants import Invariant
    from gateway.policy.prove.proof import Proof

UNPROVED = 4
EXITS = (
    "0 proved, 1 the policies do not load, 3 a counterexample, 4 neither: the solver is not installed, or what is outside of "
    "the encoding is named"
)
WORDS = {"proved": "proved", "refuted": "REFUTED", "open": "NOT PROVED"}


def add_verbs(verbs: Any) -> None:
    """Put `prove` into the parser of `policy`."""
    prove = add_verb(
        verbs,
        "prove",
        _prove,
        "prove what holds for every request and every store, or print a case that shows it does not",
        about="Needs the extra `prove`. Where a sentence would hold whatever else is permitted, the answer says so.",
        examples=(
            "prove",
            "prove --invariant observers",
            "prove --never my_rules.cedar",
            "prove --dir candidate --implies policies",
        ),
        exits=EXITS,
    )
    add_folder(prove)
    what = prove.add_mutually_exclusive_group()
    what.add_argument("--invariant", action="append", metavar="NAME", help="only this invariant; may be given again")
    what.add_argument("--never", type=Path, metavar="FILE", help="forbids of your own, of which none may ever be needed")
    what.add_argument("--implies", type=Path, metavar="CURRENT", help="that the folder grants nothing that this one does not")
    what.add_argument("--equivalent", type=Path, metavar="OTHER", help="that both folders allow the same")


def _prove(given: argparse.Namespace) -> int:
    require()
    from gateway.policy.prove import proof
    from gateway.policy.prove.invariants import INVARIANTS, Invariant

    bundle = folder_of(given).bundle()
    names = [invariant.name for invariant in INVARIANTS]
    if unknown := sorted(set(given.invariant or ()) - set(names)):
        raise CommandError(f"`--invariant` is one of {', '.join(names)}, got `{unknown[0]}`", USAGE)
    with _reach(), progress("prove") as shown:
        if given.implies is not None:
            return _told(given, [proof.implies(bundle, find(given.implies).bundle(), progress=shown)])
        if given.equivalent is not None:
            return _told(given, [proof.equivalent(bundle, find(given.equivalent).bundle(), progress=shown)])
        wanted: Sequence[Invariant] = [i for i in INVARIANTS if not given.invariant or i.name in given.invariant]
        if given.never is not None:
            own = Invariant(given.never.stem, f"No forbid of {given.never.name} is ever needed.", given.never.read_text("utf-8"))
            wanted = [_checked(own, bundle)]
        proofs = proof.prove(bundle, wanted, progress=shown)
    return _told(given, proofs)


def _checked(own: Invariant, bundle: Bundle) -> Invariant:
    try:
        own.bound(bundle)
    except PolicyError as wrong:
        raise CommandError(f"`--never` holds no forbids of this schema: {wrong}", USAGE) from wrong
    return own


@contextmanager
def _reach() -> Iterator[None]:
    try:
        yield
    except Unprovable as outside:
        raise CommandError(f"not reached: {outside}", UNPROVED) from outside


def require() -> None:
    """Refuses to go on without the solver."""
    if find_spec("z3") is None:
        raise CommandError("proofs need the solver: pip install '.[prove]' in the checkout, or 'peergate[prove]'", UNPROVED)


def _told(given: argparse.Namespace, proofs: Sequence[Proof]) -> int:
    if given.json:
        print_json({"proofs": [proof_json(proof) for proof in proofs]})
    else:
        for proof in proofs:
            print_proof(proof)
            print_counterexample(proof)
    return code_of(*proofs)


def code_of(*proofs: Proof) -> int:
    """The exit code of some proofs: that of the worst."""
    found = {proof.status for proof in proofs}
    return DIFFERENCE if "refuted" in found else UNPROVED if "open" in found else DONE


def proof_json(proof: Proof) -> dict[str, object]:
    """A proof for scripts."""
    shown = {name: getattr(proof, name) for name in ("claim", "sentence", "status", "questions", "whatever", "assumed", "open")}
    found = proof.counterexample
    return {**shown, "counterexample": found and {"confirmed": found.confirmed, "said": found.said, "case": expand(found.case)}}


def print_proof(proof: Proof) -> None:
    """What became of a claim, without its counterexample."""
    held = ", whatever else is permitted" if proof.whatever else ""
    print(bold(f"{WORDS[proof.status]}  {proof.claim}"))
    print_prose(f"    {proof.sentence}\n    {counted(proof.questions, 'kind')} of question{held}")
    for assumed in proof.assumed:
        print_prose(f"    taken to answer anything: {assumed}")
    for why in proof.open:
        print_prose(f"    not reached: {why}")


def print_counterexample(proof: Proof) -> None:
    """The case that breaks a claim, if there is one, as a file of cases."""
    if (found := proof.counterexample) is None:
        return
    if not found.confirmed:
        print_prose(bold("    THE ENGINE DISAGREES WITH THE ENCODING. Trust the engine, and report this case:"))
    print_json([expand(found.case)])
