"""Members and their roles over HTTP."""

from __future__ import annotations

import pytest

from gateway.model.ids import new_id
from tests.builders import Client, Gateway, done


def session(gateway: Gateway, who: Client) -> Client:
    token = done(gateway.http.post("/v1/auth/token", json={"email": who.email, "password": who.password}), 200)
    return Client(gateway.http, who.id, token["access_token"])


def exchange(gateway: Gateway, who: Client) -> Client:
    token = done(gateway.http.post("/v1/auth/api-key-token", json={"api_key": who.key}), 200)
    return Client(gateway.http, who.id, token["access_token"])


def audited(gateway: Gateway, action: str) -> list[tuple[str, str, dict[str, object]]]:
    events = done(gateway.owner.get("/v1/audit/events", action=action), 200)["events"]
    kept = ("request_id", "decision_id")
    return [
        (event["actor_id"], event["resource_id"], {k: v for k, v in event["details"].items() if k not in kept})
        for event in events
    ]


def test_an_owner_adds_a_member_who_signs_in_with_the_password_shown_once(gateway: Gateway) -> None:
    body = {"email": " New@Sample.Example", "role": "auditor", "display_name": "New"}
    made = done(gateway.owner.post("/v1/org/members", body), 201)
    member = {
        "id": made["member"]["id"],
        "email": "new@sample.example",
        "display_name": "New",
        "role": "auditor",
        "totp_enabled": False,
        "created_at": "2026-03-04T10:00:00Z",
    }
    assert made["member"] == member
    listed = gateway.owner.get("/v1/org/members")
    assert member in done(listed, 200)["members"]
    assert made["password"] not in listed.text
    client = Client(gateway.http, member["id"], "", "new@sample.example", made["password"])
    assert done(session(gateway, client).get("/v1/auth/me"), 200)["role"] == "auditor"
    assert audited(gateway, "member.added")[0] == (gateway.owner.id, member["id"], {"role": "auditor"})


def test_members_of_another_organisation_are_not_listed(gateway: Gateway) -> None:
    members = done(gateway.other_owner.get("/v1/org/members"), 200)["members"]
    assert [member["id"] for member in members] == [gateway.other_owner.id]


@pytest.mark.parametrize("spelling", ["owner@other.example", "OWNER@other.example ", "owner@sample.example"])
def test_an_address_belongs_to_one_account_everywhere(gateway: Gateway, spelling: str) -> None:
    answer = gateway.owner.post("/v1/org/members", {"email": spelling, "role": "member"})
    assert (answer.status_code, answer.json()["detail"]) == (409, "`email` is in use already")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"role": "member"}, "email"),
        ({"email": "no address", "role": "member"}, "email"),
        ({"email": "a@b.c", "role": "root"}, "role"),
        ({"email": "a@b.c", "role": "Owner"}, "role"),
        ({"email": "a@b.c"}, "role"),
        ({"email": "a@b.c", "role": "member", "password": "chosen by the owner"}, "password"),
        ({"email": "a@b.c", "role": "member", "org_id": "x"}, "org_id"),
    ],
)
def test_a_malformed_member_is_a_400_that_names_the_field(gateway: Gateway, body: dict[str, object], field: str) -> None:
    answer = gateway.owner.post("/v1/org/members", body)
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


@pytest.mark.parametrize("role", ["admin", "security", "auditor", "member"])
def test_nobody_but_an_owner_manages_members(gateway: Gateway, role: str) -> None:
    client: Client = getattr(gateway, role)
    target = f"/v1/org/members/{gateway.member.id}"
    answers = [
        client.get("/v1/org/members"),
        client.post("/v1/org/members", {"email": "a@b.c", "role": "owner"}),
        client.patch(f"/v1/org/members/{client.id}", {"role": "owner"}),
        client.patch(target, {"role": "owner"}),
        client.delete(target),
    ]
    assert [answer.status_code for answer in answers] == [403] * 5
    assert gateway.services.state.humans[client.id].role == role


def test_an_agent_does_not_manage_members(gateway: Gateway) -> None:
    agent = gateway.agent("a")
    assert agent.get("/v1/org/members").status_code == 403
    assert agent.post("/v1/org/members", {"email": "a@b.c", "role": "owner"}).status_code == 403
    assert agent.delete(f"/v1/org/members/{gateway.member.id}").status_code == 403


