"""Confirming again who one is, and the second factor, over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyotp
import pytest

from gateway.errors import Unauthenticated
from gateway.model.grant import Session
from gateway.operations.call import Call
from gateway.operations.confirmation import confirm
from gateway.operations.fields import Fields
from gateway.store.humans import use_totp
from gateway.store.writer import Unit
from tests.builders import Client, Gateway, done

BEGIN, COMPLETE, TOTP = "/v1/auth/reauth/begin", "/v1/auth/reauth/complete", "/v1/auth/totp"


def code(gateway: Gateway, secret: str, *, offset: int = 0) -> str:
    return pyotp.TOTP(secret).generate_otp(int(gateway.clock.now.timestamp()) // 30 + offset)


def totp(who: Client, body: dict[str, str] | None = None) -> Any:
    """Enrol a second factor, or confirm it, with the password."""
    return who.post(TOTP, body, {"X-Auth-Confirm": who.password})


def enrol(gateway: Gateway, who: Client) -> str:
    """A confirmed second factor, at a time when its next code is fresh."""
    secret = str(done(totp(who), 201)["secret"])
    assert done(totp(who, {"code": code(gateway, secret)}), 200) == {"totp_enabled": True}
    gateway.clock.advance(timedelta(seconds=30))
    return secret


def complete(who: Client, **body: object) -> Any:
    return who.post(COMPLETE, {"purpose": "peer.export", **body})


def take(gateway: Gateway, who: Client, token: str, purpose: str = "peer.export") -> str | None:
    human = gateway.services.state.humans[who.id]
    reauth = gateway.services.authenticator.reauth
    return reauth.take(token, human, purpose, gateway.clock.now, factors=("password", "totp"))  # type: ignore[arg-type]


# -- reauthentication


def test_begin_says_what_the_method_needs(gateway: Gateway) -> None:
    assert done(gateway.member.post(BEGIN, {"method": "password", "purpose": "peer.export"}), 200) == {
        "method": "password",
        "purpose": "peer.export",
        "needs": ["password"],
        "expires_in": 300,
    }
    enrol(gateway, gateway.member)
    assert done(gateway.member.post(BEGIN, {"method": "totp", "purpose": "peer.erase"}), 200)["needs"] == ["code"]


def test_a_password_gives_a_proof_for_one_purpose(gateway: Gateway) -> None:
    answer = done(complete(gateway.member, method="password", password=gateway.member.password), 200)
    assert answer == {"reauth_token": answer["token"], "token": answer["token"], "expires_in": 300}
    assert answer["token"].startswith("rat_")
    assert take(gateway, gateway.member, answer["token"], "peer.erase") is None
    assert take(gateway, gateway.admin, answer["token"]) is None
    assert take(gateway, gateway.member, answer["token"]) == "password"
    assert take(gateway, gateway.member, answer["token"]) is None


def test_a_code_gives_a_proof_by_the_second_factor(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    answer = done(complete(gateway.member, method="totp", code=code(gateway, secret)), 200)
    assert take(gateway, gateway.member, answer["token"]) == "totp"


def test_a_code_is_accepted_once(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    shown = code(gateway, secret)
    assert complete(gateway.member, method="totp", code=shown).status_code == 200
    assert complete(gateway.member, method="totp", code=shown).status_code == 403
    assert complete(gateway.member, method="totp", code=code(gateway, secret, offset=-1)).status_code == 403
    assert complete(gateway.member, method="totp", code=code(gateway, secret, offset=1)).status_code == 200


def test_one_code_sent_twice_at_once_is_accepted_once(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    services, now = gateway.services, gateway.clock.now
    session = Session(services.authenticator.authenticate(gateway.member.key, now), "request", now)
    grant = services.access.authorize(session, "me.reauthenticate", services.state.orgs[session.caller.org_id])
    step = int(now.timestamp()) // 30
    both = [services.database.write(Unit(lambda tx: use_totp(tx, grant, secret, step), solo=True)) for _ in range(2)]
    assert [future.result() for future in both] == [True, False]


def test_a_used_code_stays_used_after_a_restart(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    complete(gateway.member, method="totp", code=code(gateway, secret))
    stored = gateway.services.database.read_sync(
        lambda rows: rows.value("SELECT totp_last_step FROM humans WHERE id = $1", gateway.member.id)
    )
    assert stored == int(gateway.clock.now.timestamp()) // 30


def test_a_wrong_password_or_code_is_a_403_and_the_eleventh_a_429(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    for number in range(10):
        guess = {"method": "totp", "code": "000000"} if number % 2 else {"method": "password", "password": "wrong"}
        answer = complete(gateway.member, **guess)
        assert (answer.status_code, answer.json()["title"]) == (403, "step-up required")
    for right in ({"method": "password", "password": gateway.member.password}, {"method": "totp", "code": code(gateway, secret)}):
        over = complete(gateway.member, **right)
        assert (over.status_code, over.headers["retry-after"]) == (429, "60")
    assert complete(gateway.admin, method="password", password=gateway.admin.password).status_code == 200
    gateway.clock.advance(timedelta(seconds=60))
    assert complete(gateway.member, method="totp", code=code(gateway, secret)).status_code == 200


def test_signing_in_does_not_buy_more_guesses_at_a_code(gateway: Gateway) -> None:
    enrol(gateway, gateway.member)
    credentials = {"email": gateway.member.email, "password": gateway.member.password}
    statuses = []
    for _ in range(11):
        assert gateway.http.post("/v1/auth/token", json=credentials).status_code in (200, 429)
        statuses.append(complete(gateway.member, method="totp", code="000000").status_code)
    assert statuses == [403] * 10 + [429]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"method": "password", "password": "x"}, "purpose"),
        ({"method": "password", "password": "x", "purpose": "policy.delete"}, "purpose"),
        ({"method": "passkey", "purpose": "peer.export"}, "method"),
        ({"method": "password", "purpose": "peer.export"}, "password"),
        ({"method": "totp", "purpose": "peer.export", "code": 123456}, "code"),
    ],
)
def test_a_malformed_request_is_a_400_that_names_the_field(gateway: Gateway, body: dict[str, object], field: str) -> None:
    answer = gateway.member.post(COMPLETE, body)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


def test_a_method_that_is_not_set_up_is_refused(gateway: Gateway) -> None:
    assert gateway.member.post(BEGIN, {"method": "totp", "purpose": "peer.export"}).status_code == 409
    totp(gateway.member)
    assert complete(gateway.member, method="totp", code="000000").status_code == 409


def test_agents_have_no_factors(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    assert agent.post(BEGIN, {"method": "password", "purpose": "peer.export"}).status_code == 403
    assert complete(agent, method="password", password="x").status_code == 403
    assert agent.post(TOTP).status_code == 403
    assert agent.delete(TOTP).status_code == 403


# -- enrolling and removing


def test_a_key_alone_neither_begins_nor_confirms_a_second_factor(gateway: Gateway) -> None:
    for headers in ({}, {"X-Auth-Confirm": "wrong"}):
        refused = gateway.member.post(TOTP, headers=headers)
        assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
    assert gateway.services.state.humans[gateway.member.id].totp_secret is None
    secret = str(done(totp(gateway.member), 201)["secret"])
    refused = gateway.member.post(TOTP, {"code": code(gateway, secret)})
    assert (refused.status_code, refused.json()["title"]) == (403, "step-up required")
    assert done(gateway.member.get("/v1/auth/me"), 200)["totp_enabled"] is False
    proof = done(complete(gateway.member, method="password", password=gateway.member.password, purpose="totp.enrol"), 200)
    done(gateway.member.post(TOTP, {"code": code(gateway, secret)}, {"X-Auth-Confirm": proof["token"]}), 200)


def test_who_has_no_password_enrols_no_second_factor(gateway: Gateway) -> None:
    person = replace(gateway.services.state.humans[gateway.member.id], password_hash=None)
    gateway.services.state.put_human(person)
    for headers in ({}, {"X-Auth-Confirm": ""}, {"X-Auth-Confirm": gateway.member.password}):
        refused = gateway.member.post(TOTP, headers=headers)
        assert (refused.status_code, "claim the account first" in refused.json()["detail"]) == (403, True)


def test_wrong_passwords_of_strangers_do_not_use_up_the_guesses_of_who_is_signed_in(gateway: Gateway) -> None:
    guess = {"email": gateway.member.email, "password": "a wrong password"}
    assert [gateway.http.post("/v1/auth/token", json=guess).status_code for _ in range(11)] == [401] * 10 + [429]
    secret = enrol(gateway, gateway.member)
    assert complete(gateway.member, method="password", password=gateway.member.password).status_code == 200
    assert complete(gateway.member, method="totp", code=code(gateway, secret)).status_code == 200


def test_a_second_factor_counts_only_once_it_is_confirmed(gateway: Gateway) -> None:
    made = done(totp(gateway.member), 201)
    assert set(made) == {"secret", "uri"}
    assert made["uri"].startswith("otpauth://totp/Peergate:")
    assert done(gateway.member.get("/v1/auth/me"), 200)["totp_enabled"] is False
    assert totp(gateway.member, {"code": "000000"}).status_code == 403
    assert done(gateway.member.get("/v1/auth/me"), 200)["totp_enabled"] is False
    assert done(totp(gateway.member, {"code": code(gateway, made["secret"])}), 200) == {"totp_enabled": True}
    assert done(gateway.member.get("/v1/auth/me"), 200)["totp_enabled"] is True


def test_the_code_that_confirmed_is_used_up(gateway: Gateway) -> None:
    secret = str(done(totp(gateway.member), 201)["secret"])
    shown = code(gateway, secret)
    done(totp(gateway.member, {"code": shown}), 200)
    assert complete(gateway.member, method="totp", code=shown).status_code == 403


def test_beginning_again_replaces_a_secret_that_waits_and_never_one_that_counts(gateway: Gateway) -> None:
    first = str(done(totp(gateway.member), 201)["secret"])
    second = str(done(totp(gateway.member), 201)["secret"])
    assert totp(gateway.member, {"code": code(gateway, first)}).status_code == 403
    done(totp(gateway.member, {"code": code(gateway, second)}), 200)
    assert totp(gateway.member).status_code == 409
    assert gateway.services.state.humans[gateway.member.id].totp_secret == second


def test_a_code_with_nothing_to_confirm_is_a_conflict(gateway: Gateway) -> None:
    assert totp(gateway.member, {"code": "000000"}).status_code == 409


def test_confirming_ends_proofs_that_were_given_without_it(gateway: Gateway) -> None:
    proof = done(complete(gateway.member, method="password", password=gateway.member.password), 200)["token"]
    enrol(gateway, gateway.member)
    assert take(gateway, gateway.member, proof) is None


def test_a_second_factor_is_removed_only_with_a_fresh_code_of_its_own(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    used = code(gateway, secret, offset=-1)
    assert gateway.member.delete(TOTP).status_code == 403
    assert gateway.member.delete(TOTP, headers={"X-Auth-Confirm": gateway.member.password}).status_code == 403
    for wrong in ("000000", used):
        assert gateway.member.request("DELETE", TOTP, {"code": wrong}).status_code == 403
    assert done(gateway.member.get("/v1/auth/me"), 200)["totp_enabled"] is True
    proof = done(complete(gateway.member, method="totp", code=code(gateway, secret)), 200)["token"]
    assert gateway.member.request("DELETE", TOTP, {"code": code(gateway, secret, offset=1)}).status_code == 204
    assert done(gateway.member.get("/v1/auth/me"), 200)["totp_enabled"] is False
    assert take(gateway, gateway.member, proof) is None


def test_what_was_never_confirmed_is_removed_without_a_code(gateway: Gateway) -> None:
    totp(gateway.member)
    assert [gateway.member.delete(TOTP).status_code for _ in range(2)] == [204, 204]
    assert gateway.services.state.humans[gateway.member.id].totp_secret is None


def test_enrolling_and_removing_are_audited_without_the_secret(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    gateway.member.request("DELETE", TOTP, {"code": code(gateway, secret)})
    rows = gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT action, principal_id, resource_id FROM log WHERE action LIKE 'totp.%' ORDER BY seq")
    )
    assert rows == [
        ("totp.started", gateway.member.id, gateway.member.id),
        ("totp.enrolled", gateway.member.id, gateway.member.id),
        ("totp.removed", gateway.member.id, gateway.member.id),
    ]
    assert secret not in str(gateway.services.database.read_sync(lambda rows: rows.all("SELECT * FROM log")))


def test_no_answer_shows_the_secret_after_enrolment(gateway: Gateway) -> None:
    secret = enrol(gateway, gateway.member)
    for answer in (
        gateway.member.get("/v1/auth/me"),
        gateway.owner.get("/v1/org/members"),
        gateway.member.get("/v1/auth/api-keys"),
    ):
        assert secret not in answer.text


def test_a_human_who_was_removed_meanwhile_confirms_nothing(gateway: Gateway) -> None:
    session = Session(
        gateway.services.authenticator.authenticate(gateway.member.key, gateway.clock.now), "request", gateway.clock.now
    )
    call = Call(gateway.services, session, {}, Fields({}), Fields({}), {"x-auth-confirm": gateway.member.password})
    done(gateway.owner.delete(f"/v1/org/members/{gateway.member.id}"), 204)
    with pytest.raises(Unauthenticated):
        asyncio.run(confirm(call, "peer.export", totp="no"))
