"""A small store for the tests of this room: users of an organisation, and the documents they read."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import cedarpy

from gateway.model.decision import Query
from gateway.model.entity import Entity, EntityUid, Value
from gateway.policy.bundle import Bundle
from gateway.policy.cases import Case, from_json
from gateway.policy.engine import PolicyEngine

SCHEMA = """
entity Org;
entity Group in [Group];
entity User in [Org, Group] = { org: Org, active: Bool, level: Long, nick?: String };
entity Doc in [Org] = {
  org: Org, owner: User, level: Long, price?: decimal, due?: datetime, seen_by?: Set<User>, box?: { name: String },
} tags User;
type Moment = { n?: Long, friend?: User, now?: datetime };
action "write";
action "manage";
action "read" appliesTo { principal: [User], resource: [Doc], context: Moment };
action "edit" in ["write"] appliesTo { principal: [User], resource: [Doc], context: Moment };
action "drop" in ["write", "manage"] appliesTo { principal: [User], resource: [Doc], context: Moment };
action "list" appliesTo { principal: [User], resource: [Doc], context: Moment };
"""
ORG, ANN, DOC = EntityUid("Org", "o"), EntityUid("User", "ann"), EntityUid("Doc", "d")
PERMIT = '@id("all") permit (principal, action, resource);'


def policy(id_: str, text: str) -> str:
    """A policy with the annotations that the house asks for, formatted."""
    return cedarpy.format_policies(f'@id("{id_}") @reason("Because.") {text}')


def an_engine(*policies: str, schema: str = SCHEMA) -> PolicyEngine:
    """An engine over policies that need not keep the house rules."""
    return PolicyEngine(Bundle.from_text(schema, {"store.cedar": "\n".join(policies)}, house_rules=False), salt=b"salt")


def an_org() -> Entity:
    return Entity(ORG)


def a_user(id_: str = "ann", *, level: int = 1, active: bool = True, groups: tuple[str, ...] = ()) -> Entity:
    attrs: dict[str, Value] = {"org": ORG, "active": active, "level": level}
    return Entity(EntityUid("User", id_), attrs, (ORG, *(EntityUid("Group", group) for group in groups)))


def a_doc(id_: str = "d", *, level: int = 1, owner: str = "ann", **attrs: Value) -> Entity:
    values: dict[str, Value] = {"org": ORG, "owner": EntityUid("User", owner), "level": level}
    return Entity(EntityUid("Doc", id_), values | attrs, (ORG,))


def a_group(id_: str, *parents: str) -> Entity:
    return Entity(EntityUid("Group", id_), parents=tuple(EntityUid("Group", parent) for parent in parents))


def a_query(action: str = "read", principal: EntityUid = ANN, resource: EntityUid = DOC, **context: Value) -> Query:
    return Query(principal, action, resource, context)


def uid(type_: str, id_: str) -> dict[str, str]:
    return {"type": type_, "id": id_}


def a_row(type_: str, id_: str, *parents: dict[str, str], **attrs: object) -> dict[str, object]:
    """One entity as Cedar's JSON has it, with nothing checked."""
    return {"uid": uid(type_, id_), "attrs": attrs, "parents": list(parents)}


def bare(
    policies: str | cedarpy.PolicySet,
    rows: list[dict[str, Any]] | cedarpy.Entities,
    context: Mapping[str, Any],
    action: str = "read",
) -> tuple[bool, int]:
    """What cedarpy alone says, used as its own guide has it: is it allowed, and how many errors are there beside."""
    request = {
        "principal": uid("User", "ann"),
        "action": uid("Action", action),
        "resource": uid("Doc", "d"),
        "context": dict(context),
    }
    entities = rows if isinstance(rows, cedarpy.Entities) else cedarpy.Entities.from_json_str(json.dumps(rows), SCHEMA)
    answer = cedarpy.is_authorized(request, policies, entities, SCHEMA)
    return answer.allowed, len(answer.diagnostics.errors)


def in_a_process(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code that may kill its process."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def a_case(action: str = "read", **context: object) -> Case:
    """Ann asks about her document, and is allowed."""
    return from_json(
        {
            "request": {
                "principal": str(ANN), "action": str(EntityUid("Action", action)), "resource": str(DOC), "context": context
            },
            "entities": [
                a_row("Org", "o"),
                a_row("User", "ann", uid("Org", "o"), org=uid("Org", "o"), active=True, level=1),
                a_row("Doc", "d", uid("Org", "o"), org=uid("Org", "o"), owner=uid("User", "ann"), level=1),
            ],
            "decision": "allow", "reason": [], "num_errors": 0,
        }
    )  # fmt: skip
