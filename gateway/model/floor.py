"""The floor: which rows a caller's grants cover, worked out without any policy.

What is read has to pass this and the policies both: a policy that allows too much opens nothing that was not granted, and a
grant that is wrong opens nothing that a policy forbids.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.model.caller import Caller
from gateway.model.condition import FALSE, Condition, Empty, Equals, HeldBy, HoldsAll, HoldsAny, Not, OneOf, all_of, any_of
from gateway.model.gather import gather
from gateway.model.memory import MemoryGrant
from gateway.model.records import Agent

#: What is no longer so for anybody but the owner.
LIVE: tuple[Condition, ...] = (Equals("retracted", False), Equals("superseded", False), Equals("expired", False))


def floor_of(principal: Caller, agent: Agent, grants: Sequence[MemoryGrant], *, live: bool) -> Condition:
    """The rows of an agent that a principal can have at all.

    A person's are all of them, whom the policies let; an agent's its own; a connection's what the grants cover. Nobody else
    has any.
    """
    match principal.type:
        case "Human":
            return owner_floor(agent.org_id, agent.id, live=live)
        case "Agent" if principal.id == agent.id:
            return owner_floor(agent.org_id, agent.id, live=live)
        case "Connection":
            return granted_floor(agent.org_id, agent.id, principal.id, grants)
        case _:
            return FALSE


def owner_floor(org_id: str, agent_id: str, *, live: bool) -> Condition:
    """The rows of one agent; with `live`, only those that are not retracted, superseded or expired."""
    return all_of(Equals("org", org_id), Equals("agent", agent_id), *(LIVE if live else ()))


def granted_floor(org_id: str, agent_id: str, connection_id: str, grants: Sequence[MemoryGrant]) -> Condition:
    """The live rows of one agent that at least one of the grants covers; of no grants, none."""
    covered = gather(any_of(*(_covered(grant, connection_id) for grant in grants)))
    return all_of(owner_floor(org_id, agent_id, live=True), covered)


def _covered(grant: MemoryGrant, connection_id: str) -> Condition:
    """Untagged rows have no project, so they equal none."""
    terms: list[Condition] = [Equals("project", grant.project_id), OneOf("classification", grant.classifications)]
    if grant.tags:
        terms.append(HoldsAll("tags", grant.tags) if grant.tags_match == "all" else HoldsAny("tags", grant.tags))
    match grant.provenance:
        case "owner_only":
            terms.append(Empty("sources"))
        case "own_connection":
            terms += [Not(Empty("sources")), HeldBy("sources", (connection_id,))]
        case "any":
            pass
    return all_of(*terms)
