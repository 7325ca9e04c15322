"""Policies that organisations wrote, as they are kept: each step of a policy is a row, and none is ever changed."""

from __future__ import annotations

from gateway.errors import Stale
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.org_policy import OrgPolicy, PolicyVersion
from gateway.model.records import Org
from gateway.store.rows import Rows, Tx
from gateway.store.swap import Swap, apply

COLUMNS = "policy_id, number, previous, cedar_text, mode, enforced, written_by, created_at"
VERSIONS = f"SELECT {COLUMNS} FROM org_policy_versions WHERE policy_id = $1 ORDER BY number"  # noqa: S608  # constants only
INSERT = """INSERT INTO org_policies (id, org_id, name, description, version, created_by, created_at, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"""
INSERT_VERSION = f"INSERT INTO org_policy_versions ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"  # noqa: S608  # as above
UPDATE = "UPDATE org_policies SET name = $2, description = $3, version = $4, updated_at = $5 WHERE id = $1"
DELETE = "DELETE FROM org_policies WHERE id = $1"
DELETE_VERSIONS = "DELETE FROM org_policy_versions WHERE policy_id = $1"


def add(tx: Tx, grant: Grant[Org], policy: OrgPolicy, swap: Swap) -> None:
    """Keep a new policy and let it count, as its mode says.

    Raises:
        Stale: the organisation's policies are others by now than the ones this was checked with.
    """
    apply(tx, swap, grant.now)
    tx.run(
        INSERT,
        policy.id,
        policy.org_id,
        policy.name,
        policy.description,
        policy.current.number,
        policy.created_by,
        policy.created_at,
        policy.updated_at,
    )
    _insert_version(tx, policy.current)
    _publish(tx, policy)
    tx.append(grant.audit("policy.created", _about(policy), resource=_uid(policy)))


def step(tx: Tx, grant: Grant[OrgPolicy], policy: OrgPolicy, swap: Swap, *, action: str) -> None:
    """Let a policy take its next step, a new version or back to one before; `action` is what the audit event is called.

    Raises:
        Stale: as for `add`; or it has taken another step meanwhile.
    """
    apply(tx, swap, grant.now)
    _expect(tx, grant)
    if policy.current.number > grant.target.last:
        _insert_version(tx, policy.current)
    tx.run(UPDATE, policy.id, policy.name, policy.description, policy.current.number, policy.updated_at)
    _publish(tx, policy)
    tx.append(grant.audit(action, _about(policy)))


def remove(tx: Tx, grant: Grant[OrgPolicy], swap: Swap) -> None:
    """Remove a policy with every version of it; the bundles that it was in stay, because they have decided.

    Raises:
        Stale: as for `add`.
    """
    apply(tx, swap, grant.now)
    _expect(tx, grant)
    tx.run(DELETE, grant.target.id)
    tx.run(DELETE_VERSIONS, grant.target.id)
    tx.after_commit(lambda: tx.state.drop_org_policy(grant.target.id))
    tx.append(grant.audit("policy.deleted", _about(grant.target)))


def versions(rows: Rows, grant: Grant[OrgPolicy]) -> list[PolicyVersion]:
    """Every step of a policy, in the order in which they were taken."""
    return [PolicyVersion(*row) for row in rows.all(VERSIONS, grant.target.id)]


def _expect(tx: Tx, grant: Grant[OrgPolicy]) -> None:
    # What is written was worked out from the policy that was decided about; while a password was checked, others may have acted.
    if tx.state.org_policies.get(grant.target.id) is not grant.target:
        raise Stale


def _insert_version(tx: Tx, version: PolicyVersion) -> None:
    v = version
    tx.run(INSERT_VERSION, v.policy_id, v.number, v.previous, v.cedar_text, v.mode, v.enforced, v.written_by, v.created_at)


def _publish(tx: Tx, policy: OrgPolicy) -> None:
    # After the engines: whoever sees the new version of the state is decided by them.
    tx.after_commit(lambda: tx.state.put_org_policy(policy))


def _about(policy: OrgPolicy) -> dict[str, object]:
    return {"policy_id": policy.id, "version": policy.current.number, "mode": policy.current.mode}


def _uid(policy: OrgPolicy) -> EntityUid:
    return EntityUid("Policy", policy.id)