def test_a_member_of_another_organisation_is_as_unknown_as_none(gateway: Gateway) -> None:
    ids = (gateway.other_owner.id, new_id(), "no-id", gateway.agent("a").id)
    for answers in (
        [gateway.owner.patch(f"/v1/org/members/{i}", {"role": "member"}) for i in ids],
        [gateway.owner.delete(f"/v1/org/members/{i}") for i in ids],
    ):
        assert [answer.status_code for answer in answers] == [404] * 4
        assert len({answer.content for answer in answers}) == 1
    assert gateway.services.state.humans[gateway.other_owner.id].role == "owner"


def test_a_change_of_role_ends_every_key_and_token_before_it_answers(gateway: Gateway) -> None:
    clients = [gateway.member, session(gateway, gateway.member), exchange(gateway, gateway.member)]
    assert [client.get("/v1/auth/me").status_code for client in clients] == [200] * 3
    changed = done(gateway.owner.patch(f"/v1/org/members/{gateway.member.id}", {"role": "admin"}), 200)["member"]
    assert (changed["id"], changed["role"]) == (gateway.member.id, "admin")
    assert [client.get("/v1/auth/me").status_code for client in clients] == [401] * 3
    assert done(session(gateway, gateway.member).get("/v1/auth/me"), 200)["role"] == "admin"
    assert audited(gateway, "member.role_changed")[0] == (
        gateway.owner.id,
        gateway.member.id,
        {"role": "admin", "role_before": "member"},
    )


def test_a_change_of_role_ends_proofs_as_well(gateway: Gateway) -> None:
    human = gateway.services.state.humans[gateway.member.id]
    reauth = gateway.services.authenticator.reauth
    proof = reauth.issue(human, "peer.export", "password", gateway.clock.now)
    done(gateway.owner.patch(f"/v1/org/members/{human.id}", {"role": "admin"}), 200)
    now = gateway.services.state.humans[human.id]
    assert reauth.take(proof, now, "peer.export", gateway.clock.now, factors=("password",)) is None


def test_the_same_role_again_changes_nothing(gateway: Gateway) -> None:
    done(gateway.owner.patch(f"/v1/org/members/{gateway.member.id}", {"role": "member"}), 200)
    assert gateway.member.get("/v1/auth/me").status_code == 200
    assert audited(gateway, "member.role_changed") == []


def test_a_removed_member_is_out_before_it_answers(gateway: Gateway) -> None:
    clients = [gateway.member, session(gateway, gateway.member), exchange(gateway, gateway.member)]
    assert gateway.owner.delete(f"/v1/org/members/{gateway.member.id}").status_code == 204
    assert [client.get("/v1/auth/me").status_code for client in clients] == [401] * 3
    again = gateway.http.post("/v1/auth/token", json={"email": gateway.member.email, "password": gateway.member.password})
    assert again.status_code == 401
    assert gateway.owner.delete(f"/v1/org/members/{gateway.member.id}").status_code == 404
    assert audited(gateway, "member.removed")[0] == (gateway.owner.id, gateway.member.id, {"role": "member"})


def test_the_address_of_a_removed_member_is_free_again(gateway: Gateway) -> None:
    gateway.owner.delete(f"/v1/org/members/{gateway.member.id}")
    again = done(gateway.owner.post("/v1/org/members", {"email": gateway.member.email, "role": "member"}), 201)
    assert again["member"]["id"] != gateway.member.id


def test_agents_of_a_removed_member_stay(gateway: Gateway) -> None:
    agent = gateway.agent("a", by=gateway.member)
    gateway.owner.delete(f"/v1/org/members/{gateway.member.id}")
    assert agent.get("/v1/agents/me").status_code == 200


def test_the_last_owner_cannot_go(gateway: Gateway) -> None:
    own = f"/v1/org/members/{gateway.owner.id}"
    answers = [gateway.owner.delete(own), gateway.owner.patch(own, {"role": "admin"})]
    assert [answer.status_code for answer in answers] == [409, 409]
    assert "last owner" in answers[0].json()["detail"]
    assert gateway.owner.get("/v1/auth/me").status_code == 200


def test_an_owner_may_go_while_another_stays(gateway: Gateway) -> None:
    second = gateway.human("owner")
    assert gateway.owner.delete(f"/v1/org/members/{gateway.owner.id}").status_code == 204
    assert gateway.owner.get("/v1/auth/me").status_code == 401
    assert second.patch(f"/v1/org/members/{second.id}", {"role": "member"}).status_code == 409


def test_no_address_or_name_is_audited(gateway: Gateway) -> None:
    done(
        gateway.owner.post("/v1/org/members", {"email": "canary@sample.example", "role": "member", "display_name": "Canary"}), 201
    )
    rows = gateway.services.database.read_sync(lambda rows: rows.all("SELECT * FROM log"))
    assert "canary" not in str(rows).lower()
