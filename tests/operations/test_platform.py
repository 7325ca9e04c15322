"""Platforms: people connected, agents provisioned once, claims, and the end of a connection."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import Client, Gateway, done
from tests.operations.asking import ABSENT, actions, ask, decide, restart, stored

RULES = {"rules": [{"action_type": "refund.create", "mode": "approve"}]}
AGENTS = [{"name": "buyer", "action_approval_policy": RULES}, {"name": "reader"}]


@dataclass(frozen=True, slots=True)
class Platform:
    """An application with its key, and a template of two agents."""

    app: Client
    template_id: str
    gateway: Gateway

    def connect(self, email: str = "new@people.example") -> dict[str, Any]:
        answer = self.app.post("/v1/platform/users/upsert", {"email": email})
        assert answer.status_code in (200, 201), answer.text
        made: dict[str, Any] = answer.json()
        return made

    def bootstrap(self, connection_id: str, **body: object) -> Any:
        sent = {"template_id": self.template_id, **body}
        return self.app.post(f"/v1/platform/connections/{connection_id}/bootstrap", sent)

    def person(self, claim_token: str, password: str = "a long enough password") -> Client:
        """The person after their first sign-in."""
        token = done(self.gateway.http.post("/v1/auth/claim", json={"claim_token": claim_token, "password": password}), 200)
        signed_in = Client(self.gateway.http, "", token["access_token"], password=password)
        return Client(self.gateway.http, done(signed_in.get("/v1/auth/me"), 200)["id"], token["access_token"], password=password)


def platform_of(gateway: Gateway, owner: Client, slug: str = "shop") -> Platform:
    made = done(owner.post("/v1/org/platform-apps", {"name": "Shop", "slug": slug}), 201)
    template = done(owner.post("/v1/org/platform-templates", {"name": "two", "agents": AGENTS}), 201)["template"]
    return Platform(Client(gateway.http, made["app"]["id"], made["api_key"]), template["id"], gateway)


@pytest.fixture
def platform(gateway: Gateway) -> Platform:
    return platform_of(gateway, gateway.owner)


def test_an_owner_or_admin_registers_applications_and_templates(gateway: Gateway) -> None:
    answer = done(gateway.admin.post("/v1/org/platform-apps", {"name": "Shop", "slug": "my-shop"}), 201)
    app = answer["app"]
    assert answer["api_key"].startswith("plt_")
    assert app == {
        "id": app["id"],
        "name": "Shop",
        "slug": "my-shop",
        "created_by": gateway.admin.id,
        "created_at": "2026-03-04T10:00:00Z",
    }
    assert done(gateway.owner.get("/v1/org/platform-apps"), 200) == {"apps": [app]}
    template = done(gateway.owner.post("/v1/org/platform-templates", {"name": "two", "agents": AGENTS}), 201)["template"]
    assert template["agents"] == AGENTS
    assert done(gateway.admin.get("/v1/org/platform-templates"), 200) == {"templates": [template]}
    for path in ("/v1/org/platform-apps", "/v1/org/platform-templates"):
        assert list(done(gateway.other_owner.get(path), 200).values()) == [[]]
        for caller in (gateway.member, gateway.security, gateway.auditor, gateway.agent()):
            assert caller.get(path).status_code == 403
    assert gateway.member.post("/v1/org/platform-apps", {"name": "x", "slug": "x"}).status_code == 403
    assert answer["api_key"] not in str(stored(gateway, "SELECT * FROM credentials"))


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("platform-apps", {"slug": "a"}, "name"),
        ("platform-apps", {"name": "a"}, "slug"),
        ("platform-apps", {"name": "a", "slug": "A"}, "slug"),
        ("platform-apps", {"name": "a", "slug": "a--b"}, "slug"),
        ("platform-apps", {"name": "a", "slug": "a/b"}, "slug"),
        ("platform-apps", {"name": "a", "slug": "a", "key": 1}, "key"),
        ("platform-templates", {"name": "a"}, "agents"),
        ("platform-templates", {"name": "a", "agents": []}, "agents"),
        ("platform-templates", {"name": "a", "agents": [{"name": "b"}] * 21}, "agents"),
        ("platform-templates", {"name": "a", "agents": ["b"]}, "agents"),
        ("platform-templates", {"name": "a", "agents": [{"name": ""}]}, "agents[0].name"),
        ("platform-templates", {"name": "a", "agents": [{"name": "b", "scopes": []}]}, "agents[0].scopes"),
        (
            "platform-templates",
            {"name": "a", "agents": [{"name": "b", "action_approval_policy": {"rules": 1}}]},
            "agents[0].action_approval_policy.rules",
        ),
    ],
)
def test_a_malformed_application_or_template_is_400(gateway: Gateway, path: str, body: dict[str, object], field: str) -> None:
    refused = gateway.owner.post(f"/v1/org/{path}", body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_a_slug_names_one_application_of_an_organisation(gateway: Gateway, platform: Platform) -> None:
    assert gateway.owner.post("/v1/org/platform-apps", {"name": "Other", "slug": "shop"}).status_code == 409
    assert gateway.other_owner.post("/v1/org/platform-apps", {"name": "Other", "slug": "shop"}).status_code == 201


def test_a_new_person_becomes_a_member_without_a_password(gateway: Gateway, platform: Platform) -> None:
    answer = platform.app.post("/v1/platform/users/upsert", {"email": " New@People.Example ", "display_name": "ignored"})
    made = done(answer, 201)
    human = gateway.services.state.humans[made["user_handle"]]
    assert made == {
        "user_handle": human.id,
        "is_new": True,
        "connection_id": made["connection_id"],
        "email": "new@people.example",
    }
    assert (human.role, human.password_hash, human.org_id) == (
        "member",
        None,
        gateway.services.state.humans[gateway.owner.id].org_id,
    )
    again = done(platform.app.post("/v1/platform/users/upsert", {"email": "new@people.example"}), 200)
    assert again == {**made, "is_new": False}


def test_a_member_is_found_and_connected_once_an_application(gateway: Gateway, platform: Platform) -> None:
    other = platform_of(gateway, gateway.owner, "other")
    first, second, third = (
        platform.connect(gateway.member.email),
        platform.connect(gateway.member.email),
        other.connect(gateway.member.email),
    )
    assert (first["user_handle"], first["is_new"]) == (gateway.member.id, False)
    assert first == second
    assert third["connection_id"] != first["connection_id"]


def test_one_person_connected_fifty_times_at_once_is_one_person(gateway: Gateway, platform: Platform) -> None:
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda _: platform.connect()["connection_id"], range(50)))
    assert len(set(made)) == 1
    assert stored(gateway, "SELECT count(*) FROM humans WHERE email = 'new@people.example'") == [(1,)]


def test_somebody_elsewhere_has_to_link_themselves_and_nothing_of_them_is_told(gateway: Gateway, platform: Platform) -> None:
    refused = platform.app.post("/v1/platform/users/upsert", {"email": gateway.other_owner.email})
    reason = "this address cannot be connected by the platform alone: the person has to link it themselves"
    assert refused.status_code == 409
    assert refused.json() == {
        "type": "urn:peergate:problem:conflict",
        "title": "conflict",
        "status": 409,
        "detail": reason,
        "link_required": {
            "status": "link_required",
            "reason": reason,
            "authorize_url": "/v1/platform/connected-apps",
            "app_slug": "shop",
        },
    }
    assert stored(gateway, "SELECT count(*) FROM platform_connections") == [(0,)]


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "email"), ({"email": "nobody"}, "email"), ({"email": 4}, "email"), ({"subject_token": "x"}, "subject_token"),
     ({"email": "a@b.example", "subject_token": "x"}, "subject_token")],
)  # fmt: skip
def test_a_person_is_named_by_address(platform: Platform, body: dict[str, object], field: str) -> None:
    refused = platform.app.post("/v1/platform/users/upsert", body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


def test_a_bootstrap_makes_the_agents_their_peer_and_a_claim(gateway: Gateway, platform: Platform) -> None:
    person = platform.connect()
    connection_id = person["connection_id"]
    made = done(platform.bootstrap(connection_id, parameters={"a": 1}, return_to="https://elsewhere.example"), 201)
    summary = made["summary"]
    assert made == {
        "claim_url": f"/v1/auth/claim#claim_token={made['claim_token']}",
        "claim_token": made["claim_token"],
        "expires_in": 600,
        "connection_id": connection_id,
        "summary": {
            "vault_id": None,
            "agent_id": summary["agent_ids"][0],
            "agent_ids": summary["agent_ids"],
            "policy_ids": [],
            "peer_id": summary["peer_id"],
            "observers_not_added": [],
            "agent_api_key": summary["agent_api_keys"][summary["agent_id"]],
            "agent_api_keys": summary["agent_api_keys"],
        },
    }
    agents = [done(gateway.owner.get(f"/v1/agents/{agent_id}"), 200) for agent_id in summary["agent_ids"]]
    assert [(a["name"], a["action_approval_policy"], a["connection_id"]) for a in agents] == [
        ("buyer", RULES, connection_id),
        ("reader", None, connection_id),
    ]
    peer = done(gateway.owner.get(f"/v1/peers/{summary['peer_id']}"), 200)["peer"]
    assert (peer["peer_type"], peer["peer_ref"], peer["observer_count"]) == ("platform_connection", connection_id, 2)
    buyer = Client(gateway.http, summary["agent_id"], summary["agent_api_key"])
    assert done(buyer.get(f"/v1/agents/{buyer.id}/peer-context"), 200)["peer_id"] == peer["id"]
    asked = ask(buyer)
    assert (asked["user_id"], asked["connection_id"]) == (person["user_handle"], connection_id)
    assert done(platform.app.get(f"/v1/platform/connections/{connection_id}"), 200) == {
        "connection_id": connection_id,
        "app_id": platform.app.id,
        "user_id": person["user_handle"],
        "status": "active",
        "entitlement_status": "active",
        "vault_ids": [],
        "agent_ids": summary["agent_ids"],
        "peer_id": peer["id"],
        "template_id": platform.template_id,
        "claim": {"status": "pending"},
        "created_at": "2026-03-04T10:00:00Z",
    }


def test_a_bootstrap_repeated_makes_nothing_twice_and_shows_no_key_again(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    first = done(platform.bootstrap(connection_id), 201)
    second = done(platform.app.post(f"/v1/platform/connections/{connection_id}/bootstrap", {}, {"Idempotency-Key": "k"}), 201)
    assert second["summary"] == {**first["summary"], "agent_api_key": None, "agent_api_keys": {}}
    assert second["claim_token"] != first["claim_token"]
    assert stored(gateway, "SELECT count(*) FROM agents") == [(2,)]
    assert stored(gateway, "SELECT count(*) FROM peers") == [(1,)]
    assert stored(gateway, "SELECT count(*) FROM claims") == [(1,)]


def test_many_bootstraps_at_once_make_the_agents_once(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    with ThreadPoolExecutor(8) as pool:
        made = [done(one, 201)["summary"] for one in pool.map(lambda _: platform.bootstrap(connection_id), range(20))]
    assert len({tuple(one["agent_ids"]) for one in made}) == 1
    assert [one["agent_api_key"] is not None for one in made].count(True) == 1
    assert stored(gateway, "SELECT count(*) FROM agents") == [(2,)]


def test_an_observer_that_a_human_removed_is_not_brought_back(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    made = done(platform.bootstrap(connection_id), 201)
    peer_id, (buyer, reader) = made["summary"]["peer_id"], made["summary"]["agent_ids"]
    person = platform.person(made["claim_token"])
    path = f"/v1/peers/{peer_id}/observers"
    until = "2026-03-04T11:00:00Z"
    done(person.put(path, {"observers": [{"agent_id": buyer, "observer_expires_at": until}]}), 200)
    again = done(platform.bootstrap(connection_id), 201)["summary"]
    assert again["observers_not_added"] == [reader]
    assert [one["agent_id"] for one in done(gateway.owner.get(path), 200)["observers"]] == [buyer]
    gateway.clock.advance(timedelta(hours=1))
    ended = done(platform.bootstrap(connection_id), 201)["summary"]
    assert ended["observers_not_added"] == [buyer, reader]
    assert done(gateway.owner.get(path), 200)["observers"] == []


def test_a_peer_that_was_erased_comes_back_empty_and_observed_by_nobody(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    made = done(platform.bootstrap(connection_id), 201)
    person = platform.person(made["claim_token"])
    erased, own = made["summary"]["peer_id"], made["summary"]["agent_ids"]
    done(person.delete(f"/v1/peers/{erased}/data", {"X-Auth-Confirm": person.password}), 200)
    for _ in range(2):
        again = done(platform.bootstrap(connection_id), 201)["summary"]
        assert (again["observers_not_added"], again["agent_ids"]) == (own, own)
        assert again["peer_id"] != erased
        path = f"/v1/peers/{again['peer_id']}/observers"
        assert done(person.get(path), 200)["observers"] == []
    restart(gateway)
    app = replace(platform.app, http=gateway.http)
    again = done(app.post(f"/v1/platform/connections/{connection_id}/bootstrap", {}), 201)["summary"]
    assert again["observers_not_added"] == own
    done(gateway.owner.put(path, {"observers": [{"agent_id": own[0]}]}), 200)
    again = done(app.post(f"/v1/platform/connections/{connection_id}/bootstrap", {}), 201)["summary"]
    assert again["observers_not_added"] == own[1:]


def test_the_claim_address_takes_the_claim(gateway: Gateway, platform: Platform) -> None:
    made = done(platform.bootstrap(platform.connect()["connection_id"]), 201)
    address, _, fragment = made["claim_url"].partition("#")
    name, _, token = fragment.partition("=")
    assert (
        done(gateway.http.post(address, json={name: token, "password": "a long enough password"}), 200)["token_type"] == "Bearer"
    )


@pytest.mark.parametrize("body", [{"return_to": 7}, {"return_to": "x" * 2_001}, {"parameters": []}], ids=str)
def test_what_a_bootstrap_does_not_use_is_checked_all_the_same(platform: Platform, body: dict[str, object]) -> None:
    refused = platform.bootstrap(platform.connect()["connection_id"], **body)
    assert (refused.status_code, list(refused.json()["fields"])) == (400, list(body))


def test_a_bootstrap_lists_the_connections_own_agents_and_nobody_else(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    other = gateway.agent("other")
    made = done(platform.bootstrap(connection_id, observer_agent_ids=[other.id], observers=[{"agent_id": other.id}]), 201)
    child = done(gateway.owner.post(f"/v1/agents/{made['summary']['agent_id']}/children", {"name": "child"}), 201)
    done(platform.bootstrap(connection_id), 201)
    listed = done(gateway.owner.get(f"/v1/peers/{made['summary']['peer_id']}/observers"), 200)["observers"]
    assert sorted(one["agent_id"] for one in listed) == sorted(made["summary"]["agent_ids"])
    assert child["id"] not in made["summary"]["agent_ids"]


def test_a_template_is_one_of_the_organisation_and_stays_the_same(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    foreign = platform_of(gateway, gateway.other_owner).template_id
    unknown = platform.bootstrap(connection_id, template_id=ABSENT)
    elsewhere = platform.bootstrap(connection_id, template_id=foreign)
    assert (unknown.status_code, list(unknown.json()["fields"])) == (400, ["template_id"])
    assert elsewhere.content == unknown.content.replace(ABSENT.encode(), foreign.encode())
    assert platform.bootstrap(connection_id, template_id="no-id").status_code == 400
    other = done(gateway.owner.post("/v1/org/platform-templates", {"name": "b", "agents": [{"name": "c"}]}), 201)["template"]
    assert platform.bootstrap(connection_id, template_id=None).status_code == 400
    done(platform.bootstrap(connection_id), 201)
    assert done(platform.bootstrap(connection_id, template_id=None), 201)["summary"]["observers_not_added"] == []
    assert platform.bootstrap(connection_id, template_id=other["id"]).status_code == 409


def test_a_claim_is_good_once_and_for_ten_minutes(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    path = f"/v1/platform/connections/{connection_id}"
    early = platform.app.post(f"{path}/reissue-claim")
    assert (early.status_code, early.json()["title"]) == (400, "invalid request")
    first = done(platform.bootstrap(connection_id), 201)["claim_token"]
    second = done(platform.app.post(f"{path}/reissue-claim"), 200)
    assert second == {
        "claim_url": f"/v1/auth/claim#claim_token={second['claim_token']}",
        "claim_token": second["claim_token"],
        "expires_in": 600,
        "connection_id": connection_id,
    }
    body = {"password": "a long enough password"}
    assert gateway.http.post("/v1/auth/claim", json={"claim_token": first, **body}).status_code == 401
    gateway.clock.advance(timedelta(seconds=600))
    assert gateway.http.post("/v1/auth/claim", json={"claim_token": second["claim_token"], **body}).status_code == 401
    third = done(platform.app.post(f"{path}/reissue-claim"), 200)["claim_token"]
    person = platform.person(third)
    assert gateway.http.post("/v1/auth/claim", json={"claim_token": third, **body}).status_code == 401
    assert done(platform.app.get(path), 200)["claim"] == {"status": "claimed"}
    assert done(person.get("/v1/auth/me"), 200)["email"] == "new@people.example"
    assert third not in str(stored(gateway, "SELECT * FROM claims"))


def test_a_platform_takes_over_no_account_of_a_member(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect(gateway.owner.email)["connection_id"]
    token = done(platform.bootstrap(connection_id), 201)["claim_token"]
    body = {"claim_token": token, "password": "chosen by the platform"}
    assert gateway.http.post("/v1/auth/claim", json=body).status_code == 401
    signed_in = gateway.http.post("/v1/auth/token", json={"email": gateway.owner.email, "password": gateway.owner.password})
    assert signed_in.status_code == 200


def test_a_platform_follows_the_approvals_of_its_own_connections(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    made = done(platform.bootstrap(connection_id), 201)
    buyer = Client(gateway.http, made["summary"]["agent_id"], made["summary"]["agent_api_key"])
    person = platform.person(made["claim_token"])
    pending, decided = ask(buyer), decide(person, ask(buyer))
    unrelated = ask(gateway.agent())
    path = f"/v1/platform/connections/{connection_id}/approvals"
    listed = done(platform.app.get(path), 200)
    assert ({one["id"] for one in listed["approvals"]}, listed["total"]) == ({pending["id"], decided["id"]}, 2)
    assert done(platform.app.get(path, status="approved"), 200) == {"approvals": [decided], "total": 1}
    assert done(platform.app.get(path, limit=1, offset=2), 200) == {"approvals": [], "total": 2}
    assert done(platform.app.get(f"{path}/{pending['id']}"), 200) == pending
    for other in (unrelated["id"], ABSENT, "no-id"):
        assert platform.app.get(f"{path}/{other}").status_code == 404
    elsewhere = platform.connect(gateway.member.email)["connection_id"]
    assert platform.app.get(f"/v1/platform/connections/{elsewhere}/approvals/{pending['id']}").status_code == 404


def test_the_decision_of_a_connected_person_is_evidence_about_them(gateway: Gateway, platform: Platform) -> None:
    made = done(platform.bootstrap(platform.connect()["connection_id"]), 201)
    buyer = Client(gateway.http, made["summary"]["agent_id"], made["summary"]["agent_api_key"])
    person = platform.person(made["claim_token"])
    asked = [ask(buyer) for _ in range(4)]
    for one in asked[:3]:
        decide(person, one)
    decide(gateway.owner, asked[3], "deny")
    rows = stored(gateway, "SELECT peer_id, id FROM events ORDER BY id")
    assert rows == sorted((made["summary"]["peer_id"], one["id"]) for one in asked[:3])


def test_a_platform_reaches_nothing_but_its_own_routes_and_connections(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    made = done(platform.bootstrap(connection_id), 201)
    other = platform_of(gateway, gateway.owner, "other")
    peer, agent = made["summary"]["peer_id"], made["summary"]["agent_id"]
    buyer = Client(gateway.http, agent, made["summary"]["agent_api_key"])
    asked = ask(buyer)
    for path in (
        f"/v1/agents/{agent}",
        "/v1/agents",
        "/v1/agents/me",
        f"/v1/peers/{peer}",
        "/v1/approvals",
        f"/v1/approvals/{asked['id']}",
        "/v1/org/settings",
        "/v1/platform/connected-apps",
    ):
        assert platform.app.get(path).status_code == 403
    assert platform.app.post(f"/v1/approvals/{asked['id']}/decide", {"decision": "approve"}).status_code == 403
    assert platform.app.post(f"/v1/agents/{agent}/rotate-key").status_code == 403
    path = f"/v1/platform/connections/{connection_id}"
    for caller in (other.app, buyer, gateway.owner, gateway.member):
        assert caller.get(path).status_code == 403
        assert caller.get(f"{path}/approvals").status_code == 403
        assert caller.post(f"{path}/bootstrap", {"template_id": platform.template_id}).status_code == 403
        assert caller.post(f"{path}/reissue-claim").status_code == 403
    for caller in (buyer, gateway.owner):
        assert caller.post("/v1/platform/users/upsert", {"email": "a@b.example"}).status_code == 403


@pytest.mark.parametrize(
    ("method", "suffix"),
    [("GET", ""), ("POST", "/bootstrap"), ("POST", "/reissue-claim"), ("GET", "/approvals"), ("GET", f"/approvals/{ABSENT}")],
)
def test_another_organisations_connection_is_byte_for_byte_an_unknown_one(
    gateway: Gateway, platform: Platform, method: str, suffix: str
) -> None:
    connection_id = platform.connect()["connection_id"]
    foreign = platform_of(gateway, gateway.other_owner)
    answers = []
    for found_id in (connection_id, ABSENT, "no-id"):
        answer = foreign.app.request(method, f"/v1/platform/connections/{found_id}{suffix}", {} if method == "POST" else None)
        headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
        answers.append((answer.status_code, answer.content, headers))
    assert answers[0][0] == 404
    assert answers[0] == answers[1] == answers[2]


def test_a_person_sees_their_connections_and_ends_them(gateway: Gateway, platform: Platform) -> None:
    connection_id = platform.connect()["connection_id"]
    made = done(platform.bootstrap(connection_id), 201)
    person = platform.person(made["claim_token"])
    listed = done(person.get("/v1/platform/connected-apps"), 200)
    link = {
        "connection_id": connection_id,
        "app_id": platform.app.id,
        "app_name": "Shop",
        "app_slug": "shop",
        "status": "active",
        "agent_ids": made["summary"]["agent_ids"],
        "peer_id": made["summary"]["peer_id"],
        "claimed_at": "2026-03-04T10:00:00Z",
        "connected_at": "2026-03-04T10:00:00Z",
    }
    assert listed == {"connected_apps": [link], "apps": [link]}
    assert done(gateway.owner.get("/v1/platform/connected-apps"), 200) == {"connected_apps": [], "apps": []}
    path = f"/v1/platform/connected-apps/{connection_id}"
    unknown = gateway.member.delete(f"/v1/platform/connected-apps/{ABSENT}")
    for caller in (gateway.member, gateway.security, gateway.other_owner):
        answer = caller.delete(path)
        assert (answer.status_code, answer.content) == (404, unknown.content)
    assert person.delete(path).status_code == 204
    assert person.delete(path).status_code == 204
    assert done(person.get("/v1/platform/connected-apps"), 200) == {"connected_apps": [], "apps": []}
    assert actions(gateway).count("platform.disconnected") == 1


@pytest.mark.parametrize("who", ["person", "owner", "admin", "app"])
def test_a_connection_that_was_ended_is_out_of_reach_of_its_agents_for_good(
    gateway: Gateway, platform: Platform, who: str
) -> None:
    connection_id = platform.connect()["connection_id"]
    made = done(platform.bootstrap(connection_id), 201)
    person = platform.person(made["claim_token"])
    token = done(platform.app.post(f"/v1/platform/connections/{connection_id}/reissue-claim"), 200)["claim_token"]
    callers = {"person": person, "owner": gateway.owner, "admin": gateway.admin, "app": platform.app}
    assert callers[who].delete(f"/v1/platform/connected-apps/{connection_id}").status_code == 204
    peer_id = made["summary"]["peer_id"]
    buyer = Client(gateway.http, made["summary"]["agent_id"], made["summary"]["agent_api_key"])
    assert buyer.get(f"/v1/peers/{peer_id}").status_code == 403
    assert buyer.get(f"/v1/agents/{buyer.id}/peer-context").status_code == 404
    assert done(person.get(f"/v1/peers/{peer_id}"), 200)["peer"]["status"] == "archived"
    body = {"claim_token": token, "password": person.password}
    assert gateway.http.post("/v1/auth/claim", json=body).status_code == 401
    assert platform.bootstrap(connection_id).status_code == 403
    assert platform.app.post(f"/v1/platform/connections/{connection_id}/reissue-claim").status_code == 403
    assert done(platform.app.get(f"/v1/platform/connections/{connection_id}"), 200)["status"] == "disconnected"
    assert platform.connect()["connection_id"] != connection_id


def test_what_a_platform_does_is_audited_by_ids(gateway: Gateway, platform: Platform) -> None:
    made = done(platform.bootstrap(platform.connect("canary@people.example")["connection_id"]), 201)
    done(gateway.owner.delete(f"/v1/platform/connected-apps/{made['connection_id']}"), 204)
    about = [action for action in actions(gateway) if action.split(".")[0] in ("platform", "peer", "agent")]
    assert about == [
        "platform.app_created",
        "platform.template_created",
        "platform.user_created",
        "platform.connected",
        "agent.created",
        "agent.created",
        "peer.created",
        "peer.observers_added",
        "platform.bootstrapped",
        "platform.disconnected",
        "peer.archived",
    ]
    assert "canary" not in str(stored(gateway, "SELECT details FROM log"))


def test_another_application_does_not_get_a_person_who_has_not_claimed_the_account(gateway: Gateway, platform: Platform) -> None:
    made = done(platform.bootstrap(platform.connect()["connection_id"]), 201)
    other = platform_of(gateway, gateway.owner, "other")
    refused = other.app.post("/v1/platform/users/upsert", {"email": "new@people.example"})
    assert (refused.status_code, refused.json()["link_required"]["status"]) == (409, "link_required")
    assert platform.connect()["connection_id"] == made["connection_id"]
    platform.person(made["claim_token"])
    connected = done(other.app.post("/v1/platform/users/upsert", {"email": "new@people.example"}), 200)
    taken = done(other.bootstrap(connected["connection_id"]), 201)["claim_token"]
    chosen = {"claim_token": taken, "password": "chosen by the other one"}
    assert gateway.http.post("/v1/auth/claim", json=chosen).status_code == 401


def test_a_connection_of_another_application_sets_no_first_password(gateway: Gateway, platform: Platform) -> None:
    state, first = gateway.services.state, platform.connect()
    other = platform_of(gateway, gateway.owner, "other")
    link = done(other.app.post("/v1/platform/users/upsert", {"email": gateway.member.email}), 200)
    later = state.connections[first["connection_id"]].created_at + timedelta(seconds=1)
    moved = replace(state.connections[link["connection_id"]], user_id=first["user_handle"], created_at=later)
    state.put_connection(moved)
    token = done(other.bootstrap(moved.id), 201)["claim_token"]
    body = {"claim_token": token, "password": "chosen by the other one"}
    assert gateway.http.post("/v1/auth/claim", json=body).status_code == 401
    assert state.humans[first["user_handle"]].password_hash is None


def test_whoever_was_given_a_role_gets_no_first_password_from_a_platform(gateway: Gateway, platform: Platform) -> None:
    made = done(platform.bootstrap(platform.connect()["connection_id"]), 201)
    person = gateway.services.state.connections[made["connection_id"]].user_id
    done(gateway.owner.patch(f"/v1/org/members/{person}", {"role": "owner"}), 200)
    assert stored(gateway, "SELECT count(*) FROM claims") == [(0,)]
    again = done(platform.app.post(f"/v1/platform/connections/{made['connection_id']}/reissue-claim"), 200)
    for token in (made["claim_token"], again["claim_token"]):
        body = {"claim_token": token, "password": "chosen by the platform"}
        assert gateway.http.post("/v1/auth/claim", json=body).status_code == 401
    assert gateway.services.state.humans[person].password_hash is None
    done(gateway.owner.patch(f"/v1/org/members/{person}", {"role": "member"}), 200)
    assert gateway.http.post("/v1/auth/claim", json=body).status_code == 401


def test_a_key_that_was_rotated_is_refused_and_the_new_one_reaches_the_same_connections(
    gateway: Gateway, platform: Platform
) -> None:
    connection = f"/v1/platform/connections/{platform.connect()['connection_id']}"
    path = f"/v1/org/platform-apps/{platform.app.id}"
    made = done(gateway.admin.post(f"{path}/rotate-key"), 200)
    assert made == {"app": done(gateway.owner.get("/v1/org/platform-apps"), 200)["apps"][0], "api_key": made["api_key"]}
    assert platform.app.get(connection).status_code == 401
    assert Client(gateway.http, platform.app.id, made["api_key"]).get(connection).status_code == 200
    restart(gateway)
    assert replace(platform.app, http=gateway.http).get(connection).status_code == 401
    assert Client(gateway.http, platform.app.id, made["api_key"]).get(connection).status_code == 200
    assert actions(gateway).count("platform.key_rotated") == 1


def test_an_application_that_was_removed_is_gone_with_its_key_and_its_connections(gateway: Gateway, platform: Platform) -> None:
    made = done(platform.bootstrap(platform.connect()["connection_id"]), 201)
    pending = platform.connect("second@people.example")["connection_id"]
    other = platform_of(gateway, gateway.owner, "other")
    kept = other.connect(gateway.member.email)["connection_id"]
    buyer = Client(gateway.http, made["summary"]["agent_id"], made["summary"]["agent_api_key"])
    assert gateway.owner.delete(f"/v1/org/platform-apps/{platform.app.id}").status_code == 204
    assert platform.app.post("/v1/platform/users/upsert", {"email": "a@b.example"}).status_code == 401
    assert [app["slug"] for app in done(gateway.owner.get("/v1/org/platform-apps"), 200)["apps"]] == ["other"]
    assert buyer.get(f"/v1/peers/{made['summary']['peer_id']}").status_code == 403
    body = {"claim_token": made["claim_token"], "password": "a long enough password"}
    assert gateway.http.post("/v1/auth/claim", json=body).status_code == 401
    for _ in range(2):
        links = gateway.services.state.connections
        assert {found: links[found].status for found in (made["connection_id"], pending, kept)} == {
            made["connection_id"]: "disconnected",
            pending: "disconnected",
            kept: "pending",
        }
        assert gateway.owner.delete(f"/v1/org/platform-apps/{platform.app.id}").status_code == 404
        restart(gateway)
        gateway.owner = replace(gateway.owner, http=gateway.http)
    assert actions(gateway).count("platform.disconnected") == 2
    assert actions(gateway).count("platform.app_removed") == 1


def test_who_does_not_register_applications_ends_none_and_foreign_ones_are_unknown(gateway: Gateway, platform: Platform) -> None:
    for method, suffix in (("DELETE", ""), ("POST", "/rotate-key")):
        path = f"/v1/org/platform-apps/{platform.app.id}{suffix}"
        for caller in (gateway.member, gateway.security, gateway.auditor, gateway.agent(), platform.app):
            assert caller.request(method, path).status_code == 403
        answers = []
        for found_id in (platform.app.id, ABSENT, "no-id"):
            answer = gateway.other_owner.request(method, f"/v1/org/platform-apps/{found_id}{suffix}")
            headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
            answers.append((answer.status_code, answer.content, headers))
        assert answers[0][0] == 404
        assert answers[0] == answers[1] == answers[2]
