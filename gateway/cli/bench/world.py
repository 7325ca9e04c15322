"""A world for decisions in this process: an organisation in memory, with the shipped policies and nothing on disk."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from gateway.access.door import Access
from gateway.cli.bench.records import a_human, a_peer, an_agent, an_observer, an_org
from gateway.config import Settings
from gateway.model.caller import Caller
from gateway.model.decision import Query
from gateway.model.entity import Value
from gateway.model.grant import Session
from gateway.model.records import Agent, Peer
from gateway.model.rules import NO_RULES, ApprovalRules
from gateway.policy.context import Context
from gateway.policy.engine import PolicyEngine
from gateway.policy.engines import Engines
from gateway.policy.slice import Slice
from gateway.store.entities import Compiler, uid_of
from gateway.store.state import State
from gateway.wiring import load_bundle


class World:
    """Filled through the same methods of the state that loading uses; `access` decides over it."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)
        self.state = State()
        self.engine = PolicyEngine(load_bundle(Settings(data=Path())), salt=b"bench")
        self.access = Access(Engines(self.engine), self.state)
        self.org = an_org(self.now)
        self.owner = a_human(0, self.org.id, self.now)
        self.state.put_org(self.org)
        self.state.put_human(self.owner)

    def agent(self, number: int, rules: ApprovalRules = NO_RULES) -> Caller:
        agent = an_agent(number, self.org.id, self.owner.id, self.now, rules)
        self.state.put_agent(agent)
        return Caller("Agent", agent.id, self.org.id, "bench")

    def peer(self, number: int, observers: list[Caller]) -> Peer:
        """A peer about a person of its own."""
        person = a_human(number + 1, self.org.id, self.now)
        peer = a_peer(number, self.org.id, person.id, self.now)
        self.state.put_human(person)
        self.state.put_peer(peer)
        self.state.put_observers(peer.id, [an_observer(peer.id, agent.id, self.owner.id, self.now) for agent in observers])
        return peer

    def session(self, caller: Caller) -> Session:
        return Session(caller, "bench", self.now)

    def slice(self, caller: Caller, peer: Peer) -> Slice:
        """What a decision is asked over, made as `Access` makes it."""
        entities, _ = Compiler(self.state).compile(caller, peer, self.now)
        return self.engine.slice(*entities)

    def query(self, caller: Caller, action: str, peer: Peer | Agent) -> Query:
        """What a decision asks, its context as on a wall clock in UTC."""
        minute = self.now.replace(second=0, microsecond=0)
        clock: dict[str, Value] = {
            "minute": minute.hour * 60 + minute.minute,
            "weekday": minute.isoweekday(),
            "date": minute.date().isoformat(),
        }
        return Query(caller.uid, action, uid_of(peer), Context({"now": minute, "clock": clock}))

    def touch(self) -> None:
        """Change something: no slice that was kept stands any more."""
        self.state.put_org(self.org)
