"""Confirming who one is before what cannot be undone: what counts, and the sentence when it is missing."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, assert_never

from gateway.authn.keys import REAUTH
from gateway.authn.passwords import Passwords
from gateway.authn.reauth import Factor, Purpose, Reauth
from gateway.authn.throttle import Attempt, Throttle
from gateway.errors import StepUpRequired
from gateway.model.records import Human

#: `no`: the account password or any proof. `when enrolled`: as `no`, until the human has a second factor, from then on
#: a proof by that. `required`: a proof by a second factor, and who has none is told how to get one.
Totp = Literal["no", "when enrolled", "required"]

ENROL = "enrol a second factor with POST /v1/auth/totp, confirm it with a code, and prove it with POST /v1/auth/reauth/complete"


class StepUp:
    """Takes the `X-Auth-Confirm` header of a request and accepts it or says what is needed.

    Its guesses are counted apart from those of signing in: who is not signed in must not use up those of who is.
    """

    def __init__(self, passwords: Passwords, throttle: Throttle, reauth: Reauth) -> None:
        self._passwords = passwords
        self._throttle = throttle
        self._reauth = reauth

    async def confirm(self, human: Human, proof: str | None, purpose: Purpose, *, totp: Totp, now: datetime) -> Factor:
        """The factor that the human confirmed with. A `rat_` token is used up by this.

        Raises:
            StepUpRequired: no proof, or not the one that is needed; with what to do.
            TooManyRequests: too many wrong passwords.
        """
        needs_totp = _needs_totp(human, totp)
        if needs_totp and not human.totp_confirmed:
            raise StepUpRequired("this needs a second factor, and your account has none", next_step=ENROL)
        if proof is not None and proof.startswith(REAUTH):
            factors: tuple[Factor, ...] = ("totp",) if needs_totp else ("password", "totp")
            factor = self._reauth.take(proof, human, purpose, now, factors=factors)
            if factor is not None:
                return factor
        elif proof is not None and not needs_totp:
            if await self.password(human, proof, now):
                return "password"
        raise _missing(purpose, needs_totp=needs_totp, given=proof is not None)

    async def password(self, human: Human, password: str, now: datetime) -> bool:
        """Whether this is the human's password; a wrong one counts as a guess."""
        attempt = self.attempt(human, now)
        right = await self._passwords.check(human.password_hash, password)
        if right:
            self.forgive(attempt)
        return right

    def attempt(self, human: Human, now: datetime) -> Attempt:
        """Count a guess at a factor of a human who is signed in, from wherever they are."""
        return self._throttle.attempt(human.id, None, now)

    def forgive(self, attempt: Attempt) -> None:
        """Take a guess back: it was right."""
        self._throttle.forgive(attempt)


def _needs_totp(human: Human, totp: Totp) -> bool:
    match totp:
        case "no":
            return False
        case "when enrolled":
            return human.totp_confirmed
        case "required":
            return True
        case _:
            assert_never(totp)


def _missing(purpose: Purpose, *, needs_totp: bool, given: bool) -> StepUpRequired:
    what = "what `X-Auth-Confirm` holds does not confirm who you are" if given else "confirm who you are in `X-Auth-Confirm`"
    token = f"a `rat_` token for `{purpose}` from POST /v1/auth/reauth/complete"
    if needs_totp:
        return StepUpRequired(f"{what}: this needs {token} with method `totp`", next_step=f"get {token} with method `totp`")
    return StepUpRequired(
        f"{what}: this needs the account password or {token}", next_step=f"send the account password or {token}"
    )
