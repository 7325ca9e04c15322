"""Changing one's own password over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Client, Gateway, done

PATH = "/v1/auth/change-password"
NEW = "a password of my own"


def change(who: Client, current: str, new: str = NEW) -> Any:
    return who.post(PATH, {"current_password": current, "new_password": new})


def sign_in(gateway: Gateway, who: Client, password: str) -> Any:
    return gateway.http.post("/v1/auth/token", json={"email": who.email, "password": password})


def test_a_member_replaces_the_password_that_was_handed_to_them(gateway: Gateway) -> None:
    member = gateway.member
    token = Client(gateway.http, member.id, done(sign_in(gateway, member, member.password), 200)["access_token"])
    proof = done(
        member.post("/v1/auth/reauth/complete", {"method": "password", "purpose": "peer.export", "password": member.password}),
        200,
    )["token"]
    peer = gateway.peer(member)
    assert change(member, member.password).status_code == 204
    assert token.get("/v1/auth/me").status_code == 401
    assert sign_in(gateway, member, member.password).status_code == 401
    assert sign_in(gateway, member, NEW).status_code == 200
    assert member.get("/v1/auth/me").status_code == 200
    export = f"/v1/peers/{peer['id']}/export"
    for stale in (proof, member.password):
        assert member.request("GET", export, headers={"X-Auth-Confirm": stale}).status_code == 403
    assert member.request("GET", export, headers={"X-Auth-Confirm": NEW}).status_code == 200
    rows = gateway.services.database.read_sync(
        lambda rows: rows.all("SELECT principal_id, resource_id FROM log WHERE action = 'password.changed'")
    )
    assert rows == [(member.id, member.id)]
    stored = str(gateway.services.database.read_sync(lambda rows: rows.all("SELECT * FROM log")))
    assert member.password not in stored
    assert NEW not in stored


def test_a_token_changes_the_password_and_ends_with_it(gateway: Gateway) -> None:
    member = gateway.member
    token = Client(gateway.http, member.id, done(sign_in(gateway, member, member.password), 200)["access_token"])
    assert change(token, member.password).status_code == 204
    assert change(token, NEW).status_code == 401


def test_wrong_guesses_at_the_current_password_are_refused_and_the_eleventh_is_throttled(gateway: Gateway) -> None:
    answers = [change(gateway.member, "wrong") for _ in range(11)]
    assert [answer.status_code for answer in answers] == [403] * 10 + [429]
    assert change(gateway.member, gateway.member.password).status_code == 429
    assert sign_in(gateway, gateway.member, gateway.member.password).status_code == 200


@pytest.mark.parametrize("new", ["short", "x" * 257, None, 7])
def test_a_new_password_has_12_to_256_characters(gateway: Gateway, new: object) -> None:
    refused = gateway.member.post(PATH, {"current_password": gateway.member.password, "new_password": new})
    assert (refused.status_code, list(refused.json()["fields"])) == (400, ["new_password"])


def test_agents_have_no_password(gateway: Gateway) -> None:
    assert change(gateway.agent(), "x").status_code == 403
