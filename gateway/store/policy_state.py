"""The part of the authorization state about the policies that organisations wrote."""

from __future__ import annotations

from gateway.model.org_policy import OrgPolicy
from gateway.store.remote_state import RemoteState


class PolicyState(RemoteState):
    """Policies by id. The rules of `State` hold here too."""

    def __init__(self) -> None:
        super().__init__()
        self.org_policies: dict[str, OrgPolicy] = {}

    def policies_of(self, org_id: str) -> tuple[OrgPolicy, ...]:
        """The policies of an organisation, oldest first."""
        found = [policy for policy in list(self.org_policies.values()) if policy.org_id == org_id]
        return tuple(sorted(found, key=lambda policy: (policy.created_at, policy.id)))

    def put_org_policy(self, policy: OrgPolicy) -> None:
        """Add a policy, or replace it by its next step."""
        self.org_policies[policy.id] = policy
        self.version += 1

    def drop_org_policy(self, policy_id: str) -> None:
        """Forget a policy."""
        self.org_policies.pop(policy_id, None)
        self.version += 1
