"""Approvals: an agent asks a human before it acts, and can see what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from derive.recipients import read_recipient
from gateway import limits
from gateway.errors import Forbidden, TooLarge, Unauthenticated
from gateway.model.grant import Grant
from gateway.model.ids import new_id
from gateway.model.proposal import Proposal, check_action, read_proposal
from gateway.model.rules import ApprovalRules, render_summary
from gateway.operations import approval_decisions
from gateway.operations.approval_shape import shape, status_filter, target
from gateway.operations.call import Call
from gateway.operations.fields import Fields, stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import approvals as wire
from gateway.operations.wire.approvals import KIND_CHARACTERS, SUMMARY_CHARACTERS
from gateway.store import approval_requests, approvals
from gateway.store.approval_requests import Terms, read_terms
from gateway.store.approvals import Approval
from gateway.store.canonical import canonical, digest

BY_A_WRITTEN_RULE = "approved without a human: a written rule of this agent allows it"


async def request(call: Call) -> Reply:
    body = call.body
    action = body.text("action", longest=limits.REF_CHARACTERS)
    check_action(action, field="action")
    target_type = body.text("target_type", longest=KIND_CHARACTERS)
    target_id = body.text("target_id", longest=limits.REF_CHARACTERS)
    summary = _summary(body)
    payload = _sized(body.optional_object("payload") or {}, "payload")
    reason = body.optional_text("reason", longest=limits.TEXT_CHARACTERS)
    declared = _declared(body)
    recipient, caller = read_recipient(payload), call.session.caller
    terms = await call.services.database.read(lambda rows: read_terms(rows, call.state, caller, recipient, call.now))
    proposal = read_proposal(
        action,
        payload,
        rules=terms.rules,
        known_recipient=terms.known_recipient,
        declared_tier=declared,
        sensitive_actions=terms.sensitive_actions,
    )
    grant = _authorize(call, terms.rules, proposal)
    agent = call.state.agents.get(caller.id)
    if agent is None or terms.addressee is None:
        raise Unauthenticated  # only agents are allowed to ask, so it was deleted while it did
    automatic = terms.auto_approve and _may_be_automatic(call, terms, proposal)
    rule = terms.rules.rule_for(action)
    template = rule.summary_template if rule is not None else None
    asked = Approval(
        id=new_id(),
        org_id=agent.org_id,
        agent_id=agent.id,
        user_id=terms.addressee,
        connection_id=agent.connection_id,
        action=action,
        target_type=target_type,
        target_id=target_id,
        risk_tier=proposal.risk_tier,
        declared_risk_tier=declared,
        status="approved" if automatic else "pending",
        human_summary=render_summary(template, payload) if template is not None else None,
        payload_hash=digest({"action": action, "payload": payload}),
        reason=reason,
        decision_reason=BY_A_WRITTEN_RULE if automatic else None,
        decided_by=None,
        decided_at=call.now if automatic else None,
        created_at=call.now,
        expires_at=call.now + limits.APPROVAL_LIFETIME,
        summary=summary,
        payload=payload,
        understood=proposal.understood(),
    )
    await call.write(approval_requests.record_request, grant, asked, terms)
    return Reply(shape(asked), 202, {"Location": f"/v1/approvals/{asked.id}"})


async def list_approvals(call: Call) -> Reply:
    query = call.query
    status = status_filter(query)
    scope = query.optional_choice("scope", ("own", "org"), "own")
    limit = query.count("limit", least=1, most=limits.PAGE, default=50)
    offset = query.count("offset", least=0, most=10**9, default=0)
    grant = call.access.authorize(call.session, "approval.list" if scope == "org" else "approval.list_own", call.org)
    page, total = await call.read(approvals.page, grant, status=status, limit=limit, offset=offset)
    return Reply({"approvals": [shape(asked) for asked in page], "total": total})


async def get(call: Call) -> Reply:
    about = await target(call, call.path["approval_id"])
    # A human or an agent learns of nobody else's approval; a platform's key is told that it is in the wrong place.
    hide = call.session.caller.type != "Platform"
    grant = call.access.authorize(call.session, "approval.read", about, hide=hide)
    return Reply(shape(await call.read(approvals.approval, grant)))


async def status(call: Call) -> Reply:
    about = await target(call, call.path["approval_id"])
    # No human does this; none learns from the refusal whether there is such an approval.
    hide = call.session.caller.type == "Human"
    grant = call.access.authorize(call.session, "approval.read_status", about, hide=hide)
    asked = await call.read(approvals.approval, grant)
    return Reply({"status": asked.status, "expires_at": stamp(asked.expires_at)})


def _authorize(call: Call, rules: ApprovalRules, proposal: Proposal) -> Grant[Proposal]:
    """Decide the request; a refusal names the written rule behind it and is an audit event besides."""
    try:
        return call.access.authorize_proposal(call.session, "approval.request", proposal)
    except Forbidden as refused:
        decided = call.session.rows[-1]
        call.session.rows.append(
            replace(
                decided,
                kind="audit",
                id=new_id(),
                action="approval.refused",
                outcome=None,
                deny_kind=None,
                policies=(),
                slices=(),
                slice_bodies={},
                details={"decision_id": decided.id, "request_id": decided.request_id},
            )
        )
        cause = _written(rules, proposal)
        if cause is None:
            raise
        next_step = "ask the human who registered this agent to change its `action_approval_policy`"
        raise Forbidden(f"{refused.detail} {cause}", decision_id=refused.decision_id, next_step=next_step) from refused


def _written(rules: ApprovalRules, proposal: Proposal) -> str | None:
    """The place in the agent's policy that says deny, if there is one."""
    if proposal.platform_made or proposal.asked_always:
        return None
    rule = rules.rule_for(proposal.action_type)
    if rule is None:
        return "(`default_mode`: `deny`)" if rules.default_mode == "deny" else None
    return f"(rule `{rule.action_type}`: `deny`)" if rule.mode == "deny" else None


