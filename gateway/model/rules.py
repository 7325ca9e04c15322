"""An agent's `action_approval_policy`: the authority a human has written down for it, parsed and validated whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, cast
from unicodedata import category

from derive.amounts import AmountError, parse_amount
from derive.buckets import is_action_type
from gateway.errors import Invalid, echo

Mode = Literal["deny", "approve", "allow"]
MODES: tuple[Mode, ...] = ("deny", "approve", "allow")
MAX_RULES = 100
MAX_TEMPLATE = 500
MAX_VALUE = 200
MAX_THRESHOLD = Decimal(10) ** 12
#: The amount from which an action is tier 2 when no rule names another, in US dollars.
DEFAULT_THRESHOLD = Decimal(50)
ACTION_FORM = "look like `refund.create` (a-z, 0-9, _ and dots, at most 64 characters)"

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9_]+)\s*\}\}")
_SURROGATE_OR_NUL = re.compile(r"[\x00\ud800-\udfff]")
#: Controls, formats (bidi, invisible), surrogates, line and paragraph separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: The two joiners are formats that scripts and emoji are written with.
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Rule:
    """What is written for one action type. `threshold` is in US dollars; None means the rule names no amount."""

    action_type: str
    mode: Mode
    threshold: Decimal | None = None
    summary_template: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalRules:
    """The rules of one agent, at most one an action type. `source` is the document as it was written."""

    default_mode: Mode
    rules: tuple[Rule, ...]
    source: Mapping[str, object]

    def rule_for(self, action_type: str) -> Rule | None:
        return next((rule for rule in self.rules if rule.action_type == action_type), None)


NO_RULES = ApprovalRules("approve", (), {})


def parse_rules(document: object, *, field: str = "action_approval_policy") -> ApprovalRules:
    """Read a policy document; `{}` and None are a policy without rules.

    Raises:
        Invalid: anything malformed, unknown or duplicated, naming the place (`action_approval_policy.rules[2].mode`).
    """
    if document is None:
        return NO_RULES
    entries = _object(document, field, ("default_mode", "rules"))
    default_mode = _mode(entries.get("default_mode", "approve"), f"{field}.default_mode")
    listed = entries.get("rules", [])
    if not isinstance(listed, list):
        raise Invalid(f"`{field}.rules` must be a list, got {echo(listed)}", field=f"{field}.rules")
    if len(listed) > MAX_RULES:
        raise Invalid(f"`{field}.rules` holds {len(listed)} rules; at most {MAX_RULES} are allowed", field=f"{field}.rules")
    rules = tuple(_rule(entry, f"{field}.rules[{index}]") for index, entry in enumerate(listed))
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        if rule.action_type in seen:
            place = f"{field}.rules[{index}].action_type"
            raise Invalid(f"`{place}` repeats `{rule.action_type}`; one rule an action", field=place)
        seen.add(rule.action_type)
    return ApprovalRules(default_mode, rules, entries)


def widens(old: ApprovalRules, new: ApprovalRules) -> bool:
    """Whether `new` lets the agent do anything with less asking than `old`, for any action at all.

    Other words for the human who is asked count as wider: what they see is part of what they agree to.
    """
    names = {rule.action_type for rule in (*old.rules, *new.rules)} | {""}
    reworded = any(
        before is not None and after is not None and before.summary_template != after.summary_template
        for before, after in ((old.rule_for(name), new.rule_for(name)) for name in names)
    )
    reaches = (zip(_reach(old, name), _reach(new, name), strict=True) for name in names)
    return reworded or any(after > before for pair in reaches for before, after in pair)


def render_summary(template: str, payload: Mapping[str, object]) -> str | None:
    """Fill `{{field}}` from the payload's strings and numbers; None when a named field is missing or of another type."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        found = payload.get(match.group(1))
        if isinstance(found, bool) or not isinstance(found, str | int | Decimal):
            missing = True
            return ""
        text = str(Decimal(found)) if isinstance(found, int) else str(found)  # str() of an int ends at 4300 digits
        return "".join(c for c in text if c in _JOINERS or category(c) not in _UNSEEN)[:MAX_VALUE]

    filled = _PLACEHOLDER.sub(value, template)
    return None if missing else filled


def _reach(rules: ApprovalRules, action_type: str) -> tuple[Decimal, Decimal, Decimal]:
    """How far the rules reach for one action: its mode's rank, the amount below which it is automatic, the amount
    from which a second factor is asked. Each of them greater is wider."""
    rule = rules.rule_for(action_type)
    mode = rule.mode if rule is not None else rules.default_mode
    threshold = rule.threshold if rule is not None else None
    if mode == "deny":
        return Decimal(0), Decimal(0), Decimal(0)
    automatic = Decimal(0)
    if rule is not None and mode == "allow":
        automatic = Decimal("Infinity") if threshold is None else threshold
    return Decimal(MODES.index(mode)), automatic, DEFAULT_THRESHOLD if threshold is None else threshold


def _rule(entry: object, place: str) -> Rule:
    fields = _object(entry, place, ("action_type", "mode", "require_for_amount_above_usd", "summary_template"))
    action_type = fields.get("action_type")
    if not isinstance(action_type, str) or not is_action_type(action_type):
        raise Invalid(f"`{place}.action_type` must {ACTION_FORM}, got {echo(action_type)}", field=f"{place}.action_type")
    if "mode" not in fields:
        raise Invalid(f"`{place}.mode` is required: one of deny, approve, allow", field=f"{place}.mode")
    mode = _mode(fields["mode"], f"{place}.mode")
    threshold = _threshold(fields.get("require_for_amount_above_usd"), f"{place}.require_for_amount_above_usd")
    return Rule(action_type, mode, threshold, _template(fields.get("summary_template"), f"{place}.summary_template"))


def _threshold(value: object, place: str) -> Decimal | None:
    if value is None:
        return None
    try:
        amount = parse_amount(value)
    except AmountError as wrong:
        raise Invalid(f"`{place}` {wrong}", field=place) from wrong
    if amount >= MAX_THRESHOLD:
        raise Invalid(f"`{place}` has more than 12 whole digits, got {echo(value)}", field=place)
    return amount


def _template(value: object, place: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_TEMPLATE or _SURROGATE_OR_NUL.search(value):
        raise Invalid(f"`{place}` must be a string of at most {MAX_TEMPLATE} characters, got {echo(value)}", field=place)
    return value


def _mode(value: object, place: str) -> Mode:
    if value not in MODES:
        raise Invalid(f"`{place}` must be one of deny, approve, allow, got {echo(value)}", field=place)
    return value


def _object(value: object, place: str, known: tuple[str, ...]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise Invalid(f"`{place}` must be an object, got {echo(value)}", field=place)
    for key in value:
        if key not in known:
            shown = echo(key)
            raise Invalid(f"`{place}` has an unknown key {shown}; known are {', '.join(known)}", field=f"{place}.{shown[1:-1]}")
    return cast(Mapping[str, object], value)
