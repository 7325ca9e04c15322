"""What a platform does with its own key: connect a person, provision their agents, and follow their approvals."""

from __future__ import annotations

from gateway import limits
from gateway.authn.emails import LONGEST, normal_email
from gateway.authn.keys import AGENT_KEY, CLAIM, mint_key
from gateway.errors import Invalid
from gateway.model.ids import new_id
from gateway.model.records import Agent, Credential, Human, Pause, Peer, PlatformConnection, PlatformTemplate
from gateway.model.rules import NO_RULES, parse_rules
from gateway.operations import platform_apps
from gateway.operations.approval_shape import shape, status_filter, target
from gateway.operations.call import Call
from gateway.operations.fields import stamp
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import platform as wire
from gateway.operations.wire.approvals import APPROVAL, APPROVALS, LISTED
from gateway.operations.wire.platform import RETURN_CHARACTERS
from gateway.operations.wire.problems import LINK_REQUIRED
from gateway.store import approvals, bootstrap, platforms
from gateway.store.bootstrap import Bootstrapped
from gateway.store.entities import Missing

WHY_LINK = "this address cannot be connected by the platform alone: the person has to link it themselves"


async def upsert_user(call: Call) -> Reply:
    body = call.body
    if body.has("subject_token"):
        raise Invalid("`subject_token` is not supported here: name the person by `email`", field="subject_token")
    email = normal_email(body.text("email", longest=LONGEST))
    if email is None:
        raise body.wrong("email", "an e-mail address")
    grant = call.access.authorize(call.session, "platform.upsert_user", call.org)
    newcomer = Human(
        id=new_id(),
        org_id=grant.target.id,
        email=email,
        display_name=None,
        role="member",
        password_hash=None,
        totp_secret=None,
        totp_confirmed=False,
        totp_last_step=None,
        generation=1,
        created_at=call.now,
    )
    wanted = PlatformConnection(new_id(), grant.target.id, grant.caller.id, newcomer.id, "pending", None, None, call.now)
    connected = await call.write_alone(platforms.connect, grant, newcomer, wanted)
    if connected is None:
        return _link_required(call, grant.caller.id)
    return Reply(
        {
            "user_handle": connected.human.id,
            "is_new": connected.is_new,
            "connection_id": connected.connection.id,
            "email": connected.human.email,
        },
        201 if connected.is_new else 200,
    )


async def bootstrap_connection(call: Call) -> Reply:
    asked = call.body.optional_id("template_id")
    # Clients may send both; templates here take no parameters, and nobody is sent back to an address from a body.
    call.body.optional_object("parameters")
    call.body.optional_text("return_to", longest=RETURN_CHARACTERS)
    grant = call.access.authorize(call.session, "platform.bootstrap", call.connection(call.path["connection_id"]))
    connection = grant.target
    template = _template(call, connection, asked)
    provisioned, secrets = _provision(call, connection, template)
    peer = Peer(
        id=new_id(),
        org_id=connection.org_id,
        peer_type="platform_connection",
        peer_ref=connection.id,
        display_name=None,
        connection_id=connection.id,
        archived=False,
        pause=Pause(),
        created_at=call.now,
    )
    token, hashed = mint_key(CLAIM)
    made = await call.write_alone(bootstrap.bootstrap, grant, template.id, provisioned, peer, hashed)
    return Reply({**_claim(call, connection.id, token), "summary": _summary(made, secrets if made.made else {})}, 201)


async def reissue_claim(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "platform.reissue_claim", call.connection(call.path["connection_id"]))
    token, hashed = mint_key(CLAIM)
    await call.write_alone(platforms.reissue_claim, grant, hashed)
    return Reply(_claim(call, grant.target.id, token))


async def read_connection(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "platform.read_connection", call.connection(call.path["connection_id"]))
    connection = grant.target
    peer = call.state.peer_of_connection(connection.id)
    person = call.state.humans.get(connection.user_id)
    claimed = connection.claimed_at is not None or (person is not None and person.password_hash is not None)
    return Reply(
        {
            "connection_id": connection.id,
            "app_id": connection.app_id,
            "user_id": connection.user_id,
            "status": connection.status,
            "entitlement_status": "active" if connection.status == "active" else "inactive",
            "vault_ids": [],
            "agent_ids": [agent.id for agent in call.state.agents_of_connection(connection.id)],
            "peer_id": peer.id if peer is not None else None,
            "template_id": connection.template_id,
            "claim": {"status": "claimed" if claimed else "pending"},
            "created_at": stamp(connection.created_at),
        }
    )


async def list_approvals(call: Call) -> Reply:
    query = call.query
    status = status_filter(query)
    limit = query.count("limit", least=1, most=limits.PAGE, default=50)
    offset = query.count("offset", least=0, most=10**9, default=0)
    grant = call.access.authorize(call.session, "platform.list_approvals", call.connection(call.path["connection_id"]))
    page, total = await call.read(approvals.page, grant, status=status, limit=limit, offset=offset)
    return Reply({"approvals": [shape(asked) for asked in page], "total": total})


async def read_approval(call: Call) -> Reply:
    about = await target(call, call.path["approval_id"])
    if not isinstance(about, Missing) and about.connection_id != call.path["connection_id"]:
        about = Missing("Approval", about.id)
    grant = call.access.authorize(call.session, "platform.read_approval", about, hide=True)
    return Reply(shape(await call.read(approvals.approval, grant)))


