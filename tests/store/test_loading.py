"""Reading the state back: what was written through the API is what is loaded, table by table."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gateway.config import Settings
from gateway.model.records import Agent, OrgSettings
from gateway.store.canonical import canonical
from gateway.store.faults import StoreRefused
from gateway.store.loading import loaded, settings_of
from gateway.store.orgs import settings_text
from gateway.store.state import State
from gateway.store.writer import Unit
from gateway.wiring import open_services
from tests.builders import Client, Gateway, done
from tests.operations.connecting import allow, connect

RULES = {
    "default_mode": "deny",
    "rules": [
        {
            "action_type": "refund.create",
            "mode": "allow",
            "require_for_amount_above_usd": "20.50",
            "summary_template": "é {{to}} \U0001f600",
        },
        {"action_type": "ticket.close", "mode": "approve", "require_for_amount_above_usd": None},
        {"action_type": "order.place", "mode": "deny", "require_for_amount_above_usd": 7},
    ],
}


def tables(state: State) -> dict[str, Any]:
    """The state but for its versions; observer lists, which have no order, as they are looked up."""
    held = dict(vars(state))
    for counter in ("version", "facts_versions"):
        del held[counter]
    return held


def one_of_every_shape(gateway: Gateway) -> None:
    """Rows of each table: with every optional member, without any, changed, and dropped."""
    clock = gateway.clock
    agent, plain = gateway.agent("with rules", RULES), gateway.agent("without")
    gone = gateway.agent("deleted")
    _write_policies(gateway)
    done(gateway.owner.post(f"/v1/agents/{agent.id}/children", {"name": "child"}), 201)
    done(gateway.owner.patch(f"/v1/agents/{plain.id}", {"description": "é", "is_active": False, "scopes": ["a", "b"]}), 200)
    done(
        gateway.owner.patch(
            "/v1/org/settings", {"time_zone": "Asia/Kathmandu", "auto_approve": "true", "sensitive_actions": ["bank."]}
        ),
        200,
    )
    done(gateway.other_owner.patch("/v1/org/settings", {"sensitive_actions": ["a.b", "c."]}), 200)
    left = gateway.human("member")
    done(gateway.owner.patch(f"/v1/org/members/{gateway.auditor.id}", {"role": "security"}), 200)
    done(gateway.owner.delete(f"/v1/org/members/{left.id}"), 204)
    done(gateway.admin.post("/v1/auth/totp", headers={"X-Auth-Confirm": gateway.admin.password}), 201)
    clock.advance(timedelta(microseconds=123_456))
    done(gateway.member.post("/v1/auth/api-keys", {"name": "until", "expires_at": "2030-01-31T12:00:00.5+05:45"}), 201)
    token = done(
        gateway.http.post("/v1/auth/token", json={"email": gateway.member.email, "password": gateway.member.password}), 200
    )
    done(Client(gateway.http, gateway.member.id, token["access_token"]).delete("/v1/auth/token"), 204)
    peer = gateway.peer(gateway.member, [agent, gone, gateway.agent("taken off")])
    external = done(gateway.owner.post("/v1/peers", {"peer_type": "external", "peer_ref": "réf", "display_name": "é"}), 201)[
        "peer"
    ]
    empty = gateway.peer(gateway.admin)
    leases = [{"agent_id": agent.id, "observer_expires_at": "2031-01-01T00:00:00+14:00"}, {"agent_id": plain.id}]
    done(gateway.owner.put(f"/v1/peers/{peer['id']}/observers", {"observers": leases}), 200)
    done(
        gateway.owner.put(
            f"/v1/peers/{external['id']}/pause", {"reading": True, "learning": False, "until": "2031-01-01T00:00:00Z"}
        ),
        200,
    )
    done(gateway.owner.put(f"/v1/peers/{empty['id']}/pause", {"reading": False, "learning": True}), 200)
    done(gateway.owner.delete(f"/v1/agents/{gone.id}"), 204)
    _platform(gateway)
    _remote(gateway, plain)


def _remote(gateway: Gateway, agent: Client) -> None:
    remote, other = connect(gateway, agent, "remote-1", name="é"), connect(gateway, agent)
    done(gateway.owner.post(f"/v1/connections/{other.id}/suspend"), 200)
    scope = {"id": "notes.write", "params": {"collection_id": "beta", "max_per_day": 3}}
    ended = allow(gateway, remote, scope=scope, tags=["b", "a"], tags_match="all", expires_at="2030-01-31T12:00:00.5Z")
    done(gateway.owner.delete(f"/v1/connections/remote-1/grants/{ended['id']}"), 204)
    allow(gateway, remote, provenance="own_connection", classifications=["pii"], limits={"max_chars": 7})
    done(gateway.owner.post("/v1/memories/forget", {"agent_id": agent.id, "connection_id": other.id}), 200)


def _platform(gateway: Gateway) -> None:
    made = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": "app"}), 201)
    app = Client(gateway.http, "", made["api_key"])
    agents = [{"name": "one", "action_approval_policy": RULES}, {"name": "two"}]
    template = done(gateway.owner.post("/v1/org/platform-templates", {"name": "template", "agents": agents}), 201)["template"]
    first, second = (
        done(app.post("/v1/platform/users/upsert", {"email": f"{name}@sample.example"}), 201)["connection_id"] for name in "xy"
    )
    booted = done(app.post(f"/v1/platform/connections/{first}/bootstrap", {"template_id": template["id"]}), 201)
    done(gateway.http.post("/v1/auth/claim", json={"claim_token": booted["claim_token"], "password": "a long password"}), 200)
    done(gateway.owner.delete(f"/v1/platform/connected-apps/{second}"), 204)


def _write_policies(gateway: Gateway) -> None:
    """One in force with another version in the shadow, one that was taken back to its first."""
    path, owner = "/v1/org/cedar-policies", gateway.owner
    confirmed = {"X-Auth-Confirm": owner.password}
    text = 'forbid (principal, action == Action::"session.end", resource) when { false };'
    first, second = (
        done(owner.post(path, {"name": "é", "cedar_text": text, "mode": mode}, confirmed), 201)["id"]
        for mode in ("enforce", "shadow")
    )
    done(owner.put(f"{path}/{first}", {"cedar_text": text.replace("false", "true")}), 200)
    for verb, version in (("promote", 1), ("rollback", 2)):
        done(owner.post(f"{path}/{second}/{verb}", {"version": version}, confirmed), 200)


def test_what_was_written_is_what_is_loaded_table_by_table(gateway: Gateway) -> None:
    one_of_every_shape(gateway)
    written = gateway.services.state
    read = gateway.services.database.read_sync(loaded, snapshot=True)
    for name, table in tables(written).items():
        assert getattr(read, name) == table, name
        assert table, f"{name} was not tried"


def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    first = Gateway(tmp_path / "data")
    one_of_every_shape(first)
    before = tables(first.services.state)
    first.close()
    again = open_services(Settings(data=tmp_path / "data", rate_limit=0), now=first.clock)
    try:
        assert tables(again.state) == before
        for agent in again.state.agents.values():
            assert agent.has_policy == bool(agent.rules.source)
    finally:
        again.database.close()


def test_what_is_loaded_again_takes_over_and_moves_the_version_on(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(gateway.member, [agent])
    state = gateway.services.state
    before, version, facts = tables(state), state.version, state.facts_versions.get(peer["id"], 0)
    assert agent.get(f"/v1/peers/{peer['id']}").status_code == 200
    state.take_over(gateway.services.database.read_sync(loaded, snapshot=True))
    assert tables(state) == before
    assert (state.version, state.facts_versions[peer["id"]]) == (version + 1, facts + 1)
    assert agent.get(f"/v1/peers/{peer['id']}").status_code == 200


def test_an_observer_whose_removal_was_missed_is_refused_after_taking_over(gateway: Gateway) -> None:
    agent = gateway.agent()
    peer = gateway.peer(gateway.member, [agent])
    state = gateway.services.state
    fresh = gateway.services.database.read_sync(loaded, snapshot=True)
    fresh.put_observers(peer["id"], [])
    assert agent.get(f"/v1/peers/{peer['id']}").status_code == 200
    state.take_over(fresh)
    assert agent.get(f"/v1/peers/{peer['id']}").status_code == 403


def test_settings_are_read_as_they_were_written() -> None:
    settings = OrgSettings(True, True, True, False, True, ("bank.", "é.b"), "Europe/Berlin")
    assert settings_of(settings_text(settings)) == settings
    assert settings_of(canonical({})) == OrgSettings()


def test_numbers_of_a_policy_are_read_exactly(gateway: Gateway) -> None:
    rule = '{"action_type": "a.b", "mode": "allow", "require_for_amount_above_usd": 0.1}'
    raw = f'{{"name": "exact", "action_approval_policy": {{"rules": [{rule}]}}}}'
    headers = {"Authorization": f"Bearer {gateway.owner.key}", "Content-Type": "application/json"}
    made = done(gateway.http.post("/v1/agents", content=raw, headers=headers), 201)["agent"]
    read = gateway.services.database.read_sync(loaded)
    agent: Agent = read.agents[made["id"]]
    assert agent == gateway.services.state.agents[made["id"]]
    assert agent.rules.rules[0].threshold == Decimal("0.1")


@pytest.mark.parametrize("version", [0, 2])
def test_a_grant_of_another_template_is_refused(gateway: Gateway, version: int) -> None:
    made = allow(gateway, connect(gateway, gateway.agent()))
    database = gateway.services.database
    database.write(Unit(lambda tx: tx.run("UPDATE memory_grants SET template_version = $1", version))).result()
    sentence = f"the grant {made['id']} was made by version {version} of its template, and this gateway knows version 1"
    with pytest.raises(StoreRefused, match=sentence):
        database.read_sync(loaded)
    database.close()
    with pytest.raises(StoreRefused, match=sentence):
        open_services(Settings(data=gateway.services.settings.data))
