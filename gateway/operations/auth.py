"""Signing in and out: passwords, keys and claims against session tokens."""

from __future__ import annotations

from gateway.authn.authenticator import Token
from gateway.authn.emails import LONGEST, normal_email
from gateway.authn.keys import KEY_CHARACTERS, hash_secret
from gateway.errors import Invalid, Unauthenticated
from gateway.model.entity import EntityUid
from gateway.model.evidence import audit_row
from gateway.model.grant import Session
from gateway.model.records import Agent, Credential, Human
from gateway.operations.call import Call
from gateway.operations.fields import stamp
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.schema import ID, unset
from gateway.operations.wire import people as wire
from gateway.operations.wire.people import ENTITLEMENTS, LONGEST_PASSWORD, SHORTEST_PASSWORD
from gateway.store.credentials import Claim, claimed_by, end_session, redeem_claim
from gateway.store.rows import Rows, Tx
from gateway.store.writer import Unit


async def sign_in(call: Call) -> Reply:
    """A session token for an e-mail address and its password."""
    given = call.body.text("email", longest=LONGEST)
    password = call.body.text("password", longest=LONGEST_PASSWORD)
    account = normal_email(given) or given
    human = call.state.human_with_email(account)
    await _check_password(call, human, account, password)
    if human is None:
        raise Unauthenticated
    _record(call, "auth.signed_in", human)
    return Reply(_token(call.services.authenticator.issue(human, None, call.now)))


async def exchange_human_key(call: Call) -> Reply:
    """A session token for a human's key."""
    api_key = call.body.text("api_key", longest=KEY_CHARACTERS)
    authenticator = call.services.authenticator
    credential, human = authenticator.human_of_key(api_key, call.now)
    _exchanged(call, human, credential)
    return Reply(_token(authenticator.issue(human, credential, call.now)))


async def exchange_agent_key(call: Call) -> Reply:
    """A session token for an agent's key, with what clients read beside it."""
    api_key = call.body.text("api_key", longest=KEY_CHARACTERS)
    named = call.body.optional_id("agent_id")
    authenticator = call.services.authenticator
    credential, agent = authenticator.agent_of_key(api_key, call.now)
    if named is not None and named != agent.id:
        raise Unauthenticated
    _exchanged(call, agent, credential)
    token = _token(authenticator.issue(agent, credential, call.now))
    return Reply({**token, "agent_id": agent.id, "vault_ids": [], "entitlements": _entitlements(agent)})


async def refresh(call: Call) -> Reply:
    """Always a refusal."""
    raise Invalid("refresh tokens are not issued here: exchange the key or sign in again", field="refresh_token")


async def claim(call: Call) -> Reply:
    """The first sign-in of a person whom a platform brought: the claim token and the password they choose.

    Whoever has a password already shows that one: a claim never replaces a password, or a platform could take over the
    account of any member it names.
    """
    hashed = hash_secret(call.body.text("claim_token", longest=KEY_CHARACTERS))
    password = call.body.text("password", longest=LONGEST_PASSWORD, shortest=SHORTEST_PASSWORD)
    found = await call.services.database.read(lambda rows: _claimed(rows, call, hashed))
    if found is None:
        raise Unauthenticated
    authenticator = call.services.authenticator
    chosen = None
    if found.human.password_hash is None:
        chosen = await authenticator.passwords.hash(password)
    else:
        await _check_password(call, found.human, found.human.email, password)
    human_now = await call.services.database.awrite(Unit(lambda tx: _redeem(tx, call.session, hashed, chosen), solo=True))
    if human_now is None:
        raise Unauthenticated
    return Reply(_token(authenticator.issue(human_now, None, call.now)))


async def end(call: Call) -> Reply:
    """End the session of the token that was shown. A key is no session: shown as bearer it answers the same and stays good."""
    grant = call.access.authorize(call.session, "session.end", call.org)
    caller = call.session.caller
    if caller.token_id is not None and caller.expires_at is not None:
        await call.write(end_session, grant, caller.token_id, caller.expires_at)
    return NO_CONTENT


