"""What the commands about an organisation's own policies print for people: the text as it is written, and who is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway import wiring
from gateway.cli.command import Asked
from gateway.cli.exits import DIFFERENCE, DONE, FINDING, USAGE, CommandError
from gateway.cli.output import counted, print_fields, print_prose, print_rows
from gateway.policy.folder import find

#: Two names of one thing on the wire, shown as text.
TEXTS = ("cedar_text", "policy_text")
#: What a step has come to, by the state of the newest version.
STANDS = {
    "shadow": "in the shadow: it is asked and decides nothing; `peergate policy shadow-report` says what it would change",
    "enforce": "in force: whatever is asked from now on is decided by it",
}
REPLAYED = ("change", "count", "principal", "action", "resource_type", "before", "now", "samples")


def show_policy(answer: Any, _: Asked) -> None:
    """A policy: its fields, then its text."""
    print_fields({name: value for name, value in answer.items() if name not in TEXTS})
    print_prose(f"\n{answer['cedar_text'].rstrip()}")


def show_step(answer: Any, _: Asked) -> None:
    """What was written, promoted or taken back, without the text that was sent a moment ago."""
    print_fields({name: value for name, value in answer.items() if name not in TEXTS and value is not None})
    print(STANDS[answer["enforcement_status"]])


def show_report(answer: Any, _: Asked) -> None:
    """Of each policy in the shadow, and of the policies on the disk that wait, how often they would have changed an answer,
    and then of whom."""
    rows = [{**policy, **{way: policy[way]["count"] for way in ("gain", "lose")}} for policy in answer["policies"]]
    print_rows(rows, ("policy_id", "name", "version", "since", "gain", "lose", "listings"))
    for policy in answer["policies"]:
        _print_sides(policy, policy["name"])
    if (waiting := answer["directory"]) is not None:
        counts = ", ".join(f"{way} {waiting[way]['count']}" for way in ("gain", "lose"))
        print_prose(f"the directory that waits: {waiting['bundle']}, since {waiting['since']}")
        print_prose(
            f"  {counts}, listings {waiting['listings']}; `peergate admin reload --promote` with that hash lets it decide"
        )
        _print_sides(waiting, "the directory")
    second = f"{counted(answer['asked'], 'decision')} {'was' if answer['asked'] == 1 else 'were'} asked a second time"
    print(f"{second}, {answer['failures']} of them without an answer")


def _print_sides(counts: Mapping[str, Any], by: str) -> None:
    for way, verb in (("gain", "gains"), ("lose", "loses")):
        for who in counts[way]["principals"]:
            print_prose(f"{who['type']} {who['id']} {verb} {who['count']} by {by}")
        if counts[way]["decision_ids"]:
            print_prose(f"  such as decision {', '.join(counts[way]['decision_ids'])}")


def replay_ends(answer: Any, _: Asked) -> int:
    """As `policy replay` ends: with 3 where somebody gains, or is shown rows under another condition."""
    return DIFFERENCE if answer["opens"] else DONE


def asking_ends(answer: Any, asked: Asked) -> int:
    """As `policy explain` ends: with 1 for a denial; what asks for no action of the schema is bad usage."""
    if answer["decision"] == "allow":
        return DONE
    if answer["deny_kind"] == "invalid_request":
        _check_action(asked.given["action"])
    return FINDING


def _check_action(named: str) -> None:
    """The schema is always the shipped one. Read only where the gateway saw no sense in the question."""
    actions = find(wiring.shipped()).bundle().vocabulary.principals
    action = named.removeprefix('Action::"').removesuffix('"')
    if action not in actions:
        near = sorted(known for known in actions if known.partition(".")[0] == action.partition(".")[0])
        hint = f"near it are {', '.join(near)}" if near else "`peergate policy index` lists them"
        raise CommandError(f"`--action`: `{action}` is no action of the schema; {hint}", USAGE)


def show_replay(answer: Any, _: Asked) -> None:
    print_replay(answer)


def print_replay(report: Mapping[str, Any]) -> None:
    """The counts of a replay, then its table."""
    print_fields({name: value for name, value in report.items() if name != "flips"})
    if report["flips"]:
        print()
        print_rows(
            [{**flip, **{name: ", ".join(flip[name]) for name in ("before", "now", "samples")}} for flip in report["flips"]],
            REPLAYED,
        )
