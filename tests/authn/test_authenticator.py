"""From a credential to a caller, and every way in which it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.authn.authenticator import Authenticator
from gateway.authn.keys import Prefix
from gateway.authn.passwords import hash_password
from gateway.authn.signer import Signer
from gateway.errors import TooManyRequests, Unauthenticated
from gateway.model.caller import Caller
from gateway.model.records import Agent, Credential, Human
from tests.authn.builders import NOW, ORG, People, a_human, an_agent, an_app

SENTENCE = "the credential is missing, unknown, expired or revoked"


@pytest.fixture
def people() -> People:
    return People()


@pytest.fixture
def authenticator(tmp_path: Path, people: People) -> Authenticator:
    return Authenticator(Signer.create(tmp_path), people, rate_limit=0)


def refused(authenticator: Authenticator, bearer: str | None, *, seconds: float = 0) -> None:
    with pytest.raises(Unauthenticated) as error:
        authenticator.authenticate(bearer, NOW + timedelta(seconds=seconds))
    assert (error.value.status, error.value.detail) == (401, SENTENCE)


# -- keys as bearer


def test_a_key_of_each_kind_is_a_bearer(authenticator: Authenticator, people: People) -> None:
    for holder, kind in ((a_human(), "Human"), (an_agent(), "Agent"), (an_app(), "Platform")):
        secret, credential = people.key_for(holder)
        assert authenticator.authenticate(secret, NOW) == Caller(kind, holder.id, ORG, credential.id)  # type: ignore[arg-type]


def test_a_key_ends_at_its_end(authenticator: Authenticator, people: People) -> None:
    secret, _ = people.key_for(a_human(), expires_at=NOW + timedelta(seconds=10))
    assert authenticator.authenticate(secret, NOW + timedelta(seconds=9)).expires_at == NOW + timedelta(seconds=10)
    refused(authenticator, secret, seconds=10)


@pytest.mark.parametrize(
    "bearer", [None, "", " ", "1ck_", "ocv_", "plt_unknown", "ocv_" + "a" * 10_000, "1ck_\u00e9", "1ck_\ud800", "nonsense"]
)
def test_an_unknown_bearer_is_refused_in_the_same_words(authenticator: Authenticator, bearer: str | None) -> None:
    refused(authenticator, bearer)


def test_a_changed_key_is_refused(authenticator: Authenticator, people: People) -> None:
    secret, _ = people.key_for(an_agent())
    for changed in (secret[:-1], secret + "a", secret.swapcase(), f" {secret}", f"{secret} ", secret.removeprefix("ocv_")):
        refused(authenticator, changed)


@pytest.mark.parametrize("prefix", ["1ck_", "plt_", "ct_", "rat_"])
def test_a_key_whose_prefix_is_not_its_holders_is_refused(authenticator: Authenticator, people: People, prefix: Prefix) -> None:
    secret, _ = people.key_for(an_agent(), prefix=prefix)
    refused(authenticator, secret)


def test_the_stored_hash_is_no_key(authenticator: Authenticator, people: People) -> None:
    _, credential = people.key_for(an_agent())
    refused(authenticator, credential.secret_hash)
    refused(authenticator, "ocv_" + credential.secret_hash)


def test_a_look_up_that_answers_another_row_is_not_believed(tmp_path: Path) -> None:
    class Careless(People):
        def credential_with_hash(self, secret_hash: str) -> Credential | None:
            return next(iter(self.credentials.values()))

    people = Careless()
    people.key_for(an_agent())
    refused(Authenticator(Signer.create(tmp_path), people, rate_limit=0), "ocv_guess")


# -- what ends a key or a token, at once

AGENT = an_agent()


def without_key(people: People) -> None:
    people.credentials.clear()


def without_agent(people: People) -> None:
    people.agents.clear()


def inactive(people: People) -> None:
    people.agents[AGENT.id] = replace(AGENT, is_active=False)


def moved(people: People) -> None:
    people.agents[AGENT.id] = replace(AGENT, org_id="elsewhere")


def next_generation(people: People) -> None:
    people.agents[AGENT.id] = replace(AGENT, generation=2)


def key_ended(people: People) -> None:
    people.credentials.update({i: replace(c, expires_at=NOW) for i, c in people.credentials.items()})


def key_of_another(people: People) -> None:
    people.credentials.update({i: replace(c, principal_id=an_agent(8).id) for i, c in people.credentials.items()})


def signed_out(people: People) -> None:
    people.revoked_tokens["every"] = NOW


@pytest.mark.parametrize("ending", [without_key, without_agent, inactive, moved, key_ended, key_of_another])
def test_whatever_ends_a_key_ends_it_at_once(
    authenticator: Authenticator, people: People, ending: Callable[[People], None]
) -> None:
    secret, _ = people.key_for(AGENT)
    authenticator.authenticate(secret, NOW)
    ending(people)
    refused(authenticator, secret)


@pytest.mark.parametrize("ending", [without_key, without_agent, inactive, moved, next_generation, key_ended, key_of_another])
def test_whatever_ends_a_token_ends_it_at_once_though_its_signature_is_remembered(
    authenticator: Authenticator, people: People, ending: Callable[[People], None]
) -> None:
    secret, _ = people.key_for(AGENT)
    credential, agent = authenticator.agent_of_key(secret, NOW)
    token = authenticator.issue(agent, credential, NOW).access_token
    assert authenticator.authenticate(token, NOW).id == AGENT.id
    ending(people)
    refused(authenticator, token)


def test_a_revoked_token_ends_at_once_and_another_of_the_same_key_does_not(authenticator: Authenticator, people: People) -> None:
    _, credential = people.key_for(AGENT)
    one, other = (authenticator.issue(AGENT, credential, NOW).access_token for _ in range(2))
    token_id = authenticator.authenticate(one, NOW).token_id
    assert token_id is not None
    people.revoked_tokens[token_id] = NOW
    refused(authenticator, one)
    assert authenticator.authenticate(other, NOW).token_id != token_id


def test_a_token_is_refused_by_a_gateway_with_other_keys(tmp_path: Path, authenticator: Authenticator, people: People) -> None:
    people.key_for(AGENT)
    stranger = Authenticator(Signer.create(tmp_path / "other"), people, rate_limit=0)
    refused(authenticator, stranger.issue(AGENT, None, NOW).access_token)


# -- tokens


def test_a_token_says_who_and_until_when(authenticator: Authenticator, people: People) -> None:
    _, credential = people.key_for(AGENT)
    token = authenticator.issue(AGENT, credential, NOW)
    caller = authenticator.authenticate(token.access_token, NOW)
    assert token.expires_in == 3600
    assert caller == Caller("Agent", AGENT.id, ORG, credential.id, caller.token_id, NOW + timedelta(seconds=3600))
    refused(authenticator, token.access_token, seconds=3600)


def test_a_password_session_is_a_credential_of_one_human(authenticator: Authenticator, people: People) -> None:
    one, other = a_human(), a_human(9)
    people.humans |= {one.id: one, other.id: other}
    callers = [authenticator.authenticate(authenticator.issue(human, None, NOW).access_token, NOW) for human in (one, other, one)]
    assert callers[0].credential_id == callers[2].credential_id != callers[1].credential_id


@pytest.mark.parametrize(
    ("principal", "left", "expected"),
    [
        (a_human(), None, 900),
        (an_agent(token_ttl_seconds=120), None, 120),
        (an_agent(token_ttl_seconds=86_400), 600, 600),
        (an_agent(), 30, 61),
        (a_human(), 10**6, 900),
    ],
)
def test_a_token_lives_as_long_as_its_principal_and_key_say_and_never_too_short_for_a_client(
    authenticator: Authenticator, people: People, principal: Human | Agent, left: int | None, expected: int
) -> None:
    _, credential = people.key_for(principal, expires_at=NOW + timedelta(seconds=left) if left is not None else None)
    token = authenticator.issue(principal, credential, NOW)
    assert token.expires_in == expected
    end = min(expected, left or expected)
    authenticator.authenticate(token.access_token, NOW + timedelta(seconds=end - 1))
    refused(authenticator, token.access_token, seconds=end)


def test_scopes_that_no_header_could_carry_are_left_out(authenticator: Authenticator, people: People) -> None:
    for scopes in (["a"], ["b" * 100] * 100, "text", [1, "c"]):
        agent = an_agent(attributes={"scopes": scopes})
        people.agents[agent.id] = agent
        assert authenticator.authenticate(authenticator.issue(agent, None, NOW).access_token, NOW).id == agent.id


def test_a_key_is_exchanged_only_for_its_own_kind(authenticator: Authenticator, people: People) -> None:
    human_key, _ = people.key_for(a_human())
    agent_key, _ = people.key_for(an_agent())
    platform_key, _ = people.key_for(an_app())
    assert authenticator.human_of_key(human_key, NOW)[1] == a_human()
    assert authenticator.agent_of_key(agent_key, NOW)[1] == an_agent()
    for key in (agent_key, platform_key, "text"):
        with pytest.raises(Unauthenticated):
            authenticator.human_of_key(key, NOW)
    for key in (human_key, platform_key, "text"):
        with pytest.raises(Unauthenticated):
            authenticator.agent_of_key(key, NOW)


def test_no_secret_shows_when_things_are_printed(authenticator: Authenticator, people: People) -> None:
    human = a_human(password_hash="the hash", totp_secret="the seed")
    secret, credential = people.key_for(human)
    token = authenticator.issue(human, credential, NOW)
    shown = repr((token, authenticator.authenticate(secret, NOW), credential, human))
    for hidden in (secret, token.access_token, credential.secret_hash, "the hash", "the seed"):
        assert hidden not in shown


# -- passwords


def test_a_wrong_password_and_an_unknown_account_are_refused_alike_and_counted_alike(authenticator: Authenticator) -> None:
    human = a_human(password_hash=hash_password("correct horse battery"))
    for found in (human, None):
        for _ in range(10):
            with pytest.raises(Unauthenticated) as wrong:
                asyncio.run(authenticator.check_password(found, "a@sample.example", "wrong", NOW, "192.0.2.1"))
            assert wrong.value.detail == SENTENCE
        with pytest.raises(TooManyRequests) as over:
            asyncio.run(authenticator.check_password(found, "a@sample.example", "correct horse battery", NOW, "192.0.2.1"))
        assert over.value.retry_after == 60


def test_a_wrong_bearer_is_never_throttled(authenticator: Authenticator) -> None:
    for _ in range(50):
        refused(authenticator, "ocv_wrong")
    assert not authenticator.throttle._made


def test_right_passwords_are_not_counted(authenticator: Authenticator) -> None:
    human = a_human(password_hash=hash_password("correct horse battery"))
    for _ in range(12):
        asyncio.run(authenticator.check_password(human, human.email, "correct horse battery", NOW, None))
