"""Peers as rows: what a plan keeps of them is what each is decided to be."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.access.door import Access
from gateway.model.caller import Caller
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.records import ROLES
from gateway.policy.engines import Engines
from gateway.store import peer_rows
from gateway.store.entities import Compiler, Missing
from gateway.store.state import State
from tests.store.test_entities import ENGINE, ends, peers, states
from tests.world import HOME, NOW, a_human, agent_caller, an_agent, an_entry, caller, session

ACTIONS = sorted(name for name, kinds in ENGINE.bundle.vocabulary.resources.items() if "Peer" in kinds)
SUBJECTS = [caller("a"), agent_caller("a"), agent_caller("b"), caller("a", "Connection"), caller("a", "Platform")]


@settings(max_examples=200, deadline=None)
@given(states())
def test_a_row_has_the_attributes_of_the_entity(state: State) -> None:
    found = {str(row["id"]): row for row in peer_rows.rows(state, HOME, NOW)}
    assert found.keys() == {peer.id for peer in state.peers.values() if peer.org_id == HOME}
    for peer_id, row in found.items():
        entities, _ = Compiler(state).compile(caller("owner"), state.peers[peer_id], NOW)
        [entity] = [each for each in entities if each.uid == EntityUid("Peer", peer_id)]
        attributes = {n: value.id if isinstance(value, EntityUid) else value for n, value in entity.attrs.items()}
        assert row == {"id": peer_id, **attributes}


@st.composite
def households(draw: st.DrawFn) -> State:
    """Some state in which there is more for the subjects: they are at home, and so are a few more peers."""
    state = draw(states())
    state.put_human(a_human("a", draw(st.sampled_from(ROLES))))
    state.put_agent(an_agent("a"))
    state.put_agent(an_agent("b", created_by="a"))
    for number in range(3):
        peer = replace(draw(peers), id=f"peer-{number}", org_id=HOME)
        state.put_peer(peer)
        state.put_observers(peer.id, [an_entry(peer.id, agent, draw(ends)) for agent in draw(st.sets(st.sampled_from("ab")))])
    return state


@settings(max_examples=300, deadline=None)
@given(households(), st.sampled_from(SUBJECTS), st.sampled_from(ACTIONS))
def test_a_plan_keeps_those_peers_that_are_decided_to_be_allowed(state: State, subject: Caller, action: str) -> None:
    access = Access(Engines(ENGINE), state)
    asked = session(caller("owner"))
    missing = Missing("Peer", "-")
    grant = Grant(asked, action, EntityUid("Peer", "-"), missing, access.ask(asked, action, missing).row)
    kept = access.could_be_allowed(grant, subject, action)
    here = [peer for peer in state.peers.values() if peer.org_id == HOME]
    allowed = {peer.id for peer in here if access.answer(grant, subject, action, peer).allowed}
    assert kept is None or kept == allowed


def test_all_but_one_action_on_peers_has_a_plan() -> None:
    access, asked = Access(Engines(ENGINE), State()), session(caller("owner"))
    missing = Missing("Peer", "-")
    grant = Grant(asked, "peer.read", EntityUid("Peer", "-"), missing, access.ask(asked, "peer.read", missing).row)
    without = {a for a in ACTIONS for subject in SUBJECTS if access.could_be_allowed(grant, subject, a) is None}
    assert without == {"peer.link"}
