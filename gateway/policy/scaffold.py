"""Scaffold: what a policy begins with: one that does nothing yet, and cases that say so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import cedarpy

from gateway.model.entity import EntityUid
from gateway.policy.bundle import Bundle
from gateway.policy.cases import SUFFIX, Case
from gateway.policy.value import uid_json
from gateway.policy.vocabulary import Kind, Vocabulary

POLICY = """@id("{path}/example")
@reason("Say in one sentence who does this, and when.")
permit (principal is {principal}, action == Action::"{action}", resource is {resource}) when {{ false }};
"""
FORBID = """@id("{id}")
@reason("Say in one sentence who is refused, and when.")
forbid (principal, action == Action::"{action}", resource is {resource}) unless {{ true }};
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


def narrowing(bundle: Bundle, action: str, name: str, cases: Iterable[Case]) -> tuple[str, list[dict[str, object]]]:
    """Returns a forbid that stands beside the policies of an action, and its cases; raises `KeyError` as `scaffold` does.

    The cases ask what the first of the action's own that is allowed asks: the first of them expects that the forbid refuses
    it, and fails until its condition is written; the second that nothing changes. Where none is allowed there are no cases.
    """
    id_ = f"{action.replace('.', '/')}/{name}"
    [resource, *_] = sorted(bundle.vocabulary.resources[action])
    text = cedarpy.format_policies(FORBID.format(id=id_, action=action, resource=resource))
    allowed = [case for case in cases if case.action == action and case.decision == "allow"]
    own = f"{action.replace('.', '/')}{SUFFIX}"
    if not allowed:
        return text, []
    like = min(allowed, key=lambda case: case.file != own)  # of its own file, where there is one
    asked = {key: value for key, value in like.raw.items() if key not in ("description", "control")}
    refused = {"decision": "deny", "reason": [id_], "reason_exact": True, "num_errors": 0, "deny_kind": "forbidden"}
    return text, [
        asked | {"name": f"{action}: say who is refused by {name}"} | refused,
        asked | {"name": f"{action}: say who is not refused by {name}"},
    ]


def appended(text: str, cases: Iterable[Mapping[str, object]]) -> str:
    """Returns a file of cases with more at its end; what is there stays as it is written."""
    begun = text.rstrip().removesuffix("]").rstrip()
    return begun + ("\n" if begun == "[" else ",\n") + _laid_out(cases).removeprefix("[\n")


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
