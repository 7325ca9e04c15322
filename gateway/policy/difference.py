"""The difference between two policy sets, policy by policy, and whether it could let anybody do more.

What is compared is what is written, not every request: a change counts as harmless only where scopes and conjuncts show it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from gateway.policy.bundle import SCHEMA, Bundle
from gateway.policy.idle import covers
from gateway.policy.source import PolicyInfo

Kind = Literal["added", "removed", "widened", "narrowed", "changed", "reworded"]


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one policy; `policy_id` and `effect` are empty for the schema.

    `widened` and `narrowed` are of where the policy applies, `reworded` leaves that alone, `changed` is whatever is none of
    them. `opens` is whether the change could allow what was denied. `text` is a unified diff.
    """

    kind: Kind
    policy_id: str
    effect: str
    file: str
    line: int
    opens: bool
    text: str


def difference(old: Bundle, new: Bundle) -> Iterator[Change]:
    """Yields each change from one policy set to another, the schema first, then by id."""
    if old.schema_text != new.schema_text:
        yield Change("changed", "", "", SCHEMA, 0, True, _diff(old.schema_text, new.schema_text))
    for id_ in sorted(old.policies.keys() | new.policies.keys()):
        before, after = old.policies.get(id_), new.policies.get(id_)
        if before is None and after is not None:
            yield _change("added", after, opens=after.effect == "permit", before="", after=after.text)
        elif after is None and before is not None:
            yield _change("removed", before, opens=before.effect == "forbid", before=before.text, after="")
        elif before is not None and after is not None and before.text != after.text:
            kind = _kind(old, new, id_)
            harmless = {"reworded", "narrowed" if after.effect == "permit" else "widened"}
            yield _change(kind, after, opens=kind not in harmless, before=before.text, after=after.text)


def _kind(old: Bundle, new: Bundle, id_: str) -> Kind:
    before, after = old.trees[id_], new.trees[id_]
    if before.effect != after.effect:
        return "changed"
    groups = new.types.groups
    wider, narrower = covers(after, before, groups), covers(before, after, groups)
    if wider and narrower:
        return "reworded"
    return "widened" if wider else "narrowed" if narrower else "changed"


def _change(kind: Kind, info: PolicyInfo, *, opens: bool, before: str, after: str) -> Change:
    return Change(kind, info.id, info.effect, info.file, info.line, opens, _diff(before, after))


def _diff(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "old", "new", lineterm="")
    return "\n".join(lines)
