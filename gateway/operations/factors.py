"""Proving again who one is, and the second factor to prove it with."""

from __future__ import annotations

from gateway import limits
from gateway.authn.reauth import PURPOSES, Factor, Purpose
from gateway.authn.totp import enrolment_uri, matching_step, new_secret
from gateway.errors import Conflict, StepUpRequired, Unauthenticated
from gateway.model.grant import Grant
from gateway.model.records import Human, Org
from gateway.operations.call import Call
from gateway.operations.confirmation import confirm
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.wire import people as wire
from gateway.operations.wire.people import CODE_CHARACTERS, LONGEST_PASSWORD, METHODS
from gateway.store.humans import confirm_totp, remove_totp, start_totp, use_totp

#: How long the proof of a method may be.
PROOFS = {"password": LONGEST_PASSWORD, "code": CODE_CHARACTERS}


async def begin(call: Call) -> Reply:
    """What the method will ask for. Nothing is kept: `complete` stands on its own."""
    method, purpose = _asked(call)
    grant = call.access.authorize(call.session, "me.reauthenticate", call.org)
    _usable(_human(call, grant), method)
    needs = "code" if method == "totp" else "password"
    return Reply({"method": method, "purpose": purpose, "needs": [needs], "expires_in": limits.REAUTH_SECONDS})


async def complete(call: Call) -> Reply:
    method, purpose = _asked(call)
    for name, longest in PROOFS.items():
        call.body.optional_text(name, longest=longest, shortest=1)
    field = "code" if method == "totp" else "password"
    shown = call.body.text(field, longest=PROOFS[field])
    grant = call.access.authorize(call.session, "me.reauthenticate", call.org)
    human = _human(call, grant)
    _usable(human, method)
    if method == "totp":
        await _use_code(call, grant, human, shown)
    elif not await call.services.authenticator.stepup.password(human, shown, call.now):
        raise StepUpRequired("`password` is wrong")
    token = call.services.authenticator.reauth.issue(human, purpose, method, call.now)
    return Reply({"reauth_token": token, "token": token, "expires_in": limits.REAUTH_SECONDS})


async def enrol(call: Call) -> Reply:
    """Without a code a new second factor begins and counts for nothing yet; with one it is confirmed.

    Both take the password: a second factor of whoever found a key would pass every step-up from then on.
    """
    code = call.body.optional_text("code", longest=CODE_CHARACTERS)
    grant = call.access.authorize(call.session, "me.totp", call.org)
    if _human(call, grant).password_hash is None:
        raise StepUpRequired(
            "a second factor is enrolled with the account password, and your account has none: claim the account first",
            next_step="set a password with POST /v1/auth/claim and the claim that the platform shows you",
        )
    await confirm(call, "totp.enrol", totp="no")
    human = _human(call, grant)
    if code is not None:
        return await _confirm(call, grant, human, code)
    secret = new_secret()
    await call.write_alone(start_totp, grant, secret)
    return Reply({"secret": secret, "uri": enrolment_uri(secret, human.email)}, 201)


async def remove(call: Call) -> Reply:
    """A confirmed second factor goes only against a code of its own: a password that leaked must not take it off."""
    code = call.body.optional_text("code", longest=CODE_CHARACTERS)
    grant = call.access.authorize(call.session, "me.totp", call.org)
    human = _human(call, grant)
    if human.totp_secret is None:
        return NO_CONTENT
    step = None
    if human.totp_confirmed:
        if code is None:
            raise StepUpRequired("a second factor is removed with a code of its own: send `code`")
        step = _step(call, human, human.totp_secret, code)
    if not await call.write_alone(remove_totp, grant, human.totp_secret, step):
        raise _wrong_code()
    call.services.authenticator.reauth.forget(human.id)
    return NO_CONTENT


async def _confirm(call: Call, grant: Grant[Org], human: Human, code: str) -> Reply:
    if human.totp_secret is None or human.totp_confirmed:
        raise Conflict("there is no second factor that waits to be confirmed: enrol one without `code` first")
    step = _step(call, human, human.totp_secret, code)
    await call.write_alone(confirm_totp, grant, human.totp_secret, step)
    # A proof by password, given while there was no second factor, is not carried past it.
    call.services.authenticator.reauth.forget(human.id)
    return Reply({"totp_enabled": True})


async def _use_code(call: Call, grant: Grant[Org], human: Human, code: str) -> None:
    secret = human.totp_secret or ""
    step = _step(call, human, secret, code)
    if not await call.write_alone(use_totp, grant, secret, step):
        raise _wrong_code()


def _step(call: Call, human: Human, secret: str, code: str) -> int:
    """The time step of a right code that was not used; a wrong one counts as a guess at the account."""
    stepup = call.services.authenticator.stepup
    attempt = stepup.attempt(human, call.now)
    step = matching_step(secret, code, call.now, last_step=human.totp_last_step)
    if step is None:
        raise _wrong_code()
    stepup.forgive(attempt)
    return step


def _wrong_code() -> StepUpRequired:
    return StepUpRequired("`code` is wrong, or was used before", next_step="wait for the next code of the authenticator app")


def _asked(call: Call) -> tuple[Factor, Purpose]:
    return call.body.choice("method", METHODS), call.body.choice("purpose", PURPOSES)


def _usable(human: Human, method: Factor) -> None:
    """Refuse a method that the human has not set up."""
    if method == "totp" and not human.totp_confirmed:
        raise Conflict("no second factor is enrolled: POST /v1/auth/totp, then confirm it with a code")


def _human(call: Call, grant: Grant[Org]) -> Human:
    human = call.state.humans.get(grant.caller.id)
    if human is None:
        raise Unauthenticated
    return human


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "me.reauth_begin",
        "POST",
        "/v1/auth/reauth/begin",
        "Ask what a method of confirming who one is needs.",
        begin,
        actions=("me.reauthenticate",),
        fields=wire.CONFIRMING,
        answers={200: wire.NEEDED},
    ),
    Operation(
        "me.reauth_complete",
        "POST",
        "/v1/auth/reauth/complete",
        "Confirm who one is, for one purpose; answers a token that serves once.",
        complete,
        actions=("me.reauthenticate",),
        fields={**wire.CONFIRMING, **wire.PROOFS},
        answers={200: wire.CONFIRMED},
    ),
    Operation(
        "me.totp_enrol",
        "POST",
        "/v1/auth/totp",
        "Enrol a second factor, or with a code confirm it; both with the account password.",
        enrol,
        actions=("me.totp",),
        fields=wire.CODE,
        strict=True,
        answers={200: wire.ENROLLED, 201: wire.ENROLMENT},
        confirmed=True,
    ),
    Operation(
        "me.totp_remove",
        "DELETE",
        "/v1/auth/totp",
        "Remove the second factor, with a code of its own.",
        remove,
        actions=("me.totp",),
        fields=wire.CODE,
        strict=True,
        answers={204: None},
    ),
)
