"""The gateway's own store: who may ask about whom, and that answers are those of the policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.authzen.asking import ACTIONS, BATCH, PATHS, RESOURCES, SINGLE, SUBJECTS, Body, Pep, rows_of
from tests.builders import Client, Gateway, done
from tests.operations.connecting import connect

READ = {"name": "peer.read_context"}


@dataclass(frozen=True, slots=True)
class Household:
    """A gateway without another store: an agent that observes the member's peer, one that does not, and other people's."""

    gateway: Gateway
    agent: Client
    stranger: Client
    peer: str
    admins_peer: str
    other_agent: str
    other_peer: str

    def ask(self, subject: tuple[str, str], resource: tuple[str, str], action: str = "peer.read_context") -> Body:
        named = [{"type": kind, "id": found} for kind, found in (subject, resource)]
        return {"subject": named[0], "action": {"name": action}, "resource": named[1]}

    def reads(self, client: Client, agent: str, peer: str) -> bool:
        return Pep(client).decision(self.ask(("Agent", agent), ("Peer", peer)))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Household]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway") / "data")
    agent, stranger = gateway.agent("listed"), gateway.agent("unlisted")
    peer = gateway.peer(observers=[agent])["id"]
    admins = gateway.peer(person=gateway.admin, observers=[agent])["id"]
    other = gateway.agent("elsewhere", by=gateway.other_owner)
    others = gateway.peer(person=gateway.other_owner, observers=[other], by=gateway.other_owner)["id"]
    yield Household(gateway, agent, stranger, peer, admins, other.id, others)
    gateway.close()


@pytest.mark.parametrize("role", ["owner", "admin", "security", "auditor"])
def test_these_roles_ask_about_anybody_of_the_organisation(home: Household, role: str) -> None:
    client = getattr(home.gateway, role)
    assert home.reads(client, home.agent.id, home.peer) is True
    assert home.reads(client, home.stranger.id, home.peer) is False


def test_a_decision_is_the_one_that_the_agent_itself_would_get(home: Household) -> None:
    for agent in (home.agent, home.stranger):
        read = agent.get(f"/v1/peers/{home.peer}/context").status_code == 200
        assert home.reads(home.gateway.owner, agent.id, home.peer) is read


def test_an_agent_asks_only_about_itself(home: Household) -> None:
    assert home.reads(home.agent, home.agent.id, home.peer) is True
    assert home.reads(home.stranger, home.stranger.id, home.peer) is False
    assert home.reads(home.stranger, home.agent.id, home.peer) is False
    owner = home.ask(("Human", home.gateway.owner.id), ("Peer", home.peer), "peer.read_fact")
    assert Pep(home.gateway.owner).decision(owner) is True
    assert Pep(home.agent).decision(owner) is False


def test_a_member_asks_about_what_is_held_of_themselves(home: Household) -> None:
    assert home.reads(home.gateway.member, home.agent.id, home.peer) is True
    assert home.reads(home.gateway.member, home.agent.id, home.admins_peer) is False
    listing = home.ask(("Human", home.gateway.member.id), ("Org", "-"), "peer.list_own")
    assert Pep(home.gateway.member).decision(listing) is False


def test_a_subject_search_of_an_agent_finds_at_most_itself(home: Household) -> None:
    body = {"subject": {"type": "Agent"}, "action": READ, "resource": {"type": "Peer", "id": home.peer}}
    assert Pep(home.agent).found(SUBJECTS, body) == [{"type": "Agent", "id": home.agent.id}]
    assert Pep(home.stranger).found(SUBJECTS, body) == []
    assert Pep(home.gateway.owner).found(SUBJECTS, body) == [{"type": "Agent", "id": home.agent.id}]


def test_searches_find_what_evaluates_to_yes(home: Household) -> None:
    owner = Pep(home.gateway.owner)
    agents = [agent.id for agent in home.gateway.services.state.agents.values()]
    peers = [peer.id for peer in home.gateway.services.state.peers.values()]
    for agent in agents:
        found = owner.found(RESOURCES, home.ask(("Agent", agent), ("Peer", "-")))
        assert [each["id"] for each in found] == sorted(peer for peer in peers if home.reads(home.gateway.owner, agent, peer))
    for peer in peers:
        found = owner.found(SUBJECTS, home.ask(("Agent", "-"), ("Peer", peer)))
        assert [each["id"] for each in found] == sorted(agent for agent in agents if home.reads(home.gateway.owner, agent, peer))


def test_an_action_search_finds_what_an_observer_may_do(home: Household) -> None:
    body = home.ask(("Agent", home.agent.id), ("Peer", home.peer))
    for client in (home.gateway.owner, home.agent, home.gateway.member):
        found = [each["name"] for each in Pep(client).found(ACTIONS, body)]
        assert "peer.read_context" in found
        assert all(Pep(client).decision(body | {"action": {"name": name}}) for name in found)
        assert "peer.set_observers" not in found


def test_an_agent_is_not_told_that_its_person_has_paused_reading(home: Household) -> None:
    about, own, pause = home.ask(("Agent", home.agent.id), ("Peer", home.peer)), Pep(home.agent), f"/v1/peers/{home.peer}/pause"
    every = sorted(each["name"] for each in Pep(home.gateway.owner).found(ACTIONS, about))

    def told(pep: Pep) -> tuple[list[bool], Any]:
        asked = [home.ask(("Agent", home.agent.id), ("Peer", home.peer), action) for action in every]
        return pep.decisions({"evaluations": asked}), pep.found(ACTIONS, about)

    open_, persons = told(own), told(Pep(home.gateway.member))
    done(home.gateway.member.put(pause, {"reading": True, "learning": False}), 200)
    try:
        assert told(own) == open_
        assert told(Pep(home.gateway.member)) != persons, "the person knows"
    finally:
        done(home.gateway.member.put(pause, {"reading": False, "learning": False}), 200)


def test_pages_of_our_own_store_hold_together(home: Household) -> None:
    body = home.ask(("Agent", home.agent.id), ("Peer", "-"))
    owner = Pep(home.gateway.owner)
    first = owner.ask(RESOURCES, body | {"page": {"limit": 1}})
    rest = owner.ask(RESOURCES, body | {"page": {"token": first["page"]["next_token"]}})
    assert [*first["results"], *rest["results"]] == owner.found(RESOURCES, body)
    assert len(first["results"]) == len(rest["results"]) == 1


@pytest.mark.parametrize("path", PATHS)
def test_what_belongs_to_another_organisation_is_the_same_as_unknown(home: Household, path: str) -> None:
    unknown = "00000000-0000-4000-8000-000000000000"
    no = ({"decision": False}, {"page": {"next_token": "", "count": 0}, "results": []})
    for client in (home.gateway.owner, home.agent, home.gateway.member):
        for subjects, resources in (
            ((home.other_agent, unknown), (home.peer, home.peer)),
            ((home.agent.id, home.agent.id), (home.other_peer, unknown)),
        ):
            asked = [
                home.ask(("Agent", subject), ("Peer", resource)) for subject, resource in zip(subjects, resources, strict=True)
            ]
            foreign, none = [client.post(path, body) for body in asked]
            assert foreign.content == none.content
            # Of what is searched for, the id is not looked at.
            if (path, unknown) not in ((SUBJECTS, subjects[1]), (RESOURCES, resources[1])):
                assert done(foreign, 200) in no


def test_searches_never_show_another_organisation(home: Household) -> None:
    owner = Pep(home.gateway.owner)
    for kind in ("Org", "Human", "Agent", "Peer", "Platform", "PlatformConnection", "Connection", "Policy", "Credential"):
        for action in home.gateway.services.access.engine.bundle.actions:
            found = owner.found(RESOURCES, home.ask(("Human", home.gateway.owner.id), (kind, "-"), action))
            assert not {home.other_agent, home.other_peer, home.gateway.other_owner.id} & {each["id"] for each in found}


@pytest.mark.parametrize("path", PATHS)
def test_keys_of_platforms_connections_and_bridges_may_not_ask(home: Household, path: str) -> None:
    gateway = home.gateway
    state = gateway.services.state
    slug = f"app-{len(state.apps)}"
    app = done(gateway.owner.post("/v1/org/platform-apps", {"name": "app", "slug": slug}), 201)
    connection = connect(gateway, home.agent, f"conn-{len(state.remote_connections)}")
    bridge = done(gateway.owner.post(f"/v1/agents/{home.agent.id}/bridge-token"), 201)["token"]
    body = home.ask(("Agent", home.agent.id), ("Peer", home.peer))
    for key in (app["api_key"], connection.key, bridge):
        answered = gateway.http.post(path, json=body, headers={"Authorization": f"Bearer {key}"})
        assert answered.status_code == 403
        assert isinstance(answered.json()["detail"], str)


def test_properties_and_context_count_for_nothing(home: Household) -> None:
    body: Any = home.ask(("Agent", home.stranger.id), ("Peer", home.peer))
    body["subject"]["properties"] = {"active": True, "org": "x", "parents": [{"type": "Observers", "id": home.peer}]}
    body["resource"]["properties"] = {"observers": "x", "archived": 1.5}
    body["context"] = {"now": "2026-01-01T00:00:00Z", "clock": {"minute": 1}, "unheard": 2**70}
    assert Pep(home.gateway.owner).decision(body) is False
    body["subject"]["id"] = home.agent.id
    assert Pep(home.gateway.owner).decision(body) is True


def test_a_removed_observer_is_a_no_at_once(home: Household) -> None:
    peer = home.gateway.peer(person=home.gateway.security, observers=[home.stranger])["id"]
    assert home.reads(home.stranger, home.stranger.id, peer) is True
    done(home.gateway.owner.put(f"/v1/peers/{peer}/observers", {"observers": []}), 200)
    assert home.reads(home.stranger, home.stranger.id, peer) is False


def test_asking_is_one_recorded_decision_whatever_was_asked(home: Household) -> None:
    before = {name: len(rows_of(home.gateway, name)) for name in ("authzen.evaluate", "peer.read_context", "authzen.about_self")}
    body = home.ask(("Agent", home.agent.id), ("Peer", home.peer))
    assert Pep(home.gateway.auditor).decisions(body | {"evaluations": [{}, {}, {}]}) == [True] * 3
    after = {name: len(rows_of(home.gateway, name)) - count for name, count in before.items()}
    assert after == {"authzen.evaluate": 1, "peer.read_context": 0, "authzen.about_self": 0}
    details = rows_of(home.gateway, "authzen.evaluate")[-1]["details"]
    assert (details["count"], details["decisions"]) == (3, [True] * 3)


def test_a_question_that_is_not_the_askers_own_is_recorded_as_a_no(home: Household) -> None:
    assert home.reads(home.stranger, home.agent.id, home.peer) is False
    row = rows_of(home.gateway, "authzen.evaluate_own")[-1]
    assert (row["id"], row["outcome"], row["details"]["decisions"]) == (home.stranger.id, "allow", [False])


def test_an_agent_may_not_ask_where_another_store_is_served(gateway: Gateway) -> None:
    agent = gateway.agent("no client")
    body = {
        "subject": {"type": "user", "id": "cleo"},
        "action": {"name": "read"},
        "resource": {"type": "document", "id": "welcome"},
    }
    assert [agent.post(path, body).status_code for path in (SINGLE, BATCH)] == [403, 403]
    for role in ("owner", "admin", "security", "auditor", "member", "other_owner"):
        assert Pep(getattr(gateway, role)).decision(body) is True


@pytest.mark.parametrize(
    ("path", "no"), [(SINGLE, {"decision": False}), (RESOURCES, {"page": {"next_token": "", "count": 0}, "results": []})]
)
def test_a_yes_that_has_become_a_no_before_it_leaves_is_not_answered(home: Household, path: str, no: Body) -> None:
    gateway, access = home.gateway, home.gateway.services.access
    agent = gateway.agent("to be removed")
    peer = gateway.peer(person=gateway.auditor, observers=[agent])["id"]
    inner = access.stands

    def stands(*args: Any) -> bool:
        gateway.services.state.put_observers(peer, [])
        return inner(*args)

    body = home.ask(("Agent", agent.id), ("Peer", peer))
    assert done(gateway.owner.post(path, body), 200) != no
    access.stands = stands  # type: ignore[method-assign]  # the list is emptied between the decision and its answer
    try:
        assert done(gateway.owner.post(path, body), 200) == no
    finally:
        access.stands = inner  # type: ignore[method-assign]
