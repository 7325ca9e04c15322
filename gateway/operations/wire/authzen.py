"""The AuthZEN Authorization API 1.0 on the wire: any member that is not known is ignored."""

from __future__ import annotations

from gateway import limits
from gateway.operations.authzen_request import SEMANTICS
from gateway.operations.schema import (
    COUNT,
    FLAG,
    OBJECT,
    TEXT,
    Maybe,
    Members,
    Schema,
    choice,
    members,
    shape,
    some,
    unset,
)

_PROPERTIES: Members = {"properties": unset(OBJECT)}
_ENTITY = members({"type": TEXT, "id": TEXT, **_PROPERTIES})
_OF_TYPE = members({"type": TEXT, **_PROPERTIES})
_ACTION = members({"name": TEXT, **_PROPERTIES})
_CONTEXT: Members = {"context": unset(OBJECT)}
_PAGE: Members = {"page": unset(members({"limit": unset(COUNT), "token": unset(TEXT), "properties": unset(OBJECT)}))}

ONE: Members = {"subject": _ENTITY, "action": _ACTION, "resource": _ENTITY, **_CONTEXT}
#: The members of the body stand for those that a question of it lacks.
MANY: Members = {
    "subject": unset(OBJECT),
    "action": unset(OBJECT),
    "resource": unset(OBJECT),
    **_CONTEXT,
    "evaluations": unset(some(OBJECT, limits.EVALUATIONS)),
    "options": unset(members({"evaluations_semantic": Maybe(choice(*SEMANTICS))})),
}
SEARCHES: dict[str, Members] = {
    "subject": {"subject": _OF_TYPE, "action": _ACTION, "resource": _ENTITY, **_CONTEXT, **_PAGE},
    "resource": {"subject": _ENTITY, "action": _ACTION, "resource": _OF_TYPE, **_CONTEXT, **_PAGE},
    "action": {"subject": _ENTITY, "resource": _ENTITY, **_CONTEXT, **_PAGE},
}

DECISION = shape("Decision", decision=FLAG)
DECISIONS = shape(
    decision=Maybe(FLAG),
    evaluations=Maybe(
        some(
            shape(
                "Evaluation",
                decision=FLAG,
                context=Maybe(shape(error=shape(status=COUNT, message=TEXT))),
            )
        )
    ),
)
_FOUND: dict[str, Schema] = {
    "subject": shape(type=TEXT, id=TEXT),
    "resource": shape(type=TEXT, id=TEXT),
    "action": shape(name=TEXT),
}
RESULTS: dict[str, Schema] = {
    sought: shape(page=shape(next_token=TEXT, count=COUNT), results=some(found)) for sought, found in _FOUND.items()
}
METADATA = shape(
    policy_decision_point=TEXT,
    access_evaluation_endpoint=TEXT,
    access_evaluations_endpoint=TEXT,
    search_subject_endpoint=TEXT,
    search_resource_endpoint=TEXT,
    search_action_endpoint=TEXT,
)
