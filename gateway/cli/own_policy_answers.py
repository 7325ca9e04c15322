"""What the commands about an organisation's own policies print for people: the text as it is written, and who is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.cli.command import Asked
from gateway.cli.output import print_fields, print_prose, print_rows

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
    """Of each policy in the shadow how often it would have changed an answer, and then of whom."""
    rows = [{**policy, **{way: policy[way]["count"] for way in ("gain", "lose")}} for policy in answer["policies"]]
    print_rows(rows, ("policy_id", "name", "version", "since", "gain", "lose", "listings"))
    for policy in answer["policies"]:
        for way, verb in (("gain", "gains"), ("lose", "loses")):
            for who in policy[way]["principals"]:
                print_prose(f"{who['type']} {who['id']} {verb} {who['count']} by {policy['name']}")
            if policy[way]["decision_ids"]:
                print_prose(f"  such as decision {', '.join(policy[way]['decision_ids'])}")
    print(f"{answer['asked']} decisions were asked a second time, {answer['failures']} of them without an answer")


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