def _template(call: Call, connection: PlatformConnection, asked: str | None) -> PlatformTemplate:
    """The template that is named, else the one the connection was made from, else the only one there is."""
    own = {t.id: t for t in list(call.state.templates.values()) if t.org_id == connection.org_id}
    named = asked or connection.template_id or (next(iter(own)) if len(own) == 1 else None)
    if named is None:
        raise Invalid("`template_id` is required: the organisation has no template, or more than one", field="template_id")
    if named not in own:
        raise Invalid(f"`template_id` `{named}` is not a template of this organisation", field="template_id")
    return own[named]


def _provision(
    call: Call, connection: PlatformConnection, template: PlatformTemplate
) -> tuple[list[bootstrap.Provisioned], dict[str, str]]:
    """The agents of a template with their keys, and the secrets by agent. They are the person's own agents."""
    provisioned: list[tuple[Agent, Credential]] = []
    secrets: dict[str, str] = {}
    # Agents of one moment are listed by id; sorted ids keep the template's order, in which the first is the first.
    for agent_id, entry in zip(sorted(new_id() for _ in template.agents), template.agents, strict=True):
        rules = parse_rules(entry.get("action_approval_policy"))
        agent = Agent(
            id=agent_id,
            org_id=connection.org_id,
            name=str(entry["name"]),
            description="",
            is_active=True,
            created_by=connection.user_id,
            parent_id=None,
            connection_id=connection.id,
            rules=rules if rules.source else NO_RULES,
            token_ttl_seconds=limits.TOKEN_SECONDS_AGENT,
            generation=1,
            created_at=call.now,
        )
        secrets[agent.id], hashed = mint_key(AGENT_KEY)
        provisioned.append((agent, Credential(new_id(), agent.org_id, "Agent", agent.id, "agent key", hashed, call.now, None)))
    return provisioned, secrets


def _claim(call: Call, connection_id: str, token: str) -> dict[str, object]:
    # The address that takes the claim, with the token in the fragment, which no browser sends and no server logs: whoever
    # shows the person a form posts `claim_token` and the chosen `password` there.
    url = f"{_public(call)}/v1/auth/claim#claim_token={token}"
    return {"claim_url": url, "claim_token": token, "expires_in": limits.CLAIM_SECONDS, "connection_id": connection_id}


def _public(call: Call) -> str:
    return (call.services.settings.public_url or "").rstrip("/")


def _summary(made: Bootstrapped, secrets: dict[str, str]) -> dict[str, object]:
    ids = [agent.id for agent in made.agents]
    first = ids[0] if ids else None
    return {
        "vault_id": None,
        "agent_id": first,
        "agent_ids": ids,
        "policy_ids": [],
        "peer_id": made.peer.id,
        "observers_not_added": made.not_added,
        "agent_api_key": secrets.get(first) if first is not None else None,
        "agent_api_keys": secrets,
    }


def _link_required(call: Call, app_id: str) -> Reply:
    # There is no page to link oneself on; where a person sees their applications is the nearest there is.
    link = {
        "status": "link_required",
        "reason": WHY_LINK,
        "authorize_url": f"{_public(call)}/v1/platform/connected-apps",
        "app_slug": call.state.apps[app_id].slug,
    }
    problem = {"type": "urn:peergate:problem:conflict", "title": "conflict", "status": 409, "detail": WHY_LINK}
    return Reply({**problem, "link_required": link}, 409)


OPERATIONS: tuple[Operation, ...] = (
    *platform_apps.OPERATIONS,
    Operation(
        "platform.upsert_user",
        "POST",
        "/v1/platform/users/upsert",
        "Find or add the person with an e-mail address, and connect them.",
        upsert_user,
        actions=("platform.upsert_user",),
        fields=wire.UPSERTED,
        answers={200: wire.UPSERT, 201: wire.UPSERT, 409: LINK_REQUIRED},
    ),
    Operation(
        "platform.bootstrap",
        "POST",
        "/v1/platform/connections/{connection_id}/bootstrap",
        "Provision a connection's agents and its peer. Repeating it makes nothing twice, with an `Idempotency-Key` or without.",
        bootstrap_connection,
        actions=("platform.bootstrap",),
        fields=wire.BOOTSTRAPPED,
        answers={201: wire.BOOTSTRAP},
    ),
    Operation(
        "platform.reissue_claim",
        "POST",
        "/v1/platform/connections/{connection_id}/reissue-claim",
        "Issue a new claim; the one before it is void.",
        reissue_claim,
        actions=("platform.reissue_claim",),
        answers={200: wire.CLAIM},
    ),
    Operation(
        "platform.read_connection",
        "GET",
        "/v1/platform/connections/{connection_id}",
        "Show a connection.",
        read_connection,
        actions=("platform.read_connection",),
        answers={200: wire.CONNECTION},
    ),
    Operation(
        "platform.list_approvals",
        "GET",
        "/v1/platform/connections/{connection_id}/approvals",
        "List the approvals of a connection.",
        list_approvals,
        actions=("platform.list_approvals",),
        query=LISTED,
        answers={200: APPROVALS},
    ),
    Operation(
        "platform.read_approval",
        "GET",
        "/v1/platform/connections/{connection_id}/approvals/{approval_id}",
        "Show an approval of a connection.",
        read_approval,
        actions=("platform.read_approval",),
        answers={200: APPROVAL},
    ),
)
