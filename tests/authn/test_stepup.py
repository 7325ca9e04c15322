"""Confirming who one is: what counts for what."""

from __future__ import annotations

import asyncio

import pytest

from gateway.authn.passwords import Passwords, hash_password
from gateway.authn.reauth import Factor, Purpose, Reauth
from gateway.authn.stepup import StepUp, Totp
from gateway.authn.throttle import Throttle
from gateway.errors import StepUpRequired, TooManyRequests
from gateway.model.records import Human
from tests.authn.builders import NOW, a_human

WORD = "correct horse battery"
PLAIN = a_human(password_hash=hash_password(WORD))
ENROLLED = a_human(password_hash=PLAIN.password_hash, totp_secret="GEZDGNBVGY3TQOJQ", totp_confirmed=True)
HALF = a_human(password_hash=PLAIN.password_hash, totp_secret="GEZDGNBVGY3TQOJQ")


class Desk:
    """A step-up with its proofs at hand."""

    def __init__(self) -> None:
        self.reauth = Reauth()
        self.stepup = StepUp(Passwords(), Throttle(), self.reauth)

    def confirm(self, human: Human, proof: str | None, totp: Totp, purpose: Purpose = "peer.export") -> Factor:
        return asyncio.run(self.stepup.confirm(human, proof, purpose, totp=totp, now=NOW))


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.mark.parametrize(
    ("human", "totp", "proof", "accepted"),
    [
        (PLAIN, "no", "a password", True),
        (PLAIN, "no", "password", True),
        (PLAIN, "when enrolled", "a password", True),
        (PLAIN, "when enrolled", "password", True),
        (PLAIN, "required", "a password", False),
        (PLAIN, "required", "password", False),
        (PLAIN, "required", "totp", False),
        (HALF, "when enrolled", "a password", True),
        (HALF, "required", "totp", False),
        (ENROLLED, "no", "a password", True),
        (ENROLLED, "no", "password", True),
        (ENROLLED, "no", "totp", True),
        (ENROLLED, "when enrolled", "a password", False),
        (ENROLLED, "when enrolled", "password", False),
        (ENROLLED, "when enrolled", "totp", True),
        (ENROLLED, "required", "a password", False),
        (ENROLLED, "required", "password", False),
        (ENROLLED, "required", "totp", True),
    ],
)
def test_what_confirms_depends_on_the_act_and_on_the_second_factor(
    desk: Desk, human: Human, totp: Totp, proof: str, accepted: bool
) -> None:
    sent = WORD if proof == "a password" else desk.reauth.issue(human, "peer.export", proof, NOW)  # type: ignore[arg-type]
    if accepted:
        assert desk.confirm(human, sent, totp) == ("password" if proof == "a password" else proof)
    else:
        with pytest.raises(StepUpRequired) as refused:
            desk.confirm(human, sent, totp)
        assert (refused.value.status, refused.value.title) == (403, "step-up required")


def test_without_a_proof_the_sentence_says_what_is_needed(desk: Desk) -> None:
    with pytest.raises(StepUpRequired) as password:
        desk.confirm(PLAIN, None, "no")
    with pytest.raises(StepUpRequired) as code:
        desk.confirm(ENROLLED, None, "required")
    with pytest.raises(StepUpRequired) as enrol:
        desk.confirm(PLAIN, None, "required")
    token = "a `rat_` token for `peer.export` from POST /v1/auth/reauth/complete"
    assert password.value.detail == f"confirm who you are in `X-Auth-Confirm`: this needs the account password or {token}"
    assert code.value.detail == f"confirm who you are in `X-Auth-Confirm`: this needs {token} with method `totp`"
    assert enrol.value.detail == "this needs a second factor, and your account has none"
    assert "POST /v1/auth/totp" in (enrol.value.next_step or "")


@pytest.mark.parametrize("words", ["no scopes", "scopes do not cover", "token has been revoked"])
def test_no_sentence_makes_a_client_throw_its_token_away(desk: Desk, words: str) -> None:
    for human, proof, totp in (
        (PLAIN, None, "no"),
        (PLAIN, "wrong", "no"),
        (PLAIN, None, "required"),
        (ENROLLED, "rat_x", "required"),
    ):
        with pytest.raises(StepUpRequired) as refused:
            desk.confirm(human, proof, totp)  # type: ignore[arg-type]
        assert words not in refused.value.detail


def test_a_proof_is_spent_by_the_first_use(desk: Desk) -> None:
    token = desk.reauth.issue(PLAIN, "peer.export", "password", NOW)
    desk.confirm(PLAIN, token, "no")
    with pytest.raises(StepUpRequired):
        desk.confirm(PLAIN, token, "no")


def test_a_proof_for_another_purpose_or_human_is_refused(desk: Desk) -> None:
    token = desk.reauth.issue(PLAIN, "peer.export", "password", NOW)
    with pytest.raises(StepUpRequired):
        desk.confirm(PLAIN, token, "no", "peer.erase")
    with pytest.raises(StepUpRequired):
        desk.confirm(a_human(9), token, "no")


def test_the_eleventh_wrong_password_is_throttled_and_made_up_tokens_are_not(desk: Desk) -> None:
    for _ in range(12):
        with pytest.raises(StepUpRequired):
            desk.confirm(PLAIN, "rat_made-up", "no")
    for _ in range(10):
        with pytest.raises(StepUpRequired):
            desk.confirm(PLAIN, "wrong", "no")
    with pytest.raises(TooManyRequests):
        desk.confirm(PLAIN, WORD, "no")


def test_an_account_without_a_password_is_confirmed_by_none(desk: Desk) -> None:
    for guess in ("", "the password of nobody", "None"):
        with pytest.raises(StepUpRequired):
            desk.confirm(a_human(), guess, "no")
