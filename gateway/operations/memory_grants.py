"""Memory grants: what a person lets a remote agent do with the memory of one of ours, a project at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from gateway import limits
from gateway.errors import Invalid
from gateway.model.ids import new_id
from gateway.model.memory import (
    MEMORY_ACTIONS,
    PROVENANCES,
    TEMPLATE_VERSION,
    GrantLimits,
    MemoryAction,
    MemoryGrant,
    Tier,
)
from gateway.operations.call import Call, path_id
from gateway.operations.fields import Fields, optional_stamp, stamp
from gateway.operations.memory_fields import choices, project, refuse_nulls, tags, tags_match, tiers
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.remote_connections import named_connection
from gateway.operations.wire import memory as wire
from gateway.policy.probe import GrantRefused
from gateway.store import memory_grants

#: What a grant covers when it names no tiers.
DEFAULT_TIERS: tuple[Tier, ...] = ("public", "internal")


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope of the network: the actions it stands for, what it calls the project, and limits that it may name, each with
    its default and its range."""

    actions: tuple[MemoryAction, ...]
    project: str
    limits: Mapping[str, tuple[int, tuple[int, int]]] = field(default_factory=dict)


_ROWS_A_DAY = {"max_per_day": (limits.SCOPE_ROWS_PER_DAY_DEFAULT, limits.SCOPE_ROWS_PER_DAY)}
_TOKENS = {"max_tokens": (limits.MEMORY_TOKENS_DEFAULT, limits.MEMORY_TOKENS)}
SCOPES = {
    "notes.search": Scope(("search",), "collection_id"),
    "notes.read": Scope(("search", "read"), "collection_id"),
    "notes.write": Scope(("search", "read", "remember"), "collection_id", _ROWS_A_DAY),
    "knowledge.query": Scope(("query",), "kb_id", _TOKENS),
}


async def create(call: Call) -> Reply:
    """Allow a connection something. It is asked once of a made-up row before it is kept, so that it allows what it says."""
    given = _given(call)
    grant = call.access.authorize(call.session, "grant.create", named_connection(call, call.path["id"]))
    made = replace(given, org_id=grant.target.org_id, connection_id=grant.target.id)
    try:
        call.access.engine.probe(made, grant.target.agent_id)
    except GrantRefused as refused:
        raise Invalid(f"this grant is refused: {refused}") from refused
    await call.write_alone(memory_grants.create, grant, made)
    return Reply({"grant": shape(made)}, 201)


async def list_grants(call: Call) -> Reply:
    """What a connection was ever allowed, revoked and ended grants included."""
    grant = call.access.authorize(call.session, "grant.list", named_connection(call, call.path["id"]))
    return Reply({"grants": [shape(made) for made in memory_grants.listed(call.state, grant)]})


async def revoke(call: Call) -> Reply:
    """End a grant: nothing that starts after this answers sees a row by it."""
    grant = call.access.authorize(call.session, "grant.revoke", named_connection(call, call.path["id"]))
    await call.write_alone(memory_grants.revoke, grant, path_id(call, "grant_id"))
    return NO_CONTENT


def shape(grant: MemoryGrant) -> dict[str, object]:
    """A grant as the wire shows it; a limit that it has not is null."""
    return {
        "id": grant.id,
        "connection_id": grant.connection_id,
        "actions": list(grant.actions),
        "project_id": grant.project_id,
        "tags": list(grant.tags),
        "tags_match": grant.tags_match,
        "classifications": list(grant.classifications),
        "provenance": grant.provenance,
        "expires_at": optional_stamp(grant.expires_at),
        "limits": asdict(grant.limits),
        "template_version": grant.template_version,
        "created_at": stamp(grant.created_at),
        "revoked_at": optional_stamp(grant.revoked_at),
    }


def _given(call: Call) -> MemoryGrant:
    """The grant that a body asks for, of no connection yet.

    An empty list is refused anywhere: a grant that allows nothing is a mistake, and must not come to mean everything.
    """
    body = call.body
    refuse_nulls(body)
    for name in ("actions", "tags", "classifications"):
        if body.members.get(name) == []:
            raise body.wrong(name, "a list with something in it, or left out")
    actions, project_id, limited = _allowed(body)
    expires_at = body.optional_timestamp("expires_at")
    if expires_at is not None and expires_at <= call.now:
        raise body.wrong("expires_at", "a time in the future")
    return MemoryGrant(
        id=new_id(),
        org_id="",
        connection_id="",
        actions=actions,
        project_id=project_id,
        tags=tags(body) or (),
        tags_match=tags_match(body),
        classifications=tiers(body) or DEFAULT_TIERS,
        provenance=body.optional_choice("provenance", PROVENANCES, "any"),
        expires_at=expires_at,
        limits=limited,
        template_version=TEMPLATE_VERSION,
        created_by=call.session.caller.id,
        created_at=call.now,
    )


def _allowed(body: Fields) -> tuple[tuple[MemoryAction, ...], str, GrantLimits]:
    """The actions, the project and the limits, of `actions` or of a `scope` of the network; of two limits the smaller."""
    if ("actions" in body) == ("scope" in body):
        raise Invalid("exactly one of `actions` and `scope` says what is allowed", field="actions")
    given = _limits(body)
    if "scope" not in body:
        return choices(body, "actions", MEMORY_ACTIONS) or (), project(body), GrantLimits(**given)
    scope = Fields(body.object("scope"), place="scope.")
    scope.refuse_others(("id", "params"))
    offered = SCOPES[scope.choice("id", tuple(SCOPES))]
    params = Fields(scope.object("params"), place="scope.params.")
    params.refuse_others((offered.project, *offered.limits))
    refuse_nulls(params)
    project_id = project(params, offered.project)
    if "project_id" in body and project(body) != project_id:
        raise body.wrong("project_id", f"the project of `scope.params.{offered.project}`, or left out")
    for name, (default, (least, most)) in offered.limits.items():
        limit = params.optional_integer(name, least=least, most=most) or default
        given[name] = min(limit, given.get(name, limit))
    return offered.actions, project_id, GrantLimits(**given)


def _limits(body: Fields) -> dict[str, int]:
    if "limits" not in body:
        return {}
    given = Fields(body.object("limits"), place="limits.")
    given.refuse_others(wire.LIMITS)
    return {name: given.integer(name, least=1, most=limits.GRANT_LIMIT) for name in given.members}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "grant.create",
        "POST",
        "/v1/connections/{id}/grants",
        "Allow a remote connection something about one project.",
        create,
        actions=("grant.create",),
        fields=wire.GRANTED,
        strict=True,
        answers={201: wire.GRANT},
    ),
    Operation(
        "grant.list",
        "GET",
        "/v1/connections/{id}/grants",
        "List what a remote connection is and was allowed.",
        list_grants,
        actions=("grant.list",),
        strict=True,
        answers={200: wire.GRANTS},
    ),
    Operation(
        "grant.revoke",
        "DELETE",
        "/v1/connections/{id}/grants/{grant_id}",
        "Revoke a grant.",
        revoke,
        actions=("grant.revoke",),
        strict=True,
        answers={204: None},
    ),
)
