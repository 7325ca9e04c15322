"""Texts of policies to measure with: the shipped ones, and as many more as are wanted, spread over twenty actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from gateway.policy.files import read_texts
from gateway.policy.text import split
from gateway.wiring import shipped

#: Twenty actions on a peer, so that only the action of a policy tells whether it could match a question about a peer.
ACTIONS = (
    "read", "read_context", "predict", "preview", "ask_me", "read_fact", "edit_fact", "delete_fact", "dispute_fact", "erase",
    "export", "link", "read_observers", "set_observers", "read_pause", "set_pause", "record_event", "delete_event",
    "see_content", "read_suppressions",
)  # fmt: skip
#: What a generated policy looks like, as Cedar formats it: it is about peers of a type that there are none of.
PERMIT = """@id("peer/{action}/bench_{number}")
@reason("Edition {edition}.")
permit (
  principal is Agent,
  action == Action::"peer.{action}",
  resource is Peer
)
when
{{
  principal.active &&
  resource in principal.org &&
  resource.peer_type == "bench_{number}" &&
  !resource.archived
}};
"""
FORBID = """@id("peer/{action}/bench_{number}")
@reason("Edition {edition}.")
forbid (
  principal,
  action == Action::"peer.{action}",
  resource is Peer
)
when {{ resource.peer_type == "bench_{number}" && !resource.archived }};
"""
#: Of so many generated policies the last is a forbid.
ONE_FORBID_IN = 4


def policy_texts(count: int, *, edition: int = 0) -> Mapping[str, str]:
    """`count` policies by file name, as a directory of policies holds them: the shipped ones and generated ones.

    There are never fewer than the shipped ones. The texts keep the house rules; those of two editions differ in each
    generated policy.
    """
    texts = read_texts(shipped() / "policies")
    more = max(0, count - sum(len(split(text)) for text in texts.values()))
    for action, policies in zip(ACTIONS, _spread(more), strict=True):
        file = f"peer/{action}.cedar"
        texts[file] = "\n".join([texts[file], *(_policy(action, number, edition) for number in policies)])
    return texts


def write_policies(directory: Path, count: int, *, edition: int = 0) -> None:
    """Make a directory of policies, without cases, or make it one of another edition."""
    for file, text in policy_texts(count, edition=edition).items():
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def _spread(count: int) -> Iterator[range]:
    """The numbers of each action's policies."""
    return (range(place, count, len(ACTIONS)) for place in range(len(ACTIONS)))


def _policy(action: str, number: int, edition: int) -> str:
    forbids = number // len(ACTIONS) % ONE_FORBID_IN == ONE_FORBID_IN - 1
    return (FORBID if forbids else PERMIT).format(action=action, number=number, edition=edition)
