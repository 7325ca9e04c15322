"""The shadow report: what the policies in the shadow would change, since the process started or they were written."""

from __future__ import annotations

from gateway.operations.call import Call
from gateway.operations.fields import stamp
from gateway.operations.health import waiting_bundle
from gateway.operations.operation import Operation, Reply
from gateway.operations.wire import policies as wire
from gateway.policy.shadow import DIRECTORY, Side, Tally


async def report(call: Call) -> Reply:
    """Who would gain and who would lose, by policy, with the ids of the last decisions that would be otherwise."""
    grant = call.access.authorize(call.session, "policy.shadow_report", call.org)
    shadow = call.access.engines.shadow_of(grant.target.id)
    names = {policy.id: policy.name for policy in call.state.policies_of(grant.target.id)}
    tallies = {} if shadow is None else dict(shadow.tallies)
    directory = tallies.pop(DIRECTORY, None)
    return Reply(
        {
            "asked": 0 if shadow is None else shadow.asked,
            "failures": 0 if shadow is None else shadow.failures,
            "directory": None if directory is None else _waiting(call, directory),
            "policies": [_shape(policy_id, names.get(policy_id, ""), tally) for policy_id, tally in sorted(tallies.items())],
        }
    )


def _waiting(call: Call, tally: Tally) -> dict[str, object]:
    """What the policies on the disk would change that wait to be promoted, for this organisation alone."""
    return {"bundle": waiting_bundle(call.access.engines), **_counts(tally)}


def _shape(policy_id: str, name: str, tally: Tally) -> dict[str, object]:
    return {"policy_id": policy_id, "name": name, "version": tally.number, **_counts(tally)}


def _counts(tally: Tally) -> dict[str, object]:
    return {
        "since": stamp(tally.since),
        "gain": _side(tally.gain),
        "lose": _side(tally.lose),
        "listings": tally.listings,
    }


def _side(side: Side) -> dict[str, object]:
    who = [{"type": uid.type, "id": uid.id, "count": count} for uid, count in side.principals.most_common()]
    return {"count": side.count, "principals": who, "decision_ids": list(side.decisions)}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "policy.shadow_report",
        "GET",
        "/v1/org/policy-shadow-report",
        "Show who would gain and who would lose by the policies in the shadow.",
        report,
        actions=("policy.shadow_report",),
        strict=True,
        answers={200: wire.SHADOW_REPORT},
    ),
)
