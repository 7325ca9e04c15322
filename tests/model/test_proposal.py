"""How a payload is read: tiers, sensitivity, and the reading as it is shown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from derive.amounts import Amount
from gateway.errors import Invalid
from gateway.model.proposal import ACCESS_REQUESTS, PLATFORM_MADE, Proposal, check_action, is_sensitive, read_proposal
from gateway.model.rules import parse_rules

DOLLARS = "the amount is not in US dollars"
NEW = "the recipient is new to this agent"
SENSITIVE = "the action grants or destroys authority"
DECLARED = "a higher tier was declared"


def above(amount: str) -> str:
    return f"the amount is at or above {amount} US dollars"


def read(
    payload: dict[str, object],
    action: str = "refund.create",
    *,
    mode: str | None = None,
    threshold: object = None,
    known: bool = False,
    declared: int | None = None,
    added: tuple[str, ...] = (),
) -> Proposal:
    listed = [] if mode is None else [{"action_type": "refund.create", "mode": mode, "require_for_amount_above_usd": threshold}]
    return read_proposal(
        action,
        payload,
        rules=parse_rules({"rules": listed}),
        known_recipient=known,
        declared_tier=declared,
        sensitive_actions=added,
    )


TIERS: list[tuple[dict[str, object], dict[str, Any], int, tuple[str, ...]]] = [
    # at or above the default of 50
    ({"amount_usd": "49.9999"}, {}, 1, ()),
    ({"amount_usd": "50"}, {}, 2, (above("50"),)),
    ({"amount_usd": 50}, {}, 2, (above("50"),)),
    ({"amount_usd": Decimal("50.0000")}, {}, 2, (above("50"),)),
    ({"amount_usd": "922337203685477.5807"}, {}, 2, (above("50"),)),
    # a rule's threshold replaces it, upwards and downwards, whatever the mode
    ({"amount_usd": "80"}, {"mode": "allow", "threshold": "80.5"}, 1, ()),
    ({"amount_usd": "80.5"}, {"mode": "approve", "threshold": "80.5"}, 2, (above("80.50"),)),
    ({"amount_usd": "20"}, {"mode": "deny", "threshold": "20"}, 2, (above("20"),)),
    ({"amount_usd": "0"}, {"mode": "allow", "threshold": "0"}, 2, (above("0"),)),
    ({"amount_usd": "60"}, {"mode": "allow"}, 2, (above("50"),)),
    ({"amount_usd": "60"}, {"action": "order.place", "mode": "allow", "threshold": "100"}, 2, (above("50"),)),
    # absent, and not in dollars
    ({}, {}, 1, ()),
    ({"amount_usd": None}, {}, 1, ()),
    ({"amount": "5"}, {}, 2, (DOLLARS,)),
    ({"amount_eur": 5}, {}, 2, (DOLLARS,)),
    ({"amount_usd": "5", "currency": "EUR"}, {}, 2, (DOLLARS,)),
    ({"amount_usd": "5", "currency": "usd"}, {}, 1, ()),
    ({"currency": "EUR"}, {}, 2, (DOLLARS,)),
    # recipients
    ({"to": "a@b.co"}, {}, 2, (NEW,)),
    ({"to": "a@b.co"}, {"known": True}, 1, ()),
    ({"to": "  "}, {}, 1, ()),
    ({"to": 7}, {}, 1, ()),
    ({"to": "a@b.co", "amount_usd": "50"}, {}, 2, (above("50"), NEW)),
    # sensitive
    ({}, {"action": "role.grant"}, 3, (SENSITIVE,)),
    ({"to": "a@b.co"}, {"action": "key.create"}, 3, (NEW, SENSITIVE)),
    ({}, {"added": ("refund.",)}, 3, (SENSITIVE,)),
    # declared: raises, never lowers
    ({}, {"declared": 1}, 1, ()),
    ({}, {"declared": 3}, 3, (DECLARED,)),
    ({"amount_usd": "50"}, {"declared": 1}, 2, (above("50"),)),
    ({"amount_usd": "50"}, {"declared": 2}, 2, (above("50"),)),
    ({"amount_usd": "50"}, {"declared": 3}, 3, (above("50"), DECLARED)),
]


@pytest.mark.parametrize(("payload", "more", "tier", "reasons"), TIERS, ids=range(len(TIERS)))
def test_the_tier_is_the_highest_floor_and_says_why(
    payload: dict[str, object], more: dict[str, Any], tier: int, reasons: tuple[str, ...]
) -> None:
    proposal = read(payload, **more)
    assert (proposal.risk_tier, proposal.tier_reasons) == (tier, reasons)


@given(st.sampled_from(TIERS), st.integers(1, 3))
def test_a_declared_tier_never_lowers_what_the_gateway_derives(
    case: tuple[dict[str, object], dict[str, Any], int, Any], declared: int
) -> None:
    payload, more, _, _ = case
    plain, raised = read(payload, **{**more, "declared": None}), read(payload, **{**more, "declared": declared})
    assert raised.derived_tier == plain.derived_tier == plain.risk_tier
    assert raised.risk_tier == max(plain.derived_tier, declared)


NO_AMOUNTS: tuple[object, ...] = (
    "-1", "", " 5", "1e3", "5.00001", "NaN", "Infinity", "\u0665", True, [], {}, 10**30, -1, Decimal("1E+3"), Decimal("NaN"), 5.0,
)  # fmt: skip
UNREADABLE: list[dict[str, object]] = [
    *({"amount_usd": wrong} for wrong in NO_AMOUNTS),
    {"currency": 5},
    {"currency": None},
    {"currency": ["USD"]},
    {"amount_usd": "-1", "currency": "EUR"},
]


@pytest.mark.parametrize("payload", UNREADABLE, ids=str)
def test_an_amount_or_a_currency_that_cannot_be_read_is_refused(payload: dict[str, object]) -> None:
    with pytest.raises(Invalid) as wrong:
        read(payload)
    assert wrong.value.field == "payload"
    assert wrong.value.detail.startswith(
        f"`payload` {next(reversed(payload)) if 'amount_usd' not in payload else 'amount_usd'} `"
    )


def test_a_reading_is_shown_as_it_was_taken() -> None:
    proposal = read({"amount_usd": Decimal("80.5"), "currency": "usd", "to": " Ann@B.co "}, declared=3)
    assert proposal.understood() == {
        "action_type": "refund.create",
        "amount_usd": "80.50",
        "amount_band": "50-100",
        "currency": "USD",
        "recipient": "ann@b.co",
        "recipient_kind": "new",
        "risk_tier": 3,
        "tier_reasons": [above("50"), NEW, DECLARED],
    }
    assert proposal.amount == Amount("known", Decimal("80.5"))
    assert (proposal.bucket and proposal.bucket.recipient_kind) == "new"


@pytest.mark.parametrize(
    ("payload", "known", "shown"),
    [
        ({}, False, {"amount_usd": None, "amount_band": "none", "currency": None, "recipient": None, "recipient_kind": "none"}),
        (
            {"amount_eur": 1},
            False,
            {"amount_usd": None, "amount_band": "unknown", "currency": None, "recipient": None, "recipient_kind": "none"},
        ),
        (
            {"amount_usd": 7, "payee": "X"},
            True,
            {"amount_usd": "7", "amount_band": "0-10", "currency": None, "recipient": "x", "recipient_kind": "known"},
        ),
    ],
)
def test_what_is_absent_is_shown_as_absent(payload: dict[str, object], known: bool, shown: dict[str, object]) -> None:
    understood = read(payload, known=known).understood()
    assert {key: understood[key] for key in shown} == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "0"),
        ("0.0001", "0.0001"),
        ("5.5", "5.50"),
        ("5.50", "5.50"),
        ("100", "100"),
        ("100.125", "100.125"),
        ("922337203685477.5807",) * 2,
    ],
)
def test_an_amount_is_shown_exactly(amount: str, shown: str) -> None:
    assert read({"amount_usd": amount}).understood()["amount_usd"] == shown


@pytest.mark.parametrize("action", sorted({*ACCESS_REQUESTS, *PLATFORM_MADE}))
def test_the_named_exceptions_may_be_named_are_sensitive_and_are_in_no_bucket(action: str) -> None:
    check_action(action, field="action")
    proposal = read({}, action)
    assert (proposal.risk_tier, proposal.sensitive, proposal.bucket) == (3, True, None)
    assert (proposal.asked_always, proposal.platform_made) == (action in ACCESS_REQUESTS, action in PLATFORM_MADE)


@pytest.mark.parametrize("namespace", ["agent", "policy", "key", "permission", "role", "peer", "credential"])
def test_what_grants_or_destroys_authority_is_sensitive(namespace: str) -> None:
    assert is_sensitive(f"{namespace}.verb", ())
    assert is_sensitive(f"{namespace}.deep.verb", ())
    assert not is_sensitive(f"{namespace}s.verb", ())
    assert not is_sensitive(f"x.{namespace}.verb", ())


@pytest.mark.parametrize(
    ("action", "added", "sensitive"),
    [
        ("bank.wire", ("bank.wire",), True),
        ("bank.wire.undo", ("bank.wire",), False),
        ("bank.wire", ("bank.",), True),
        ("bank.wire", ("bank",), False),
        ("banks.wire", ("bank.",), False),
        ("bank.wire", (), False),
        ("role.grant", ("bank.",), True),
    ],
)
def test_an_organisation_adds_sensitive_actions_and_takes_none_away(action: str, added: tuple[str, ...], sensitive: bool) -> None:
    assert is_sensitive(action, added) is sensitive


@pytest.mark.parametrize(
    "action", ["transaction", "", "*", "a.*", "A.b", "a.b ", "a.b\n", "a..b", ".a", "é.b", "a." + "b" * 63, "a.\ud800", "a`.b"]
)
def test_a_name_that_is_no_action_is_refused_and_echoed_harmlessly(action: str) -> None:
    with pytest.raises(Invalid) as wrong:
        check_action(action, field="action")
    assert wrong.value.field == "action"
    assert wrong.value.detail.startswith(
        "`action` must look like `refund.create` (a-z, 0-9, _ and dots, at most 64 characters), got `"
    )
    assert wrong.value.detail.count("`") == 6
    assert wrong.value.detail.isprintable()


def test_an_action_of_sixty_four_characters_is_one() -> None:
    check_action("a." + "b" * 62, field="action")
