"""Scaffold: the files that a new action begins with: a permit that permits nothing yet, and cases that say so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import cedarpy

from gateway.model.entity import EntityUid
from gateway.policy.bundle import Bundle
from gateway.policy.value import uid_json
from gateway.policy.vocabulary import Kind, Vocabulary

POLICY = """@id("{path}/example")
@reason("Say in one sentence who does this, and when.")
permit (principal is {principal}, action == Action::"{action}", resource is {resource}) when {{ false }};
"""
ID = "example"
#: A value of each type that means as little as possible.
LEAST: dict[str, object] = {
    "Bool": False,
    "Long": 0,
    "String": "",
    "decimal": {"__extn": {"fn": "decimal", "arg": "0.0"}},
}


def scaffold(bundle: Bundle, action: str, context: dict[str, Any]) -> dict[str, str]:
    """Returns the text of each new file by its path among the policies; raises `KeyError` for an action nobody could ask.

    The first case expects an allow and fails until the permit's condition is written. Attributes whose type is a record,
    a time or a type of a namespace are left for the author.
    """
    [principal, *others] = sorted(bundle.vocabulary.principals[action])
    [resource, *_] = sorted(bundle.vocabulary.resources[action])
    path = action.replace(".", "/")
    text = POLICY.format(path=path, principal=principal, action=action, resource=resource)
    allowed = {"decision": "allow", "reason": [f"{path}/example"]}
    denied = {"decision": "deny", "reason": []}
    asked = (
        (f"{action}: say who does", principal, allowed),
        (f"{action}: say who does not", (*others, principal)[0], denied),
    )
    cases = [
        {
            "name": name,
            "request": {
                "principal": str(EntityUid(who, ID)),
                "action": str(bundle.action_uids[action]),
                "resource": str(EntityUid(resource, ID)),
                "context": context,
            },
            "entities": list(_entities(bundle.vocabulary, (who, resource))),
            **answer,
            "reason_exact": True,
            "num_errors": 0,
        }
        for name, who, answer in asked
    ]
    return {f"{path}.cedar": cedarpy.format_policies(text), f"{path}_test.json": _laid_out(cases)}


def _laid_out(cases: Iterable[Mapping[str, object]]) -> str:
    """Cases as people read them: a line a member, and a line an entity."""
    return "[\n" + ",\n".join(f"  {{\n{_members(case)}\n  }}" for case in cases) + "\n]\n"


def _members(case: Mapping[str, object]) -> str:
    return ",\n".join(f"    {json.dumps(name)}: {_value(value)}" for name, value in case.items())


def _value(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"      {json.dumps(item, ensure_ascii=False)}" for item in value) + "\n    ]"
    return json.dumps(value, ensure_ascii=False)


def _entities(vocabulary: Vocabulary, types: Iterable[str]) -> Iterator[dict[str, object]]:
    """One entity of each type, and of each type that these name, all with one id."""
    waiting, seen = list(types), set[str]()
    while waiting:
        type_ = waiting.pop(0)
        if type_ in seen or (shape := vocabulary.entities.get(type_)) is None:
            continue
        seen.add(type_)
        needed = {name: kind for name, kind in shape.attributes.items() if not kind.optional}
        named = [kind.name for kind in needed.values() if kind.entity and not kind.many]
        # In what an attribute names it is, as rows are in their organisation; in anything else only if the author says so.
        parents = [uid_json(EntityUid(name, ID)) for name in shape.parents if name in named]
        attrs = {name: _least(kind) for name, kind in needed.items() if kind.name}
        yield {"uid": uid_json(EntityUid(type_, ID)), "attrs": attrs, "parents": parents}
        waiting += named


def _least(kind: Kind) -> object:
    if kind.many:
        return []
    return {"__entity": uid_json(EntityUid(kind.name, ID))} if kind.entity else LEAST[kind.name]
