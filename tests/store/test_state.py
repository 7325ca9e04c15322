"""The state in memory: its look-ups follow every change, and its version only rises."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.model.records import Credential, Observer, Org, OrgSettings, PlatformApp, PlatformTemplate
from gateway.store.policy_state import PolicyState
from gateway.store.remote_state import RemoteState
from gateway.store.state import State
from tests.remote import a_memory_grant, a_remote_connection
from tests.world import HOME, HOUR, NOW, ROOT, a_connection, a_human, a_peer, an_agent, an_entry, an_org_policy


def a_key(key_id: str, holder: str = "h", secret: str = "hash") -> Credential:
    return Credential(key_id, HOME, "Human", holder, "key", secret, NOW, None)


CHANGES: dict[str, Callable[[State], object]] = {
    "put_org": lambda s: s.put_org(Org(HOME, "", OrgSettings(), NOW)),
    "put_human": lambda s: s.put_human(a_human("h")),
    "drop_human": lambda s: s.drop_human("h"),
    "put_agent": lambda s: s.put_agent(an_agent("a")),
    "drop_agent": lambda s: (s.put_agent(an_agent("a")), s.drop_agent("a")),
    "put_former_agent": lambda s: s.put_former_agent(an_agent("a")),
    "put_credential": lambda s: s.put_credential(a_key("k")),
    "drop_credential": lambda s: s.drop_credential("k"),
    "revoke_token": lambda s: s.revoke_token("jti", NOW),
    "put_peer": lambda s: s.put_peer(a_peer("p")),
    "drop_peer": lambda s: s.drop_peer("p"),
    "put_observers": lambda s: s.put_observers("p", [an_entry("p", "a")]),
    "remember_removed": lambda s: s.remember_removed("p", "a", removed=True),
    "put_app": lambda s: s.put_app(PlatformApp("x", HOME, "", "", "h", NOW)),
    "drop_app": lambda s: s.drop_app("x"),
    "put_template": lambda s: s.put_template(PlatformTemplate("t", HOME, "", (), "h", NOW)),
    "put_connection": lambda s: s.put_connection(a_connection("c")),
    "put_remote_connection": lambda s: s.put_remote_connection(a_remote_connection()),
    "put_memory_grant": lambda s: s.put_memory_grant(a_memory_grant()),
    "put_org_policy": lambda s: s.put_org_policy(an_org_policy("p")),
    "drop_org_policy": lambda s: s.drop_org_policy("p"),
    "take_over": lambda s: s.take_over(State()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_raises_the_version(change: str) -> None:
    state = State()
    for before in range(2):
        CHANGES[change](state)
        assert state.version > before


def test_every_change_is_in_the_test_of_the_version() -> None:
    starts = ("put_", "drop_", "revoke_", "remember_", "take_", "suppress")
    changes = {name for name in (*vars(State), *vars(PolicyState), *vars(RemoteState)) if name.startswith(starts)}
    assert changes == set(CHANGES)


def test_facts_have_a_version_of_their_own() -> None:
    state = State()
    state.facts_changed("p")
    state.facts_changed("p")
    assert (state.version, state.facts_versions) == (0, {"p": 2})


# -- look-ups


def test_a_human_is_found_by_the_address_they_have_now() -> None:
    state = State()
    state.put_human(a_human("h", email="old@x.example"))
    state.put_human(a_human("h", email="new@x.example"))
    found = [state.human_with_email(f"{name}@x.example") for name in ("old", "new")]
    assert found == [None, state.humans["h"]]
    state.drop_human("h")
    assert (state.human_with_email("new@x.example"), state.humans) == (None, {})


def test_a_key_is_found_by_the_hash_it_has_now_and_not_at_all_when_it_is_dropped() -> None:
    state = State()
    state.put_credential(a_key("k", secret="old"))
    state.put_credential(a_key("k", secret="new"))
    assert [state.credential_with_hash(secret) for secret in ("old", "new")] == [None, state.credentials["k"]]
    state.drop_credential("k")
    state.drop_credential("k")
    assert state.credential_with_hash("new") is None


def test_the_keys_of_a_principal_are_its_own() -> None:
    state = State()
    mine, theirs = a_key("k1"), a_key("k2", "other", "hash2")
    agents = replace(a_key("k3", secret="hash3"), principal_type="Agent")
    for key in (mine, theirs, agents):
        state.put_credential(key)
    assert state.credentials_of("Human", "h") == [mine]


def test_a_peer_is_found_by_its_key_and_by_the_connection_it_has_now() -> None:
    state = State()
    peer = a_peer("p", "ref", connection_id="old")
    state.put_peer(peer)
    assert state.peer_with_key(HOME, "user", "ref") is peer
    assert [state.peer_with_key(*key) for key in (("away", "user", "ref"), (HOME, "external", "ref"), (HOME, "user", "REF"))] == [
        None
    ] * 3
    moved = replace(peer, connection_id="new")
    state.put_peer(moved)
    assert [state.peer_of_connection(link) for link in ("old", "new", "none")] == [None, moved, None]
    state.drop_peer("p")
    assert (state.peer_with_key(HOME, "user", "ref"), state.peer_of_connection("new")) == (None, None)


def test_a_dropped_peer_leaves_nothing_behind() -> None:
    state = State()
    for peer in ("p", "q"):
        state.put_peer(a_peer(peer, peer, connection_id=f"link-{peer}"))
        state.put_observers(peer, [an_entry(peer, "a")])
        state.remember_removed(peer, "b", removed=True)
        state.facts_changed(peer)
    state.drop_peer("p")
    kept = State()
    kept.put_peer(a_peer("q", "q", connection_id="link-q"))
    kept.put_observers("q", [an_entry("q", "a")])
    kept.remember_removed("q", "b", removed=True)
    kept.facts_changed("q")
    assert {**vars(state), "version": 0} == {**vars(kept), "version": 0}


def test_dropping_a_peer_leaves_the_connection_of_another_alone() -> None:
    state = State()
    state.put_peer(a_peer("p", "p", connection_id="link"))
    state.put_peer(a_peer("q", "q", connection_id="link"))
    state.drop_peer("p")
    assert state.peer_of_connection("link") is state.peers["q"]


def test_a_lease_is_on_the_list_until_its_end_and_not_at_it() -> None:
    state = State()
    state.put_peer(a_peer("p"))
    entry, lease = an_entry("p", "a"), an_entry("p", "b", NOW + HOUR)
    state.put_observers("p", [entry, lease])
    assert state.live_observers("p", NOW) == [entry, lease]
    assert state.live_observers("p", NOW + HOUR) == [entry]
    assert [state.observes("b", "p", NOW + after * HOUR) for after in (0, 1, 2)] == [True, False, False]
    assert [peer.id for peer in state.observed_peers("b", NOW)] == ["p"]
    assert state.observed_peers("b", NOW + HOUR) == []
    assert (state.live_observers("none", NOW), state.observed_peers("none", NOW)) == ([], [])


def test_an_empty_list_means_nobody() -> None:
    state = State()
    state.put_peer(a_peer("p"))
    state.put_observers("p", [an_entry("p", "a")])
    state.put_observers("p", [])
    assert (state.observes("a", "p", NOW), state.live_observers("p", NOW), state.observers) == (False, [], {})


def test_observed_peers_come_by_id_with_the_archived_ones_and_without_the_dropped() -> None:
    state = State()
    for name in ("c", "a", "b"):
        state.put_peer(a_peer(name, name, archived=name == "a"))
        state.put_observers(name, [an_entry(name, "agent")])
    state.peers.pop("b")  # as a reader finds it in the middle of `drop_peer`
    assert [peer.id for peer in state.observed_peers("agent", NOW)] == ["a", "c"]


def test_children_and_agents_of_a_connection_come_oldest_first() -> None:
    state = State()
    older, newer = (
        an_agent("z", parent_id="p", connection_id="c"),
        an_agent("a", parent_id="p", connection_id="c", created_at=NOW + HOUR),
    )
    for agent in (newer, older, an_agent("p")):
        state.put_agent(agent)
    assert state.children_of("p") == state.agents_of_connection("c") == [older, newer]


# -- another thread


def test_a_reader_walks_over_the_state_while_the_writer_changes_it() -> None:
    state = State()
    state.put_peer(a_peer("p"))
    done = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                state.agents_of_connection("c")
                state.children_of("x")
                state.credentials_of("Human", "h")
                state.observed_peers("always", NOW)
        except BaseException as failure:  # a thread's failure is the test's to report
            failures.append(failure)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(3_000):
        state.put_agent(an_agent(f"a{number}"))
        state.put_credential(a_key(f"k{number}", secret=f"hash{number}"))
        state.put_peer(a_peer(f"p{number}", f"p{number}"))
        state.put_observers(f"p{number}", [an_entry(f"p{number}", "always")])
        if number > 200:
            state.drop_peer(f"p{number - 200}")
            state.drop_agent(f"a{number - 200}")
    done.set()
    for reader in readers:
        reader.join()
    assert failures == []


def test_a_list_that_is_replaced_is_never_seen_without_whoever_stays_on_it() -> None:
    state = State()
    seen: list[bool] = []

    class Watched(dict[str, dict[str, Observer]]):
        def pop(self, *args: Any) -> Any:
            found = super().pop(*args)
            seen.append(state.observes("a", "p", NOW))
            return found

        def __setitem__(self, peer: str, entries: dict[str, Observer]) -> None:
            super().__setitem__(peer, entries)
            seen.append(state.observes("a", "p", NOW))

    state.observers = Watched()
    state.put_observers("p", [an_entry("p", "a")])
    state.put_observers("p", [an_entry("p", "b"), an_entry("p", "a")])
    assert seen == [True, True]
    state.put_observers("p", [])
    assert seen == [True, True, False]


def test_taking_over_replaces_everything_and_the_version_never_goes_back() -> None:
    versions: list[int] = []

    class Watched(State):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            versions.append(self.version)

    state, fresh = Watched(), State()
    for number in range(20):
        state.put_peer(a_peer(f"p{number}", f"p{number}"))
    state.facts_changed("kept")
    fresh.put_peer(a_peer("kept"))
    expected = {**vars(fresh), "version": 21, "facts_versions": {"kept": 2}}
    versions.clear()
    state.take_over(fresh)
    assert vars(state) == expected
    assert versions == sorted(versions)
    assert min(versions) == 20


class Lists(RuleBasedStateMachine):
    """Whatever order lists are replaced in, both directions of the look-up agree."""

    peers = st.sampled_from(["p", "q", "r"])
    agents = st.sets(st.sampled_from(["a", "b", "c"]))

    def __init__(self) -> None:
        super().__init__()
        self.state = State()
        self.expected: dict[str, set[str]] = {}

    @rule(peer=peers, listed=agents)
    def replace_list(self, peer: str, listed: set[str]) -> None:
        self.state.put_peer(a_peer(peer, peer))
        self.state.put_observers(peer, [an_entry(peer, agent) for agent in listed])
        self.expected[peer] = listed

    @rule(peer=peers)
    def drop(self, peer: str) -> None:
        self.state.drop_peer(peer)
        self.expected.pop(peer, None)

    @invariant()
    def both_directions_agree(self) -> None:
        for agent in "abc":
            observed = {peer.id for peer in self.state.observed_peers(agent, NOW)}
            assert observed == {peer for peer, listed in self.expected.items() if agent in listed}
        for peer in "pqr":
            assert {entry.agent_id for entry in self.state.live_observers(peer, NOW)} == self.expected.get(peer, set())


Lists.TestCase.settings = settings(max_examples=50, deadline=None)
test_lists_and_what_an_agent_observes_agree = Lists.TestCase


def test_the_peers_about_a_person_are_found_by_their_name_and_by_their_connections() -> None:
    state = State()
    for human in ("h", "g"):
        state.put_human(a_human(human))
    state.put_connection(a_connection("c", user="h"))
    state.put_connection(a_connection("c", user="g"))
    state.put_connection(a_connection("d", user="h"))
    late = a_peer("a", "h", created_at=NOW + HOUR, connection_id="d")
    linked = a_peer("z", "d", peer_type="platform_connection", connection_id="d")
    for peer in (late, linked, a_peer("b", "g"), a_peer("away", "h", org_id="away")):
        state.put_peer(peer)
    assert state.peers_about("h") == [linked, late]
    moved = replace(linked, connection_id="c")
    state.put_peer(moved)
    assert (state.peers_about("h"), state.peers_about("g")) == ([late], [state.peers["b"], moved])
    state.drop_peer("a")
    assert (state.peers_about("h"), state.peers_about("nobody")) == ([], [])


def test_the_lists_that_name_an_agent_are_found_whether_or_not_a_lease_has_ended() -> None:
    state = State()
    for peer in ("q", "p", "r"):
        state.put_peer(a_peer(peer, peer))
    state.put_observers("q", [an_entry("q", "a")])
    state.put_observers("p", [an_entry("p", "a", NOW - HOUR), an_entry("p", "b")])
    assert (state.lists_naming("a"), state.lists_naming("b"), state.lists_naming("c")) == (["p", "q"], ["p"], [])


def test_members_come_oldest_first() -> None:
    state = State()
    newer, older, away = a_human("a", created_at=NOW + HOUR), a_human("b"), a_human("c", org_id="away")
    for human in (newer, older, away):
        state.put_human(human)
    assert state.members_of(HOME) == [older, newer]


def test_a_table_is_walked_in_place_by_the_writer_only() -> None:
    """Anybody else walks over a copy made in one step: the table may change under them, which raises an error."""
    found = []
    for file in sorted((ROOT / "gateway").rglob("*.py")):
        tree = ast.parse(file.read_text())
        copied = [
            node.args[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "list" and node.args
        ]
        walks = [node.iter for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)]
        calls = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and re.search(r"\.(values|items|keys)$", ast.unparse(node.func))
        ]
        for node in (*walks, *calls):
            table = re.fullmatch(r"(?:(.*)\.)?_?state\.(\w+)(\.(values|items|keys)\(\))?", ast.unparse(node))
            if table and table[1] != "tx" and table[2] in vars(State()) and node not in copied:
                found.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert found == []
