"""What is done with the decision log of a stopped gateway: decided again, taken away; and an agent's rules tried on its past."""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from gateway import wiring
from gateway.cli.command import Argument, Command, command
from gateway.cli.exits import DIFFERENCE, DONE, FINDING, CommandError
from gateway.cli.opening import find_settings, opened, refusals
from gateway.cli.output import note, print_fields, print_json, progress
from gateway.cli.own_policy_answers import print_replay
from gateway.config import Settings
from gateway.operations.evidence import take_evidence
from gateway.operations.fields import Fields
from gateway.operations.replay import replay_data, shape
from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError

REPLAY = """Decide everything that a stopped gateway has recorded again, under the policies in a directory, and show who would
gain and who would lose. The directory holds .cedar files, or a directory `policies` that does; the guardrails must be in it.

  peergate policy replay --data ./data --candidate ./policies --since 2030-01-01T00:00:00Z

exit codes: 0 nobody gains, 1 the candidate does not load, 2 bad usage, 3 somebody gains, or is shown rows under another
condition, 4 the store refuses to open."""
EVIDENCE = """Write what was recorded since a time into a new directory: the chain with its signed head, every decision as a case
of the Cedar CLI, and a verifier that needs only Python. It names agents and people by id.

  peergate evidence --data ./data --out ./evidence --since 2030-01-01T00:00:00Z

exit codes: 0 done, 1 the chain does not hold, or the directory is there already, 2 bad usage, 4 the store refuses to open."""
SINCE = "only what was recorded at this RFC 3339 time or later (default: everything)"

SIMULATE: tuple[Command, ...] = (
    command(
        "approval simulate",
        "POST /v1/agents/{agent_id}/simulate-policy",
        "show what an agent's past requests would have come to under other rules",
        Argument("agent_id", "the agent", "path", required=True, flagged="--agent"),
        Argument("action_approval_policy", "the rules to try, as JSON or @file (its own)", "json", flagged="--policy"),
        Argument("action_type", "also say what would make this action automatic", flagged="--action"),
        Argument("payload", "the payload of that action, as JSON or @file", "json"),
        Argument("declared_risk_tier", "its declared tier: 1, 2 or 3", kind=int, flagged="--risk-tier"),
    ),
)


def add_commands(commands: Any, nouns: dict[str, Any]) -> None:
    """`evidence`, and `policy replay` under the noun that is there."""
    replay = nouns["policy"].add_parser(
        "replay",
        help="decide the decision log again under other policies",
        description=REPLAY,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_argument("--candidate", metavar="DIR", type=Path, required=True, help="the policies to try")
    _opens_data(replay).set_defaults(run=_replay)
    evidence = commands.add_parser(
        "evidence",
        help="write the decision log as evidence that anybody can check",
        description=EVIDENCE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    evidence.add_argument("--out", metavar="DIR", type=Path, required=True, help="the new directory; an existing one is refused")
    _opens_data(evidence).set_defaults(run=_evidence)


def _opens_data(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--since", metavar="T", help=SINCE)
    parser.add_argument("--data", metavar="DIR", help="the data directory (default: PEERGATE_DATA)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _replay(given: argparse.Namespace) -> int:
    with refusals():
        since = Fields({"--since": given.since}).optional_timestamp("--since")
    settings = find_settings({"data": given.data})
    candidate = _candidate(settings, given.candidate)
    with opened(settings) as services, progress("replaying") as shown:
        report = asyncio.run(replay_data(services, candidate, since=since, progress=shown))
    made = shape(report)
    if given.json:
        print_json(made)
    else:
        print_replay(made)
    return DIFFERENCE if report.opens else DONE


def _candidate(settings: Settings, directory: Path) -> Bundle:
    inside = directory / "policies"
    with refusals():
        try:
            return wiring.load_bundle(replace(settings, policies=inside if inside.is_dir() else directory))
        except PolicyError as wrong:
            raise CommandError(f"the candidate does not load:\n{wrong}", FINDING) from wrong


def _evidence(given: argparse.Namespace) -> int:
    with refusals():
        since = Fields({"--since": given.since}).optional_timestamp("--since")
    with opened(find_settings({"data": given.data})) as services, progress("writing") as shown:
        made = asyncio.run(take_evidence(services, given.out, since=since, progress=shown))
    (print_json if given.json else print_fields)(made)
    if not made["rows"]:
        note(f"nothing was recorded since {given.since}: there are 0 rows in it")
    return DONE if made["chain_holds"] else FINDING
