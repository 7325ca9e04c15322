"""What an organisation may ask for before an agent's policy is written: a confirmation, and a second person."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.errors import Conflict
from gateway.model.rules import ApprovalRules, widens
from gateway.operations.call import Call
from gateway.operations.confirmation import confirm

GUARDRAILS = ("guardrail_changes_require_approval", "guardrail_changes_require_step_up")
REGISTER_FIRST = (
    "this organisation has wider policies approved first: register the agent without `action_approval_policy`, then change it"
)


async def confirm_rules(call: Call) -> None:
    """Have the caller confirm who they are, where the organisation wants it for every edit of a policy.

    Raises:
        StepUpRequired: the proof is missing.
    """
    if call.org.settings.guardrail_changes_require_step_up:
        await confirm(call, "policy.update", totp="no")


async def confirm_settings(call: Call, changes: Mapping[str, object]) -> None:
    """The same before one of the two guardrails on policies is switched off: or nobody would have to get past them.

    Raises:
        StepUpRequired: the proof is missing.
    """
    if any(changes.get(name) is False and getattr(call.org.settings, name) for name in GUARDRAILS):
        await confirm_rules(call)


async def guard_new_rules(call: Call, default: ApprovalRules, rules: ApprovalRules) -> None:
    """Check the policy that an agent is registered with; `default` is the one it would have without.

    Raises:
        StepUpRequired: the proof is missing.
        Conflict: it is wider and waits for a second person, which registering anew would be the way around.
    """
    await confirm_rules(call)
    if call.org.settings.guardrail_changes_require_approval and widens(default, rules):
        raise Conflict(REGISTER_FIRST)
