"""One's own password: changed by whoever knows the one before."""

from __future__ import annotations

from gateway import limits
from gateway.errors import StepUpRequired, Unauthenticated
from gateway.operations.call import Call
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.wire import people as wire
from gateway.store.humans import change_password

SHORTEST, LONGEST = limits.PASSWORD_CHARACTERS


async def change(call: Call) -> Reply:
    """Every session token has ended when this answers, the caller's too. Keys stay: they are listed and revoked apart."""
    current = call.body.text("current_password", longest=LONGEST)
    wanted = call.body.text("new_password", longest=LONGEST, shortest=SHORTEST)
    grant = call.access.authorize(call.session, "me.change_password", call.org)
    human = call.state.humans.get(grant.caller.id)
    if human is None:
        raise Unauthenticated
    authenticator = call.services.authenticator
    if not await authenticator.stepup.password(human, current, call.now):
        raise StepUpRequired("`current_password` is wrong")
    await call.write_alone(change_password, grant, human.password_hash, await authenticator.passwords.hash(wanted))
    authenticator.reauth.forget(human.id)
    return NO_CONTENT


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "me.change_password",
        "POST",
        "/v1/auth/change-password",
        "Change one's own password and end every session token.",
        change,
        actions=("me.change_password",),
        fields={"current_password": wire.PASSWORD, "new_password": wire.NEW_PASSWORD},
        strict=True,
        answers={204: None},
    ),
)
