"""A trial: what the policies of an organisation, or a text that is tried, would answer to somebody."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from gateway import limits
from gateway.errors import Invalid
from gateway.model.caller import Caller, PrincipalType
from gateway.model.decision import DenyKind, Verdict
from gateway.operations.call import Call, Owned
from gateway.operations.candidate import try_over
from gateway.operations.fields import Fields
from gateway.operations.operation import Operation, Reply
from gateway.operations.policy_shape import PATH, cedar_text
from gateway.operations.wire import policies as wire
from gateway.policy.context import Context
from gateway.policy.engine import one_reason
from gateway.policy.value import ValueRefused
from gateway.store.entities import Missing, Target

#: The kinds of principals of an organisation.
PRINCIPALS: tuple[PrincipalType, ...] = tuple(kind for kind in get_args(PrincipalType) if kind != "Operator")
#: Stands for a principal that the organisation does not have.
NOBODY = "-"
RESOURCES = "Org, Peer, Agent, Human, Policy, Connection or PlatformConnection"
NAMED = re.compile(r'(?:Action::)?"?([a-z_]+(?:\.[a-z_]+)?)"?')
UID = re.compile(r'([A-Za-z]+)(?:::"([^"\\]{1,256})"|[:/]{1,2}([^"\\/:]{1,256}))')
FORM = '`Type::"id"`'
NOTES = {
    DenyKind.NOT_PERMITTED: "no policy permits this",
    DenyKind.EVALUATION_ERROR: "a policy fails to evaluate, so the answer is no",
    DenyKind.INVALID_REQUEST: "the schema knows no such request",
}


async def try_policy(call: Call) -> Reply:
    """Ask what would be decided now. Nothing is granted by it and no decision of anybody's is recorded."""
    body = call.body
    for name in wire.SPELLED:
        body.optional_text(name, longest=limits.REF_CHARACTERS)
    principal = _principal(call)
    action = _action(body)
    target = _resource(call)
    context = _context(body)
    text = cedar_text(body) if any(body.has(name) for name in wire.CEDAR) else None
    grant = call.access.authorize(call.session, "policy.test", call.org)
    engine = call.access.engines.of(grant.target.id)
    if text is not None:
        engine = engine.sibling(await try_over(call.services, engine.bundle, text))
    verdict = call.access.rehearse(call.session, engine, principal, action, target, context)
    return Reply(
        {
            "decision": "allow" if verdict.allowed else "deny",
            "backend": "cedar",
            "enforcement_status": "enforce" if text is None else "shadow",
            "note": _note(verdict),
            "reasons": list(verdict.policies),
            "deny_kind": verdict.deny_kind,
            "errors": list(verdict.errors),
        }
    )


def _note(verdict: Verdict) -> str:
    if verdict.allowed:
        return "allowed by the policies that are named"
    reason = one_reason(verdict)
    return reason.text if reason is not None else NOTES[verdict.deny_kind or DenyKind.NOT_PERMITTED]


def _principal(call: Call) -> Caller:
    body = call.body
    if body.has("principal"):
        kind, found = _uid(body, "principal")
    else:
        kind = body.text("principal_type", longest=limits.NAME_CHARACTERS).capitalize()
        found = body.text("principal_id", longest=limits.REF_CHARACTERS)
    for known in PRINCIPALS:
        if kind == known:
            return Caller(known, found if _ours(call, known, found) else NOBODY, call.session.caller.org_id, "")
    field = "principal" if body.has("principal") else "principal_type"
    raise body.wrong(field, f"of a kind that is one of {', '.join(PRINCIPALS)}")


def _ours(call: Call, kind: PrincipalType, id_: str) -> bool:
    """Whether a principal is of the organisation. INVARIANT: one of another is asked about as nobody, as an unknown id is."""
    match kind:
        case "Human":
            found: Owned | Missing | None = call.state.humans.get(id_)
        case "Agent" | "Bridge":
            found = call.agent_or_former(id_)
        case "Platform":
            found = call.state.apps.get(id_)
        case _:
            found = call.remote_connection(id_)
    return found is not None and not isinstance(found, Missing) and found.org_id == call.org.id


def _action(body: Fields) -> str:
    named = NAMED.fullmatch(body.text("action", longest=limits.REF_CHARACTERS))
    if named is None:
        raise body.wrong("action", 'an action such as `peer.read` or `Action::"peer.read"`')
    return named[1]


def _resource(call: Call) -> Target:
    """What is asked about, of what is held in memory; a thing of another organisation is the same as none."""
    body = call.body
    kind, found = _uid(body, "resource" if body.has("resource") else "resource_path")
    match kind:
        case "Org" if found == call.org.id:
            return call.org
        case "Peer":
            return call.peer(found)
        case "Agent":
            return call.agent(found)
        case "PlatformConnection":
            return call.connection(found)
        case "Connection":
            return call.remote_connection(found)
        case "Human":
            human = call.state.humans.get(found)
            return human if human is not None and human.org_id == call.org.id else Missing("Human", "-")
        case "Policy":
            policy = call.state.org_policies.get(found)
            return policy if policy is not None and policy.org_id == call.org.id else Missing("Policy", "-")
        case _:
            expected = f"{FORM} of the organisation, of a type {RESOURCES}"
            raise body.wrong("resource" if body.has("resource") else "resource_path", expected)


def _context(body: Fields) -> Context | None:
    given: Mapping[str, object] = body.optional_object("context") or {}
    if not given:
        return None
    try:
        return Context.from_json(given)
    except ValueRefused as wrong:
        raise Invalid(f"`context` is no context: {wrong}", field="context") from wrong


def _uid(body: Fields, field: str) -> tuple[str, str]:
    found = UID.fullmatch(body.text(field, longest=2 * limits.REF_CHARACTERS))
    if found is None:
        raise body.wrong(field, f"an entity, {FORM}")
    return found[1], found[2] or found[3]


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "policy.test",
        "POST",
        f"{PATH}/test",
        "Ask what the policies of the organisation, with a text that is tried, would answer.",
        try_policy,
        actions=("policy.test",),
        fields=wire.TRIED,
        body_bytes=limits.LARGE_BODY_BYTES,
        unhurried=True,
        answers={200: wire.TRIAL},
    ),
)
