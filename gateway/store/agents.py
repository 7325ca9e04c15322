"""Agents: registered, changed, given a key, and deleted with everything that hangs on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gateway import limits
from gateway.errors import Conflict, Invalid, NotFound
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.records import Agent, Credential, Org
from gateway.model.rules import NO_RULES, ApprovalRules, widens
from gateway.store.approval_outcomes import cancel_pending_of
from gateway.store.canonical import canonical
from gateway.store.credentials import end_credentials, insert_credential
from gateway.store.remote_connections import end_all_of
from gateway.store.rows import Tx
from gateway.store.state import State

INSERT = """INSERT INTO agents (id, org_id, name, description, is_active, created_by, parent_id, connection_id, approval_policy,
  token_ttl_seconds, attributes, generation, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"""
UPDATE = """UPDATE agents SET name = $2, description = $3, is_active = $4, approval_policy = $5, token_ttl_seconds = $6,
  attributes = $7, generation = $8 WHERE id = $1"""
DELETE = "UPDATE agents SET deleted_at = $2, is_active = false, generation = generation + 1 WHERE id = $1"
END_KEYS_AT = "UPDATE credentials SET expires_at = $2 WHERE principal_type = 'Agent' AND principal_id = $1"
DELETE_OBSERVERS = "DELETE FROM observers WHERE agent_id = $1"
DELETE_REMOVED = "DELETE FROM removed_observers WHERE agent_id = $1"

#: What a child may have at most of what its parent has.
SUBSETS = ("scopes", "vault_ids")
ADD_FIRST = "this organisation has wider policies approved first: add the agent without `action_approval_policy`, then change it"


def listed(state: State, grant: Grant[Org]) -> list[Agent]:
    """The organisation's agents that the grant covers, oldest first: all of them, or those the caller registered."""
    found = [agent for agent in list(state.agents.values()) if agent.org_id == grant.target.id]
    if grant.action == "agent.list_own":
        found = [agent for agent in found if agent.created_by == grant.caller.id]
    grant.note(served=len(found))
    return sorted(found, key=lambda agent: (agent.created_at, agent.id))


def children(state: State, grant: Grant[Agent]) -> list[Agent]:
    """The children of the granted agent, oldest first."""
    found = [agent for agent in list(state.agents.values()) if agent.parent_id == grant.target.id]
    return sorted(found, key=lambda agent: (agent.created_at, agent.id))


def register(tx: Tx, grant: Grant[Org], agent: Agent, key: Credential) -> None:
    """Add an agent and its first key.

    Raises:
        Conflict: its policy waits for a second person.
    """
    refuse_wider(tx, agent.org_id, NO_RULES, agent.rules)
    insert(tx, agent, key)
    tx.append(grant.audit("agent.created", {"agent_id": agent.id}, resource=EntityUid("Agent", agent.id)))


def register_child(tx: Tx, grant: Grant[Agent], wanted: Agent, key: Credential, *, own_rules: bool) -> Agent:
    """Add a child of the granted agent, and return it; what it takes from its parent, it takes as the parent is now.

    Raises:
        Invalid: it would have a scope or a vault that its parent has not.
        Conflict: the parent has as many children as it may have, or the child's own policy waits for a second person.
    """
    parent = current(tx, grant)
    if own_rules:
        refuse_wider(tx, parent.org_id, parent.rules, wanted.rules)
    agent = replace(
        wanted,
        # The human who answers for the parent answers for the child.
        created_by=parent.created_by,
        rules=wanted.rules if own_rules else parent.rules,
        token_ttl_seconds=parent.token_ttl_seconds,
        attributes=_within(parent, wanted.attributes),
    )
    if len(tx.state.children_of(parent.id)) >= limits.CHILDREN_PER_AGENT:
        raise Conflict(f"this agent has {limits.CHILDREN_PER_AGENT} children, which is the most it may have")
    insert(tx, agent, key)
    about = {"agent_id": agent.id, "parent_id": parent.id}
    tx.append(grant.audit("agent.child_created", about, resource=EntityUid("Agent", agent.id)))
    return agent


def refuse_wider(tx: Tx, org_id: str, default: ApprovalRules, rules: ApprovalRules) -> None:
    """Refuse a new agent whose policy waits for a second person, which adding it anew would be the way around.

    `default` is the policy that it would have without.

    Raises:
        Conflict: it is wider.
    """
    if tx.state.orgs[org_id].settings.guardrail_changes_require_approval and widens(default, rules):
        raise Conflict(ADD_FIRST)


def insert(tx: Tx, agent: Agent, key: Credential) -> None:
    """Write an agent and its key, and publish both after the commit."""
    tx.run(
        INSERT,
        agent.id,
        agent.org_id,
        agent.name,
        agent.description,
        agent.is_active,
        agent.created_by,
        agent.parent_id,
        agent.connection_id,
        rules_text(agent.rules),
        agent.token_ttl_seconds,
        canonical(agent.attributes),
        agent.generation,
        agent.created_at,
    )
    tx.after_commit(lambda: tx.state.put_agent(agent))
    insert_credential(tx, key)


def update(tx: Tx, grant: Grant[Agent], changes: Mapping[str, object]) -> Agent:
    """Change an agent; deactivating it ends every key and token it has.

    `changes` are fields of the record, but for `attributes`, which are merged into those it has, and `api_key_expires_at`,
    which is the end of the key it has.
    """
    agent = current(tx, grant)
    merged = {**agent.attributes, **dict(changes.get("attributes", {}))}  # type: ignore[call-overload]  # a mapping, from the reader
    fields = {name: value for name, value in changes.items() if name != "api_key_expires_at"}
    changed = replace(agent, **{**fields, "attributes": merged})  # type: ignore[arg-type]  # typed by the reader of the body
    if "api_key_expires_at" in changes:
        _end_keys_at(tx, agent.id, changes["api_key_expires_at"])
    if agent.is_active and not changed.is_active:
        changed = replace(changed, generation=agent.generation + 1)
        end_credentials(tx, "Agent", agent.id)
    save(tx, changed)
    tx.append(grant.audit("agent.updated", {"agent_id": agent.id, "fields": sorted(changes)}))
    return changed


def save(tx: Tx, agent: Agent) -> None:
    """Write an agent as it is now, and publish it after the commit."""
    tx.run(
        UPDATE,
        agent.id,
        agent.name,
        agent.description,
        agent.is_active,
        rules_text(agent.rules),
        agent.token_ttl_seconds,
        canonical(agent.attributes),
        agent.generation,
    )
    tx.after_commit(lambda: tx.state.put_agent(agent))


def rotate_key(tx: Tx, grant: Grant[Agent], key: Credential, end: Mapping[str, object]) -> None:
    """Give an agent a new key; every key and token it had ends. `end` is the attribute that shows when the new one does."""
    agent = current(tx, grant)
    end_credentials(tx, "Agent", agent.id)
    save(tx, replace(agent, generation=agent.generation + 1, attributes={**agent.attributes, **end}))
    insert_credential(tx, key)
    tx.append(grant.audit("agent.key_rotated", {"agent_id": agent.id}))


def delete(tx: Tx, grant: Grant[Agent]) -> None:
    """End an agent and its children: keys, tokens, places on observer lists, what they wait for, and whoever was connected
    to them. Their history stays, and so does what they remember: owners and admins read it until it is forgotten."""
    agent = current(tx, grant)
    for gone in (agent, *tx.state.children_of(agent.id)):
        tx.run(DELETE, gone.id, grant.now)
        tx.run(DELETE_OBSERVERS, gone.id)
        tx.run(DELETE_REMOVED, gone.id)
        cancel_pending_of(tx, grant, gone.id)
        end_credentials(tx, "Agent", gone.id)
        end_all_of(tx, grant, gone)
        tx.after_commit(lambda agent_id=gone.id: _forget(tx.state, agent_id))  # type: ignore[misc]  # a default binds the loop's value
        tx.append(grant.audit("agent.deleted", {"agent_id": gone.id}, resource=EntityUid("Agent", gone.id)))


def current(tx: Tx, grant: Grant[Agent]) -> Agent:
    """The granted agent as it is inside the transaction.

    Raises:
        NotFound: it was deleted since the decision.
    """
    agent = tx.state.agents.get(grant.target.id)
    if agent is None:
        raise NotFound
    return agent


def _within(parent: Agent, given: Mapping[str, object]) -> dict[str, object]:
    """A child's attributes: its own where it names some, else those of the parent that it may share."""
    for field in SUBSETS:
        if not _names(given, field) <= _names(parent.attributes, field):
            raise Invalid(f"`{field}` of a child must be among those of its parent", field=field)
    return {**{field: parent.attributes[field] for field in SUBSETS if field in parent.attributes}, **given}


def _names(attributes: Mapping[str, object], field: str) -> set[object]:
    listed = attributes.get(field)
    return set(listed) if isinstance(listed, list) else set()


def rules_text(rules: ApprovalRules) -> str | None:
    """An agent's policy as the table holds it; no text for one that says nothing."""
    return canonical(rules.source) if rules.source else None


def _end_keys_at(tx: Tx, agent_id: str, end: object) -> None:
    tx.run(END_KEYS_AT, agent_id, end)

    def publish() -> None:
        for key in tx.state.credentials_of("Agent", agent_id):
            tx.state.put_credential(replace(key, expires_at=end))  # type: ignore[arg-type]  # a time, from the reader of the body

    tx.after_commit(publish)


def _forget(state: State, agent_id: str) -> None:
    state.drop_agent(agent_id)
    for peer_id in state.lists_naming(agent_id):
        state.put_observers(peer_id, [entry for entry in state.observers[peer_id].values() if entry.agent_id != agent_id])
    for peer_id, removed in list(state.removed_observers):
        if removed == agent_id:
            state.remember_removed(peer_id, removed, removed=False)
