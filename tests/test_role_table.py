"""The shipped policies against the table of roles, written out a second time in plain Python, over worlds that change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from gateway.model.caller import Caller
from gateway.model.proposal import Proposal
from gateway.model.records import PEER_TYPES, ROLES, Agent, ApprovalHeader, Org, Pause, Peer
from gateway.model.rules import MODES, NO_RULES, parse_rules
from tests.remote import a_remote_connection
from tests.world import (
    AWAY,
    HOME,
    HOUR,
    NOW,
    World,
    a_connection,
    a_human,
    a_peer,
    a_proposal,
    agent_caller,
    an_agent,
    an_approval,
    an_entry,
    caller,
    session,
    shipped,
)

HUMANS = ("hanna", "hugo", "heidi")
AGENTS = ("alpha", "beta", "gamma")
PEERS = ("about-hanna", "about-hugo", "linked", "outside")

# -- the table. An agent's own acts first; everything else is for humans.

OBSERVED = {"peer.read", "peer.see_content", "peer.read_context", "peer.predict", "peer.record_event"}
RIGHTS_OF_THE_PERSON = OBSERVED | {
    "peer.set_observers",
    "peer.read_observers",
    "peer.read_fact",
    "peer.edit_fact",
    "peer.delete_fact",
    "peer.dispute_fact",
    "peer.ask_me",
    "peer.read_suppressions",
    "peer.lift_suppression",
    "peer.read_pause",
    "peer.set_pause",
    "peer.preview",
    "peer.delete_event",
    "peer.export",
    "peer.erase",
}
MANAGING = {"agent.update", "agent.set_rules", "agent.rotate_key", "agent.delete", "agent.create_child"}


class Oracle:
    """What the table of roles says, of one world at one time."""

    def __init__(self, world: World, now: datetime) -> None:
        self.state = world.state
        self.now = now

    def on_peer(self, who: Caller, action: str, peer: Peer) -> bool:
        if who.type == "Agent":
            agent = self.state.agents.get(who.id)
            if agent is None or not agent.is_active or agent.org_id != peer.org_id or peer.archived:
                return False
            listed = self.state.observers.get(peer.id, {}).get(agent.id)
            if listed is None or (listed.expires_at is not None and listed.expires_at <= self.now):
                return False
            return action in OBSERVED and not (action == "peer.see_content" and self.paused(peer))
        if who.type != "Human" or who.id not in self.state.humans or self.org(who) != peer.org_id:
            return False
        if action == "peer.link":
            return self.leads(who) and self.connected(peer)
        if self.leads(who):
            return True
        if action == "peer.create":
            return peer.peer_type == "user" and self.person(peer) == who.id
        return action in RIGHTS_OF_THE_PERSON and self.person(peer) == who.id

    def on_approval(self, who: Caller, action: str, approval: ApprovalHeader) -> bool:
        if who.type == "Agent":
            agent = self.state.agents.get(who.id)
            asked = agent is not None and agent.is_active and agent.org_id == approval.org_id and approval.agent_id == agent.id
            return asked and action in {"approval.read", "approval.read_status", "approval.cancel"}
        if who.type != "Human" or who.id not in self.state.humans or self.org(who) != approval.org_id:
            return False
        if action == "approval.decide" and approval.agent_id is None and approval.asked_by in {None, who.id}:
            return False  # what a human asked for is decided by a second one
        addressed = approval.user_id == who.id
        return action in {"approval.read", "approval.decide", "approval.cancel"} and (addressed or self.leads(who))

    def on_agent(self, who: Caller, action: str, agent: Agent) -> bool:
        if who.type == "Agent":
            itself = who.id == agent.id and agent.is_active
            return itself and action in {"agent.read", "agent.read_self", "agent.read_context", "agent.list_children"}
        if who.type != "Human" or who.id not in self.state.humans or self.org(who) != agent.org_id:
            return False
        registered = self.role(who) == "member" and agent.created_by == who.id
        return action in MANAGING | {"agent.read", "agent.list_children"} and (registered or self.leads(who))

    def on_org(self, who: Caller, action: str, org: Org) -> bool:
        if who.type == "Agent":
            agent = self.state.agents.get(who.id)
            return agent is not None and agent.is_active and agent.org_id == org.id and action == "approval.list_own"
        if who.type != "Human" or who.id not in self.state.humans or self.org(who) != org.id:
            return False
        match action:
            case "peer.list_own" | "approval.list_own":
                return True
            case "agent.create" | "agent.list_own":
                return self.role(who) in {"owner", "admin", "member"}
            case "peer.list" | "approval.list" | "agent.list":
                return self.leads(who)
        raise AssertionError(action)

    def on_proposal(self, who: Caller, action: str, proposal: Proposal) -> bool:
        agent = self.state.agents.get(who.id) if who.type == "Agent" else None
        if agent is None or not agent.is_active:
            return False
        written = agent.rules.rule_for(proposal.action_type)
        if action == "approval.request":
            mode = agent.rules.default_mode if written is None else written.mode
            return not proposal.platform_made and (proposal.asked_always or mode != "deny")
        if written is None or written.mode != "allow" or proposal.sensitive or proposal.risk_tier > 1:
            return False
        amount = proposal.amount.value
        return written.threshold is None or (amount is not None and amount < written.threshold)

    def org(self, who: Caller) -> str:
        return self.state.humans[who.id].org_id

    def role(self, who: Caller) -> str:
        return self.state.humans[who.id].role

    def leads(self, who: Caller) -> bool:
        return self.role(who) in {"owner", "admin"}

    def paused(self, peer: Peer) -> bool:
        return peer.pause.reading and (peer.pause.until is None or self.now < peer.pause.until)

    def connected(self, peer: Peer) -> bool:
        return peer.connection_id in self.state.connections

    def person(self, peer: Peer) -> str | None:
        if peer.peer_type == "user":
            named = peer.peer_ref
        else:
            linked = self.state.connections.get(peer.connection_id or "")
            named = "" if linked is None else linked.user_id
        found = self.state.humans.get(named)
        return found.id if found is not None and found.org_id == peer.org_id else None


# -- the actions, as the schema has them


def _actions(resource: str) -> tuple[str, ...]:
    found, name = [], ""
    for line in shipped().schema_text.splitlines():
        if line.startswith('action "'):
            name = line.split('"')[1]
        if f"resource: [{resource}]" in line and (
            name == "suggest_auto" or name.partition(".")[0] in {"peer", "approval", "agent"}
        ):
            found.append(name)
    return tuple(found)


PEER_ACTIONS, APPROVAL_ACTIONS = _actions("Peer"), _actions("Approval")
AGENT_ACTIONS, ORG_ACTIONS, PROPOSAL_ACTIONS = _actions("Agent"), _actions("Org"), _actions("ProposedAction")

humans, agents, peers = st.sampled_from(HUMANS), st.sampled_from(AGENTS), st.sampled_from(PEERS)
delays = st.sampled_from([timedelta(0), HOUR, 2 * HOUR])
ends = st.none() | delays
ALLOW_BELOW_80 = {"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "80"}]}
proposals = st.builds(
    a_proposal,
    st.sampled_from(["refund.create", "ticket.close", "agent.delete", "access_request", "policy_change"]),
    rules=st.sampled_from([None, ALLOW_BELOW_80]),
    declared=st.sampled_from([None, 1, 2]),
    known=st.booleans(),
    amount_usd=st.sampled_from([None, "0", "49.9999", "50", "79.9999", "80"]),
    recipient=st.sampled_from([None, "a@b.co"]),
)  # fmt: skip
policies = st.builds(
    lambda default, mode, limit: parse_rules(
        {
            "default_mode": default,
            "rules": [{"action_type": "refund.create", "mode": mode, "require_for_amount_above_usd": limit}],
        }
    ),
    st.sampled_from(MODES),
    st.sampled_from(MODES),
    st.sampled_from([None, "0", "50", "80"]),
)


class RoleTable(RuleBasedStateMachine):
    """People, agents, lists, leases, pauses and roles change; the door keeps its slices; each answer is the table's."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.now = NOW
        for number, name in enumerate(HUMANS):
            self.world.state.put_human(a_human(name, ROLES[-1 - number]))
        for name in AGENTS:
            self.world.state.put_agent(an_agent(name, created_by="hanna"))
        self.world.state.put_connection(a_connection("link", "heidi"))
        self.world.state.put_remote_connection(a_remote_connection("partner", "alpha"))
        for name, person in zip(PEERS, HUMANS, strict=False):
            self.world.state.put_peer(a_peer(name, person))
        self.world.state.put_peer(a_peer("linked", "link", peer_type="platform_connection", connection_id="link"))
        self.world.state.put_peer(a_peer("outside", "x", peer_type="external"))

    # -- what changes

    @rule(name=humans, role=st.sampled_from(ROLES), org=st.sampled_from([HOME, HOME, HOME, AWAY]))
    def a_human_has_another_role(self, name: str, role: Any, org: str) -> None:
        self.world.state.put_human(a_human(name, role, org))

    @rule(name=humans)
    def a_human_leaves(self, name: str) -> None:
        self.world.state.drop_human(name)

    @rule(
        name=agents,
        active=st.booleans(),
        by=humans,
        rules=policies | st.just(NO_RULES),
        org=st.sampled_from([HOME, HOME, HOME, AWAY]),
    )
    def an_agent_changes(self, name: str, active: bool, by: str, rules: Any, org: str) -> None:
        self.world.state.put_agent(an_agent(name, org, is_active=active, created_by=by, rules=rules))

    @rule(name=agents)
    def an_agent_is_deleted(self, name: str) -> None:
        self.world.state.drop_agent(name)

    @rule(peer=peers, listed=st.dictionaries(agents, ends))
    def a_list_is_replaced(self, peer: str, listed: dict[str, timedelta | None]) -> None:
        entries = [an_entry(peer, agent, None if after is None else self.now + after) for agent, after in listed.items()]
        self.world.state.put_observers(peer, entries)

    @rule(peer=peers, reading=st.booleans(), after=ends)
    def a_person_pauses(self, peer: str, reading: bool, after: timedelta | None) -> None:
        pause = Pause(reading=reading, until=None if after is None else self.now + after)
        self.world.state.put_peer(replace(self.world.state.peers[peer], pause=pause))

    @rule(peer=peers, archived=st.booleans(), kind=st.sampled_from(PEER_TYPES), link=st.sampled_from([None, "link", "gone"]))
    def a_peer_changes(self, peer: str, archived: bool, kind: Any, link: str | None) -> None:
        standing = self.world.state.peers[peer]
        self.world.state.put_peer(replace(standing, archived=archived, peer_type=kind, connection_id=link))

    @rule(by=delays)
    def time_passes(self, by: timedelta) -> None:
        self.now += by

    # -- what is asked

    @rule(peer=peers)
    def about_a_peer(self, peer: str) -> None:
        self.compare(PEER_ACTIONS, self.world.state.peers[peer], self.oracle.on_peer)

    @rule(agent=st.none() | agents, asker=st.none() | humans, human=humans, org=st.sampled_from([HOME, AWAY]))
    def about_an_approval(self, agent: str | None, asker: str | None, human: str, org: str) -> None:
        approval = an_approval("approval", agent, human, asked_by=asker, org_id=org)
        self.compare(APPROVAL_ACTIONS, approval, self.oracle.on_approval)

    @rule(agent=agents)
    def about_an_agent(self, agent: str) -> None:
        if agent in self.world.state.agents:
            self.compare(AGENT_ACTIONS, self.world.state.agents[agent], self.oracle.on_agent)

    @rule(org=st.sampled_from([HOME, AWAY]))
    def about_an_organisation(self, org: str) -> None:
        self.compare(ORG_ACTIONS, self.world.state.orgs[org], self.oracle.on_org)

    @rule(proposal=proposals)
    def about_a_proposal(self, proposal: Proposal) -> None:
        for who in self.everyone():
            asked = session(who, self.now)
            automatic = self.world.access.ask_automatic(asked, proposal, principal=who, person_paused=False).allowed
            request = self.world.access.ask(asked, "approval.request", proposal).allowed
            expected = [self.oracle.on_proposal(who, action, proposal) for action in ("suggest_auto", "approval.request")]
            assert [automatic, request] == expected, (who, proposal)

    @invariant()
    def nobody_from_elsewhere_gets_in(self) -> None:
        for who in (caller("stranger", org_id=AWAY), agent_caller("foreign", AWAY), caller("app", "Platform")):
            peer = self.world.state.peers["about-hanna"]
            assert not self.world.access.ask(session(who, self.now), "peer.read", peer).allowed

    # -- comparing

    @property
    def oracle(self) -> Oracle:
        return Oracle(self.world, self.now)

    def everyone(self) -> list[Caller]:
        state = self.world.state
        orgs = dict.fromkeys((*HUMANS, *AGENTS), HOME)
        orgs |= {human.id: human.org_id for human in state.humans.values()}
        orgs |= {agent.id: agent.org_id for agent in state.agents.values()}
        people = [caller(name, org_id=orgs[name]) for name in HUMANS]
        return [
            *people,
            *(agent_caller(name, orgs[name]) for name in AGENTS),
            caller("app", "Platform"),
            caller("partner", "Connection"),
            caller("alpha", "Bridge", orgs["alpha"]),
            caller("stranger", org_id=AWAY),
        ]

    def compare(self, actions: tuple[str, ...], target: Any, expected: Callable[[Caller, str, Any], bool]) -> None:
        for who in self.everyone():
            asked = session(who, self.now)
            answers = {action: self.world.access.ask(asked, action, target).allowed for action in actions}
            assert answers == {action: expected(who, action, target) for action in actions}, who


RoleTable.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
test_every_answer_is_the_one_of_the_table = RoleTable.TestCase


def test_every_action_on_peers_approvals_and_agents_is_compared() -> None:
    compared = {*PEER_ACTIONS, *APPROVAL_ACTIONS, *AGENT_ACTIONS, *ORG_ACTIONS, *PROPOSAL_ACTIONS}
    wanted = {name for name in shipped().actions if name.partition(".")[0] in {"peer", "approval", "agent"}} | {"suggest_auto"}
    assert compared == wanted
    assert len(compared) > 40
