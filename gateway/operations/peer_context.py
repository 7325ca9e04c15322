"""The context of a peer: what an agent is told about the person it serves, as prose within a budget."""

from __future__ import annotations

from derive.context import render
from gateway import limits
from gateway.errors import NotFound
from gateway.model.caller import Caller
from gateway.model.grant import Grant
from gateway.model.records import Agent, Peer
from gateway.operations.call import Call
from gateway.operations.contexts import Served
from gateway.operations.fields import Fields
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import peers as wire
from gateway.store import facts
from gateway.store.entities import Missing
from gateway.store.retention import bury_expired, next_expiry
from gateway.store.writer import Unit


async def bury_what_expired(call: Call, grant: Grant[Peer]) -> None:
    """The lazy check at read: no event of the peer that is 90 days old is there when this returns.

    The change is no act of the caller: it leaves the rows of the session for the end of the request.
    """
    peer_id, cache = grant.target.id, call.services.contexts
    while not cache.settled(peer_id, version := facts_version(call, peer_id), call.now):
        expiry = await call.services.database.read(lambda rows: next_expiry(rows, peer_id))
        cache.keep_expiry(peer_id, version, expiry)
        if expiry is not None and expiry <= call.now:
            await call.services.database.awrite(Unit(lambda tx: bury_expired(tx, call.now, peers=(peer_id,))))


def facts_version(call: Call, peer_id: str) -> int:
    return call.state.facts_versions.get(peer_id, 0)


async def render_context(call: Call, grant: Grant[Peer], budget: int, *, visible: bool) -> Served:
    """The context as of now; what is not visible reads exactly like a person without a history."""
    if not visible:
        return Served("", 0, budget, 0, 0, ())
    await bury_what_expired(call, grant)
    peer_id, cache, day = grant.target.id, call.services.contexts, call.now.date()
    version = facts_version(call, peer_id)
    kept = cache.text(peer_id, budget, version, day)
    if kept is None:
        beliefs = await call.read(facts.beliefs, grant)
        made = render(beliefs, budget=budget)
        available = sum(not belief.disputed for belief in beliefs)
        kept = Served(made.text, made.characters, budget, available, len(beliefs) - len(made.cut), made.cut)
        cache.keep_text(peer_id, version, day, kept)
    return kept


def read_budget(query: Fields) -> int:
    return query.count("budget", least=1, most=limits.CONTEXT_BUDGET_CAP, default=limits.CONTEXT_BUDGET, clamp=True)


async def read_context(call: Call) -> Reply:
    budget = read_budget(call.query)
    served = await _serve(call, call.peer(call.path["id"]), budget)
    return Reply(served.shape, text=("application/json", served.json))


async def read_own_context(call: Call) -> Reply:
    budget = read_budget(call.query)
    grant = call.access.authorize(call.session, "agent.read_context", call.agent(call.path["id"]))
    peer = _peer_served_by(call, grant.target)  # the agent itself: nobody else may ask this
    if peer is None:
        raise NotFound
    return Reply({"peer_id": peer.id, **(await _serve(call, peer, budget)).shape})


async def preview(call: Call) -> Reply:
    budget, agent_id = read_budget(call.query), call.query.id("agent_id")
    grant = call.access.authorize(call.session, "peer.preview", call.peer(call.path["id"]))
    agent = call.agent(agent_id)
    if not isinstance(agent, Agent):
        raise call.query.wrong("agent_id", "an agent of this organisation")
    them = Caller("Agent", agent.id, agent.org_id, "")
    reads = call.access.ask(call.session, "peer.read_context", grant.target, principal=them)
    sees = reads.allowed and call.access.ask(call.session, "peer.see_content", grant.target, principal=them).allowed
    served = await render_context(call, grant, budget, visible=sees)
    grant.note(kind="preview", agent_id=agent.id, facts_served=served.served)
    cut = [{"fact_key": each.fact_key, "reason": each.reason} for each in served.cut]
    shown = {"context": served.text, "characters": served.characters, "budget": budget, "cut": cut}
    return Reply({"agent_id": agent.id, "allowed": reads.allowed, **shown})


async def _serve(call: Call, target: Peer | Missing, budget: int) -> Served:
    grant, visible = call.access.authorize_with(call.session, "peer.read_context", "peer.see_content", target)
    served = await render_context(call, grant, budget, visible=visible)
    grant.note(kind="context", facts_served=served.served)
    return served


def _peer_served_by(call: Call, agent: Agent) -> Peer | None:
    """The peer of the agent's connection if the agent observes it; else the one active peer it observes; of several, the
    one whose person registered the agent."""
    observed = [peer for peer in call.state.observed_peers(agent.id, call.now) if not peer.archived]
    linked = call.state.peer_of_connection(agent.connection_id) if agent.connection_id is not None else None
    if linked in observed:
        return linked
    if len(observed) > 1:
        people = [(peer, call.state.person_of(peer)) for peer in observed]
        observed = [peer for peer, person in people if person is not None and person.id == agent.created_by]
    return min(observed, key=lambda peer: (peer.created_at, peer.id), default=None)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "peer.read_context",
        "GET",
        "/v1/peers/{id}/context",
        "Tell what is believed about a person, as prose within a budget.",
        read_context,
        actions=("peer.read_context", "peer.see_content"),
        query=wire.BUDGET,
        answers={200: wire.CONTEXT},
    ),
    Operation(
        "agent.read_context",
        "GET",
        "/v1/agents/{id}/peer-context",
        "Tell an agent what is believed about the person it serves.",
        read_own_context,
        actions=("agent.read_context", "peer.read_context", "peer.see_content"),
        query=wire.BUDGET,
        answers={200: wire.OWN_CONTEXT},
    ),
    Operation(
        "peer.preview",
        "GET",
        "/v1/peers/{id}/preview",
        "Show what an agent would be told about a person now.",
        preview,
        actions=("peer.preview", "peer.read_context", "peer.see_content"),
        query=wire.PREVIEWED,
        strict=True,
        answers={200: wire.PREVIEW},
    ),
)