def _may_be_automatic(call: Call, terms: Terms, proposal: Proposal) -> bool:
    """Whether the agent's own written rules take the human out, which no pause of that person allows."""
    ruling = call.access.ask_automatic(call.session, proposal, principal=call.session.caller, person_paused=terms.paused)
    return ruling.allowed


def _declared(body: Fields) -> int | None:
    """The tier that is declared, under its name or its old name; of two, the higher, as a declaration only raises."""
    given = (body.optional_integer(name, least=1, most=3) for name in ("declared_risk_tier", "risk_tier"))
    return max((tier for tier in given if tier is not None), default=None)


def _summary(body: Fields) -> str | Mapping[str, object]:
    if isinstance(body.members.get("summary"), dict):
        summary = body.object("summary")
        within = Fields(summary, place="summary.")
        within.optional_text("title", longest=SUMMARY_CHARACTERS)
        within.optional_text("body", longest=SUMMARY_CHARACTERS)
        within.objects("fields", most=limits.PAGE)
        return _sized(summary, "summary")
    return body.text("summary", longest=SUMMARY_CHARACTERS)


def _sized(value: Mapping[str, object], field: str) -> Mapping[str, object]:
    size = len(canonical(value))
    if size > limits.EVENT_CONTENT_BYTES:
        raise TooLarge(f"`{field}` is {size} bytes as JSON; at most {limits.EVENT_CONTENT_BYTES} are allowed", field=field)
    return value


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "approval.request",
        "POST",
        "/v1/approvals/request",
        "Ask a human before acting.",
        request,
        actions=("approval.request", "suggest_auto"),
        fields=wire.REQUEST,
        answers={202: wire.APPROVAL},
    ),
    Operation(
        "approval.request_alias",
        "POST",
        "/v1/approvals",
        "Ask a human before acting, at the address that older clients use.",
        request,
        actions=("approval.request", "suggest_auto"),
        fields=wire.REQUEST,
        answers={202: wire.APPROVAL},
    ),
    Operation(
        "approval.list",
        "GET",
        "/v1/approvals",
        "List approvals: one's own queue, or with `scope=org` the organisation's.",
        list_approvals,
        actions=("approval.list_own", "approval.list"),
        query=wire.QUEUE,
        answers={200: wire.APPROVALS},
    ),
    Operation(
        "approval.read",
        "GET",
        "/v1/approvals/{approval_id}",
        "Show an approval.",
        get,
        actions=("approval.read",),
        answers={200: wire.APPROVAL},
    ),
    Operation(
        "approval.status",
        "GET",
        "/v1/approvals/{approval_id}/status",
        "Show where an approval stands, to the agent that asked.",
        status,
        actions=("approval.read_status",),
        answers={200: wire.STATUS},
    ),
    *approval_decisions.OPERATIONS,
)