async def me(call: Call) -> Reply:
    """The caller's own account."""
    grant = call.access.authorize(call.session, "me.read", call.org)
    human = call.state.humans.get(grant.caller.id)
    if human is None:
        raise Unauthenticated
    return Reply(
        {
            "id": human.id,
            "email": human.email,
            "display_name": human.display_name,
            "org_id": human.org_id,
            "auth_method": "password",
            "role": human.role,
            "email_verified": False,
            "marketing_emails": False,
            "totp_enabled": human.totp_confirmed,
            "created_at": stamp(human.created_at),
        }
    )


async def _check_password(call: Call, human: Human | None, account: str, password: str) -> None:
    """Check a sign-in and record a wrong one. The throttle bounds the records too: what it refuses leaves none."""
    try:
        await call.services.authenticator.check_password(human, account, password, call.now, call.session.source_ip)
    except Unauthenticated:
        _record(call, "auth.sign_in_failed", human)
        raise


def _exchanged(call: Call, holder: Human | Agent, credential: Credential) -> None:
    """Count an exchange as a request of its key, and record it."""
    call.services.authenticator.limiter.take(credential.id, call.now)
    _record(call, "auth.token_issued", holder, credential_id=credential.id)


def _record(call: Call, action: str, who: Human | Agent | None, **details: str) -> None:
    """Leave a record of a sign-in. Of an account that does not exist nothing is kept: people mistype, and type passwords."""
    org_id = who.org_id if who is not None else ""
    call.session.rows.append(
        audit_row(
            at=call.now,
            org_id=org_id,
            principal=EntityUid("Agent" if isinstance(who, Agent) else "Human", who.id if who is not None else ""),
            action=action,
            resource=EntityUid("Org", org_id),
            details={**details, "request_id": call.session.request_id},
            request_id=call.session.request_id,
            data_version=call.state.version,
        )
    )


def _token(token: Token) -> dict[str, object]:
    return {"access_token": token.access_token, "token_type": "Bearer", "expires_in": token.expires_in}


def _entitlements(agent: Agent) -> dict[str, bool]:
    return {name: field is not None and agent.attributes.get(field) is True for name, field in ENTITLEMENTS}


def _claimed(rows: Rows, call: Call, hashed: str) -> Claim | None:
    return claimed_by(rows, call.state, hashed, call.now)


def _redeem(tx: Tx, session: Session, hashed: str, chosen: str | None) -> Human | None:
    return redeem_claim(tx, session, hashed, password_hash=chosen)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "session.sign_in",
        "POST",
        "/v1/auth/token",
        "Sign in with e-mail address and password.",
        sign_in,
        fields={"email": wire.EMAIL, "password": wire.PASSWORD},
        public="this is how a human gets a session token",
        answers={200: wire.TOKEN},
        problems=(401,),
    ),
    Operation(
        "session.exchange_human_key",
        "POST",
        "/v1/auth/api-key-token",
        "Exchange the key of a human for a session token.",
        exchange_human_key,
        fields={"api_key": wire.KEY},
        public="this is how the holder of a `1ck_` key gets a session token",
        answers={200: wire.TOKEN},
        problems=(401,),
    ),
    Operation(
        "session.exchange_agent_key",
        "POST",
        "/v1/auth/agent-token",
        "Exchange the key of an agent for a session token.",
        exchange_agent_key,
        fields={"api_key": wire.KEY, "agent_id": unset(ID)},
        public="this is how an agent gets a session token",
        answers={200: wire.AGENT_TOKEN},
        problems=(401,),
    ),
    Operation(
        "session.refresh",
        "POST",
        "/v1/auth/refresh",
        "Always refused: tokens are renewed by another exchange.",
        refresh,
        public="published clients call it without a credential, and it only ever refuses",
        answers={},
    ),
    Operation(
        "session.claim",
        "POST",
        "/v1/auth/claim",
        "Sign in for the first time as a person whom a platform brought.",
        claim,
        fields={"claim_token": wire.KEY, "password": wire.NEW_PASSWORD},
        strict=True,
        public="the person has no credential yet but the claim token",
        answers={200: wire.TOKEN},
        problems=(401,),
    ),
    Operation(
        "session.end",
        "DELETE",
        "/v1/auth/token",
        "End the session of the token that is shown.",
        end,
        actions=("session.end",),
        answers={204: None},
    ),
    Operation(
        "me.read",
        "GET",
        "/v1/auth/me",
        "Read one's own account.",
        me,
        actions=("me.read",),
        answers={200: wire.ACCOUNT},
    ),
)
