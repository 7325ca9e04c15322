"""The policies of an organisation as the wire takes and shows them."""

from __future__ import annotations

from functools import lru_cache

from gateway.errors import Invalid
from gateway.model.org_policy import OrgPolicy, PolicyVersion
from gateway.operations.call import Call
from gateway.operations.fields import Fields, is_id, stamp
from gateway.operations.wire.policies import CEDAR
from gateway.policy.finding import PolicyError
from gateway.policy.organisation import MAX_BYTES, holds_permits
from gateway.store.entities import Missing

PATH = "/v1/org/cedar-policies"
#: Of what is wrong with a text, this many lines are told, each cut to so many characters.
TOLD, TOLD_CHARACTERS = 5, 300
#: Texts of which it is remembered whether they hold a permit: they stay in memory, at most `MAX_BYTES` each.
REMEMBERED = 256
PERMITS = "A policy of an organisation only narrows: the permits in this text open nothing."


def cedar_text(body: Fields) -> str:
    """The text of a policy, by either of its two names; never both."""
    given = [name for name in CEDAR if body.has(name)]
    if len(given) > 1:
        raise Invalid("`cedar_text` and `policy_text` are two names of one thing: send one", field="policy_text")
    return body.text(given[0] if given else "cedar_text", longest=MAX_BYTES)


def target(call: Call) -> OrgPolicy | Missing:
    """The policy that a path names; another organisation's is the same as none."""
    policy_id = call.path["id"]
    found = call.state.org_policies.get(policy_id)
    if found is None or found.org_id != call.session.caller.org_id:
        return Missing("Policy", policy_id if is_id(policy_id) else "-")
    return found


def refused(error: PolicyError) -> Invalid:
    """What is told of a text that does not load: the first findings, by line."""
    told = [f"line {found.line}: {found.message}"[:TOLD_CHARACTERS] for found in error.findings[:TOLD]]
    more = len(error.findings) - len(told)
    return Invalid(f"the policy does not load: {'; '.join(told)}{f'; and {more} more' if more else ''}", field="cedar_text")


def shape(policy: OrgPolicy) -> dict[str, object]:
    """A policy as the wire shows it; `enforced_version` is the one whose text decides, which another may be written beside."""
    return {
        "id": policy.id,
        "org_id": policy.org_id,
        "name": policy.name,
        "cedar_text": policy.current.cedar_text,
        "policy_text": policy.current.cedar_text,
        "description": policy.description,
        "note": PERMITS if _permits(policy.current.cedar_text) else None,
        "is_active": True,
        "enforcement_status": policy.current.mode,
        "version": policy.current.number,
        "enforced_version": policy.current.enforced,
        "written_by": policy.current.written_by,
        "created_by": policy.created_by,
        "created_at": stamp(policy.created_at),
        "updated_at": stamp(policy.updated_at),
    }


@lru_cache(maxsize=REMEMBERED)
def _permits(text: str) -> bool:
    """Reading a text takes a while, and a list shows many of them each time."""
    return holds_permits(text)


def version_shape(step: PolicyVersion, policy: OrgPolicy) -> dict[str, object]:
    """A version as the wire shows it."""
    return {
        "version": step.number,
        "previous": step.previous,
        "cedar_text": step.cedar_text,
        "enforcement_status": step.mode,
        "enforced_version": step.enforced,
        "current": step.number == policy.current.number,
        "written_by": step.written_by,
        "created_at": stamp(step.created_at),
    }
