"""Cedar policies of an organisation: written in the shadow, promoted, taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gateway import limits
from gateway.errors import Conflict
from gateway.model.ids import new_id
from gateway.model.org_policy import MODES, OrgPolicy, PolicyVersion
from gateway.operations import policy_reads
from gateway.operations.call import Call
from gateway.operations.confirmation import confirm
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.operations.policy_shape import PATH, cedar_text, refused, shape, target
from gateway.operations.wire import policies as wire
from gateway.policy import sandbox
from gateway.policy.finding import PolicyError
from gateway.store import org_policies
from gateway.store.state import State
from gateway.store.swap import Swap

POLICIES_PER_ORG = 100
#: Each is kept with all that it decided beside.
VERSIONS_PER_POLICY = 200


async def create_policy(call: Call) -> Reply:
    """Keep a new policy. It starts in the shadow, where it decides nothing; in force only by whoever may promote it."""
    text = cedar_text(call.body)
    about = call.body.optional_text("description", longest=limits.TEXT_CHARACTERS)
    name = call.body.optional_text("name", longest=limits.NAME_CHARACTERS, shortest=1)
    mode = call.body.optional_choice("mode", MODES, "shadow")
    grant = call.access.authorize(call.session, "policy.create", call.org)
    made, by = new_id(), grant.caller.id
    version = PolicyVersion(made, 1, None, text, mode, 1 if mode == "enforce" else None, by, call.now)
    policy = OrgPolicy(
        id=made,
        org_id=grant.target.id,
        name=name or (about or "policy")[: limits.NAME_CHARACTERS],
        description=about,
        created_by=by,
        created_at=call.now,
        updated_at=call.now,
        last=1,
        current=version,
        enforced=version if mode == "enforce" else None,
    )
    if mode == "enforce":
        call.access.authorize(call.session, "policy.promote", policy)
        await confirm(call, "policy.update", totp="no")
    before = call.state.policies_of(policy.org_id)
    if len(before) >= POLICIES_PER_ORG:
        raise Conflict(f"an organisation has at most {POLICIES_PER_ORG} policies: a text may hold several")
    swap = await _swap(call, before, (*before, policy), written=version)
    await call.write_alone(org_policies.add, grant, policy, swap)
    return Reply(shape(policy), 201)


async def write_version(call: Call) -> Reply:
    """Write a new version, into the shadow: until it is promoted, what was in force stays so."""
    text = cedar_text(call.body)
    about = call.body.optional_text("description", longest=limits.TEXT_CHARACTERS)
    name = call.body.optional_text("name", longest=limits.NAME_CHARACTERS, shortest=1)
    grant = call.access.authorize(call.session, "policy.update", target(call))
    policy = grant.target
    enforced = None if policy.enforced is None else policy.enforced.number
    number = _next(policy)
    version = PolicyVersion(policy.id, number, policy.current.number, text, "shadow", enforced, grant.caller.id, call.now)
    changed = replace(
        policy,
        name=name or policy.name,
        description=policy.description if about is None else about,
        updated_at=call.now,
        last=number,
        current=version,
    )
    swap = await _swap(call, *_around(call, policy, changed), written=version)
    await call.write_alone(org_policies.step, grant, changed, swap, action="policy.updated")
    return Reply(shape(changed))


async def promote_policy(call: Call) -> Reply:
    """Put what is in the shadow in force. Whatever is asked after the answer is decided by it."""
    seen = call.body.integer("version", least=1, most=wire.MOST_VERSIONS)
    grant = call.access.authorize(call.session, "policy.promote", target(call))
    policy = grant.target
    _expect(seen, policy)
    await confirm(call, "policy.update", totp="no")
    if not policy.in_shadow:
        raise Conflict("this version is in force already")
    number, shadow = _next(policy), policy.current
    version = replace(shadow, number=number, previous=shadow.number, mode="enforce", enforced=number, created_at=call.now)
    changed = replace(policy, updated_at=call.now, last=number, current=version, enforced=version)
    swap = await _swap(call, *_around(call, policy, changed))
    await call.write_alone(org_policies.step, grant, changed, swap, action="policy.promoted")
    return Reply(shape(changed))


async def roll_back_policy(call: Call) -> Reply:
    """Take the last step back: the text and the mode are those of the version before, and so is what is in force.

    Where that changes what is in force, it takes the right to promote the text that comes back, or else the one that goes.
    """
    seen = call.body.integer("version", least=1, most=wire.MOST_VERSIONS)
    grant = call.access.authorize(call.session, "policy.rollback", target(call))
    policy = grant.target
    _expect(seen, policy)
    await confirm(call, "policy.update", totp="no")
    if policy.current.previous is None:
        raise Conflict("this is the first version: there is none before it")
    steps = {step.number: step for step in await call.read(org_policies.versions, grant)}
    version = steps[policy.current.previous]
    enforced = None if version.enforced is None else steps[version.enforced]
    changed = replace(policy, updated_at=call.now, current=version, enforced=enforced)
    if enforced != policy.enforced:
        _may_put_in_force(call, policy, enforced or policy.enforced)
    swap = await _swap(call, *_around(call, policy, changed))
    await call.write_alone(org_policies.step, grant, changed, swap, action="policy.rolled_back")
    return Reply(shape(changed))


async def delete_policy(call: Call) -> Reply:
    """Remove a policy with its versions; one that is in force only with proof of who does, and by whoever may promote it."""
    grant = call.access.authorize(call.session, "policy.delete", target(call))
    if grant.target.enforced is not None:
        _may_put_in_force(call, grant.target, grant.target.enforced)
        await confirm(call, "policy.update", totp="no")
    swap = await _swap(call, *_around(call, grant.target, None))
    await call.write_alone(org_policies.remove, grant, swap)
    return NO_CONTENT


def _next(policy: OrgPolicy) -> int:
    """The number of a new version; raises `Conflict` where a policy has as many as it may have."""
    if policy.last >= VERSIONS_PER_POLICY:
        raise Conflict(f"a policy has at most {VERSIONS_PER_POLICY} versions: write it anew")
    return policy.last + 1


def _may_put_in_force(call: Call, policy: OrgPolicy, version: PolicyVersion | None) -> None:
    """Raises `Forbidden` where the caller may not promote a version, whichever the policy is at."""
    if version is not None:
        call.access.authorize(call.session, "policy.promote", replace(policy, current=version))


def _expect(seen: int, policy: OrgPolicy) -> None:
    """Raises `Conflict` where a policy is not at the version that the caller has seen."""
    if seen != policy.current.number:
        raise Conflict(f"`version` is not that of the policy, which is at version {policy.current.number}: read it first")


def _around(call: Call, policy: OrgPolicy, changed: OrgPolicy | None) -> tuple[tuple[OrgPolicy, ...], Sequence[OrgPolicy]]:
    """The policies of the organisation before a change of one and after it."""
    before = call.state.policies_of(policy.org_id)
    after = [changed if standing.id == policy.id else standing for standing in before]
    return before, [standing for standing in after if standing is not None]


async def _swap(
    call: Call, before: tuple[OrgPolicy, ...], after: Sequence[OrgPolicy], *, written: PolicyVersion | None = None
) -> Swap:
    """Check the text that was written and build what will decide, both away from the event loop.

    Raises:
        Invalid: the text does not load.
        Unavailable: too many texts are being checked.
    """
    engines, org_id, now = call.access.engines, call.session.caller.org_id, call.now
    base, staged = engines.base, engines.staged

    def fits(state: State) -> bool:
        # On another base no decision of the caller's stands, so the change is not made.
        return state.policies_of(org_id) == before and engines.staged is staged

    def prepare() -> Swap:
        own = engines.build(after, now, on=base, beside=staged, org_id=org_id)
        bundles = [(bundle.hash, bundle.body()) for bundle in own.bundles()]
        return Swap(fits, bundles, lambda: engines.put(org_id, own))

    try:
        if written is not None:
            check = partial(sandbox.check, base.bundle.schema_text, {written.policy_id: written.cedar_text})
            await call.services.texts.run(check)
        return await asyncio.to_thread(prepare)
    except PolicyError as error:
        raise refused(error) from error


OPERATIONS: tuple[Operation, ...] = (
    *policy_reads.OPERATIONS,
    Operation(
        "policy.create",
        "POST",
        PATH,
        "Write a Cedar policy of the organisation; it starts in the shadow.",
        create_policy,
        actions=("policy.create", "policy.promote"),
        fields=wire.CREATED,
        body_bytes=limits.LARGE_BODY_BYTES,
        unhurried=True,
        answers={201: wire.POLICY},
        confirmed=True,
    ),
    Operation(
        "policy.update",
        "PUT",
        f"{PATH}/{{id}}",
        "Write a new version of a policy, into the shadow; what was in force stays so until it is promoted.",
        write_version,
        actions=("policy.update",),
        fields=wire.WRITTEN,
        strict=True,
        body_bytes=limits.LARGE_BODY_BYTES,
        unhurried=True,
        answers={200: wire.POLICY},
    ),
    Operation(
        "policy.delete",
        "DELETE",
        f"{PATH}/{{id}}",
        "Remove a policy with all its versions.",
        delete_policy,
        actions=("policy.delete", "policy.promote"),
        unhurried=True,
        answers={204: None},
        confirmed=True,
    ),
    Operation(
        "policy.promote",
        "POST",
        f"{PATH}/{{id}}/promote",
        "Put the version in the shadow in force.",
        promote_policy,
        actions=("policy.promote",),
        fields=wire.AT_VERSION,
        strict=True,
        unhurried=True,
        answers={200: wire.POLICY},
        confirmed=True,
    ),
    Operation(
        "policy.rollback",
        "POST",
        f"{PATH}/{{id}}/rollback",
        "Take the last step of a policy back.",
        roll_back_policy,
        actions=("policy.rollback", "policy.promote"),
        fields=wire.AT_VERSION,
        strict=True,
        unhurried=True,
        answers={200: wire.POLICY},
        confirmed=True,
    ),
)
