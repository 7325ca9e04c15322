"""A proposed action: what an agent wants to do, read from its payload by the gateway and by nobody else."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from derive.amounts import Amount, AmountError, cedar_decimal, read_amount
from derive.bands import band_of
from derive.buckets import Bucket, bucket_of, is_action_type
from derive.recipients import read_recipient
from gateway.errors import Invalid, echo
from gateway.model.rules import ACTION_FORM, DEFAULT_THRESHOLD, ApprovalRules

#: Always asked of a human; the only actions without a dot that may be requested.
ACCESS_REQUESTS = frozenset({"access_request", "policy_request", "binding_request"})
#: Made by the gateway itself; nobody may request them.
PLATFORM_MADE = frozenset({"policy_change", "card_order", "agent_transaction", "agent_execution", "agent_sign_intent"})
#: Actions that grant or destroy authority live in these namespaces. Organisations add to the list, never take away.
SENSITIVE_NAMESPACES = ("agent.", "policy.", "key.", "permission.", "role.", "peer.", "credential.")
MAX_ACTION = 64


@dataclass(frozen=True, slots=True)
class Proposal:
    """How one payload was read.

    `amount` in US dollars; `recipient_kind` says whether this agent has an approved request to the same recipient;
    `risk_tier` 1-3 is the greatest of what the gateway derives and what was declared.
    """

    action_type: str
    amount: Amount
    currency: str | None
    recipient: str | None
    recipient_kind: Literal["new", "known", "none"]
    derived_tier: int
    risk_tier: int
    tier_reasons: tuple[str, ...]
    sensitive: bool
    bucket: Bucket | None

    @property
    def platform_made(self) -> bool:
        return self.action_type in PLATFORM_MADE

    @property
    def asked_always(self) -> bool:
        return self.action_type in ACCESS_REQUESTS

    def understood(self) -> dict[str, object]:
        """The reading as the wire shows it, so that an agent and a human see how the payload was taken."""
        return {
            "action_type": self.action_type,
            "amount_usd": None if self.amount.value is None else _plain(self.amount.value),
            "amount_band": band_of(self.amount),
            "currency": self.currency,
            "recipient": self.recipient,
            "recipient_kind": self.recipient_kind,
            "risk_tier": self.risk_tier,
            "tier_reasons": list(self.tier_reasons),
        }


def check_action(action_type: str, *, field: str) -> None:
    """Refuse an action name that is neither `namespace.verb` nor one of the named exceptions.

    Raises:
        Invalid: naming `field`.
    """
    if not is_action_type(action_type) and action_type not in ACCESS_REQUESTS | PLATFORM_MADE:
        raise Invalid(f"`{field}` must {ACTION_FORM}, got {echo(action_type)}", field=field)


def read_proposal(
    action_type: str,
    payload: Mapping[str, object],
    *,
    rules: ApprovalRules,
    known_recipient: bool,
    declared_tier: int | None,
    sensitive_actions: Collection[str],
) -> Proposal:
    """Read a payload. `declared_tier` only ever raises the tier.

    Raises:
        Invalid: an amount or a currency that cannot be read, naming the field.
    """
    try:
        amount = read_amount(payload)
    except AmountError as wrong:
        raise Invalid(f"`payload` {wrong}", field="payload") from wrong
    recipient = read_recipient(payload)
    sensitive = is_sensitive(action_type, sensitive_actions)
    rule = rules.rule_for(action_type)
    threshold = rule.threshold if rule is not None and rule.threshold is not None else DEFAULT_THRESHOLD
    floors: list[tuple[int, str]] = [(1, "")]
    if amount.state == "unknown":
        floors.append((2, "the amount is not in US dollars"))
    if amount.value is not None and amount.value >= threshold:
        floors.append((2, f"the amount is at or above {_plain(threshold)} US dollars"))
    if recipient is not None and not known_recipient:
        floors.append((2, "the recipient is new to this agent"))
    if sensitive:
        floors.append((3, "the action grants or destroys authority"))
    derived = max(tier for tier, _ in floors)
    if declared_tier is not None and declared_tier > derived:
        floors.append((declared_tier, "a higher tier was declared"))
    kind: Literal["new", "known", "none"] = "none" if recipient is None else "known" if known_recipient else "new"
    bucket = bucket_of(action_type, payload, known_recipient=known_recipient) if is_action_type(action_type) else None
    currency = payload.get("currency")
    return Proposal(
        action_type=action_type,
        amount=amount,
        currency=currency.upper() if isinstance(currency, str) else None,
        recipient=recipient,
        recipient_kind=kind,
        derived_tier=derived,
        risk_tier=max(tier for tier, _ in floors),
        tier_reasons=tuple(why for _, why in floors if why),
        sensitive=sensitive,
        bucket=bucket,
    )


def is_sensitive(action_type: str, added: Collection[str]) -> bool:
    """Whether an action grants or destroys authority: tier 3, never automatic. `added` are names or `namespace.` prefixes."""
    if action_type in ACCESS_REQUESTS | PLATFORM_MADE or action_type.startswith(SENSITIVE_NAMESPACES):
        return True
    return any(action_type == name or (name.endswith(".") and action_type.startswith(name)) for name in added)


def _plain(amount: Decimal) -> str:
    text = cedar_decimal(amount).rstrip("0")
    whole, _, cents = text.partition(".")
    return f"{whole}.{cents.ljust(2, '0')}" if cents else whole
