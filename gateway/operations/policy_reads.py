"""Cedar policies of an organisation, read: those there are, one, and the steps it has taken."""

from __future__ import annotations

from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.policy_shape import PATH, shape, target, version_shape
from gateway.operations.wire import policies as wire
from gateway.store import org_policies


async def list_policies(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "policy.list", call.org)
    return Reply({"policies": [shape(policy) for policy in call.state.policies_of(grant.target.id)]})


async def read_policy(call: Call) -> Reply:
    grant = call.access.authorize(call.session, "policy.read", target(call))
    return Reply(shape(grant.target))


async def list_versions(call: Call) -> Reply:
    """Every step that a policy has taken, those that were taken back included."""
    grant = call.access.authorize(call.session, "policy.read", target(call))
    found = await call.read(org_policies.versions, grant)
    return Reply({"versions": [version_shape(step, grant.target) for step in found]})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "policy.list",
        "GET",
        PATH,
        "List the Cedar policies of the organisation.",
        list_policies,
        actions=("policy.list",),
        answers={200: wire.POLICIES},
    ),
    Operation(
        "policy.read",
        "GET",
        f"{PATH}/{{id}}",
        "Show one policy.",
        read_policy,
        actions=("policy.read",),
        answers={200: wire.POLICY},
    ),
    Operation(
        "policy.versions",
        "GET",
        f"{PATH}/{{id}}/versions",
        "List the versions of a policy.",
        list_versions,
        actions=("policy.read",),
        strict=True,
        answers={200: wire.VERSIONS},
    ),
)
