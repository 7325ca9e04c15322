"""Step-up: the caller of an operation confirms who they are."""

from __future__ import annotations

from gateway.authn.reauth import Factor, Purpose
from gateway.authn.stepup import Totp
from gateway.errors import Unauthenticated
from gateway.operations.call import Call

#: Where clients of this wire send the proof; the first that is there counts.
HEADERS = ("x-auth-confirm", "x-mfa-token")


async def confirm(call: Call, purpose: Purpose, *, totp: Totp) -> Factor:
    """Take the proof that the request carries; only for a human, which the decision before this one has made sure of.

    Raises:
        StepUpRequired: it is missing or not the one that is needed.
        TooManyRequests: too many wrong passwords.
        Unauthenticated: they were removed meanwhile.
    """
    known = call.session.confirmed.get((purpose, totp))
    if known is None:
        human = call.state.humans.get(call.session.caller.id)
        if human is None:
            raise Unauthenticated
        proof = next((call.headers[name] for name in HEADERS if name in call.headers), None)
        known = call.session.confirmed[purpose, totp] = await call.services.authenticator.confirm(
            human, proof, purpose, totp=totp, now=call.now
        )
    return known
