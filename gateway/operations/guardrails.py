"""Confirmations: what an organisation may ask for before a policy is written, and always asks for before it asks less."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.model.records import OrgSettings
from gateway.operations.call import Call
from gateway.operations.confirmation import confirm

GUARDRAILS = ("guardrail_changes_require_approval", "guardrail_changes_require_step_up")

#: A second person for policies of the organisation. It is taken down like a guardrail, and asks for nothing else.
FOUR_EYES = ("policy_promotions_need_two",)


async def confirm_rules(call: Call) -> None:
    """Have the caller confirm who they are, where the organisation wants it for every edit of a policy.

    Raises:
        StepUpRequired: the proof is missing.
    """
    if call.org.settings.guardrail_changes_require_step_up:
        await confirm(call, "policy.update", totp="no")


async def confirm_settings(call: Call, standing: OrgSettings, changes: Mapping[str, object]) -> None:
    """The same before `changes` let agents do more in an organisation with a guardrail: whatever it asks for otherwise, a
    key alone never takes a guardrail down, nor the humans out.

    Raises:
        StepUpRequired: the proof is missing.
    """
    up = [name for name in GUARDRAILS if getattr(standing, name)]
    taken_down = any(changes.get(name) is False for name in (*up, *(name for name in FOUR_EYES if getattr(standing, name))))
    automatic = changes.get("auto_approve") is True and not standing.auto_approve
    if taken_down or (up and automatic):
        await confirm(call, "policy.update", totp="no")
