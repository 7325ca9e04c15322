"""Partitions: what could match a kind of question is asked, and nothing that could is left out."""

from __future__ import annotations

from collections.abc import Mapping

import cedarpy
from cedarpy import pst
from hypothesis import given
from hypothesis import strategies as st

from gateway.model.decision import Query
from gateway.model.entity import Entity, EntityUid
from gateway.policy import partition
from tests.policy.builders import DOC, an_engine

SCHEMA = """
entity Org;
entity User in [Org];
entity Robot in [Org];
entity Doc in [Org];
entity Note in [Org];
action "any" appliesTo { principal: [User, Robot], resource: [Doc, Note] };
action "read" in ["any"] appliesTo { principal: [User, Robot], resource: [Doc, Note] };
action "edit" in ["any"] appliesTo { principal: [User, Robot], resource: [Doc, Note] };
"""
PRINCIPALS = (
    "principal", "principal is User", "principal is Robot", 'principal == User::"ann"', 'principal == Robot::"ann"',
    'principal in Org::"o"', 'principal is Robot in Org::"o"',
)  # fmt: skip
RESOURCES = ("resource", "resource is Doc", "resource is Note", 'resource == Doc::"d"', 'resource is Note in Org::"o"')
ACTIONS = (
    "action",
    'action == Action::"read"',
    'action == Action::"any"',
    'action in Action::"any"',
    'action in [Action::"edit"]',
)
PARENTS = (EntityUid("Org", "o"),)


@given(
    heads=st.lists(
        st.tuples(st.sampled_from(("permit", "forbid")), *map(st.sampled_from, (PRINCIPALS, ACTIONS, RESOURCES))),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_left_out_changes_no_verdict(heads: list[tuple[str, str, str, str]]) -> None:
    texts = [f'@id("p{n}") {effect} ({", ".join(scopes)});' for n, (effect, *scopes) in enumerate(heads)]
    engine = an_engine(*texts, schema=SCHEMA)
    everything = cedarpy.PolicySet.from_str("\n".join(texts))
    for principal in (EntityUid("User", "ann"), EntityUid("Robot", "ann")):
        for resource in (DOC, EntityUid("Note", "d")):
            entities = [Entity(uid, {}, PARENTS) for uid in (principal, resource)]
            slice = engine.slice(Entity(PARENTS[0]), *entities)
            queries = [Query(principal, action, resource, {}) for action in ("read", "edit")]
            both = engine.decide_together(queries[0], "edit", slice)
            for query, one, together in zip(queries, engine.decide_all(queries, slice), both, strict=True):
                request = {
                    "principal": _uid(query.principal),
                    "action": _uid(EntityUid("Action", query.action)),
                    "resource": _uid(query.resource),
                    "context": {},
                }
                answer = cedarpy.is_authorized(request, everything, slice.handle)
                by_position = {f"policy{n}": f"p{n}" for n in range(len(texts))}
                expected = (answer.allowed, tuple(sorted(by_position[id_] for id_ in answer.diagnostics.reasons)))
                assert (one.allowed, one.policies) == (together.allowed, together.policies) == expected


def test_a_scope_that_names_another_type_is_not_asked() -> None:
    engine = an_engine(*[f'@id("p{n}") permit ({scope}, action, resource);' for n, scope in enumerate(PRINCIPALS)], schema=SCHEMA)
    between = partition.between(engine.bundle.trees, engine.bundle.members, ["read"], "User", "Doc")
    assert set(_ids(between.to_pst())) == {"p0", "p1", "p3", "p5"}


def test_what_holds_of_every_such_question_is_not_asked() -> None:
    scopes = (
        'principal is User, action == Action::"read", resource is Doc',
        'principal is User in Org::"o", action in [Action::"edit", Action::"read"], resource',
        'principal, action in Action::"any", resource',
        'principal, action in [Action::"edit"], resource',
    )
    engine = an_engine(*[f'@id("p{n}") permit ({scope});' for n, scope in enumerate(scopes)], schema=SCHEMA)
    everything = {"read": tuple(engine.bundle.trees)}  # also what could not match
    between = partition.between(engine.bundle.trees, everything, ["read"], "User", "Doc").to_pst().static_policies
    anything, trees = pst.ScopeAny(), engine.bundle.trees
    asked = [(tree.principal, tree.action, tree.resource) for _, tree in sorted(between.items())]
    within = pst.ScopeIn(pst.EntityUid(pst.EntityType("Org"), "o"))
    assert asked == [
        (anything, anything, anything),
        (within, anything, anything),
        (anything, trees["p2"].action, anything),
        (anything, trees["p3"].action, anything),
    ]


def _uid(uid: EntityUid) -> dict[str, str]:
    return {"type": uid.type, "id": uid.id}


def _ids(policies: pst.PolicySet) -> Mapping[str, object]:
    return {**policies.templates, **policies.static_policies}
