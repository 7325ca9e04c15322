"""Proofs: once, for one purpose, by one human, for five minutes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.authn import reauth as reauth_module
from gateway.authn.reauth import Factor, Reauth
from tests.authn.builders import NOW, a_human

ANY: tuple[Factor, ...] = ("password", "totp")
HUMAN = a_human()


def test_a_proof_serves_once() -> None:
    reauth = Reauth()
    token = reauth.issue(HUMAN, "peer.export", "totp", NOW)
    assert token.startswith("rat_")
    assert reauth.take(token, HUMAN, "peer.export", NOW, factors=ANY) == "totp"
    assert reauth.take(token, HUMAN, "peer.export", NOW, factors=ANY) is None


def test_a_proof_ends_after_five_minutes_exactly() -> None:
    reauth = Reauth()
    tokens = [reauth.issue(HUMAN, "peer.export", "password", NOW) for _ in range(2)]
    end = NOW + timedelta(seconds=300)
    assert reauth.take(tokens[0], HUMAN, "peer.export", end - timedelta(microseconds=1), factors=ANY) == "password"
    assert reauth.take(tokens[1], HUMAN, "peer.export", end, factors=ANY) is None
    assert reauth.take(tokens[1], HUMAN, "peer.export", NOW, factors=ANY) is None


def test_a_proof_is_for_its_human_purpose_and_factor_and_a_wrong_use_does_not_spend_it() -> None:
    reauth = Reauth()
    token = reauth.issue(HUMAN, "peer.export", "password", NOW)
    assert reauth.take(token, a_human(9), "peer.export", NOW, factors=ANY) is None
    assert reauth.take(token, a_human(generation=2), "peer.export", NOW, factors=ANY) is None
    assert reauth.take(token, HUMAN, "peer.erase", NOW, factors=ANY) is None
    assert reauth.take(token, HUMAN, "peer.export", NOW, factors=("totp",)) is None
    assert reauth.take(token[:-1], HUMAN, "peer.export", NOW, factors=ANY) is None
    assert reauth.take(token, HUMAN, "peer.export", NOW, factors=ANY) == "password"


def test_the_proofs_of_one_human_can_be_forgotten() -> None:
    reauth = Reauth()
    mine, other = reauth.issue(HUMAN, "peer.erase", "totp", NOW), reauth.issue(a_human(9), "peer.erase", "totp", NOW)
    reauth.forget(HUMAN.id)
    assert reauth.take(mine, HUMAN, "peer.erase", NOW, factors=ANY) is None
    assert reauth.take(other, a_human(9), "peer.erase", NOW, factors=ANY) == "totp"


def test_the_oldest_proof_goes_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reauth_module, "HELD", 2)
    reauth = Reauth()
    tokens = [reauth.issue(HUMAN, "peer.erase", "totp", NOW) for _ in range(3)]
    assert [reauth.take(token, HUMAN, "peer.erase", NOW, factors=ANY) for token in tokens] == [None, "totp", "totp"]


def test_no_token_is_kept_as_it_was_shown() -> None:
    reauth = Reauth()
    token = reauth.issue(HUMAN, "peer.erase", "totp", NOW)
    assert token not in repr(vars(reauth))
