"""An agent's written rules: what is refused, what widens, and what a human is shown."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Invalid
from gateway.model.proposal import read_proposal
from gateway.model.rules import MODES, NO_RULES, ApprovalRules, Mode, Rule, parse_rules, render_summary, widens
from tests.world import World, agent_caller, an_agent, session

PLACE = "action_approval_policy"


def one(**entry: object) -> dict[str, Any]:
    return {"rules": [{"action_type": "refund.create", "mode": "allow", **entry}]}


# -- reading


def test_a_document_is_read_whole() -> None:
    document = {
        "default_mode": "deny",
        "rules": [
            {
                "action_type": "refund.create",
                "mode": "allow",
                "require_for_amount_above_usd": "20.5",
                "summary_template": "{{to}}",
            },
            {"action_type": "a.b_c.d9", "mode": "approve", "require_for_amount_above_usd": None, "summary_template": None},
        ],
    }
    assert parse_rules(document) == ApprovalRules(
        "deny",
        (Rule("refund.create", "allow", Decimal("20.5"), "{{to}}"), Rule("a.b_c.d9", "approve", None, None)),
        document,
    )


@pytest.mark.parametrize("document", [None, {}, {"rules": []}])
def test_a_document_without_rules_asks_a_human(document: object) -> None:
    read = parse_rules(document)
    assert (read.default_mode, read.rules) == ("approve", ())
    assert read.rule_for("refund.create") is None


def test_an_agent_has_a_policy_when_a_document_says_something() -> None:
    documents: list[Any] = [None, {}, {"default_mode": "approve"}, one()]
    assert [an_agent("a", policy=document).has_policy for document in documents] == [False, False, True, True]


@pytest.mark.parametrize(
    "amount", ["0", "50", "50.0000", "999999999999.9999", 0, 50, 999_999_999_999, Decimal("0.0001"), Decimal("12.50")]
)
def test_a_threshold_is_read_exactly(amount: Any) -> None:
    [rule] = parse_rules(one(require_for_amount_above_usd=amount)).rules
    assert rule.threshold == Decimal(amount)


THRESHOLDS: list[object] = [
    "fifty",
    "",
    " 50",
    "50 ",
    "+50",
    "-50",
    "-0",
    "1e3",
    "1E3",
    "0x10",
    "1_000",
    "1,000",
    "01",
    ".5",
    "5.",
    "50.00001",
    "NaN",
    "Infinity",
    "sNaN",
    "\u0665\u0660",
    "\u096b\u0966",
    "\U0001d7d3\U0001d7ce",
    "\uff15\uff10",
    "1000000000000",
    "999999999999999.9999",
    "9" * 5000,
    -1,
    10**12,
    10**30,
    10**5000,
    Decimal("1E+3"),
    Decimal("NaN"),
    Decimal("Infinity"),
    Decimal("-1"),
    Decimal("0.00001"),
    50.0,
    True,
    False,
    [],
    {},
    ["50"],
    {"amount": "50"},
    "5\x000",
    "5\ud800",
]


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=range(len(THRESHOLDS)))
def test_a_threshold_that_is_no_plain_amount_is_refused_at_its_place(threshold: object) -> None:
    assert refused(one(require_for_amount_above_usd=threshold)) == f"{PLACE}.rules[0].require_for_amount_above_usd"


NO_ACTIONS: tuple[object, ...] = (
    None,
    5,
    True,
    [],
    "",
    "*",
    "refund.*",
    "refund",
    "Refund.create",
    "refund.create ",
    "refund.create\n",
    ".create",
    "refund.",
    "a..b",
    "réfund.create",
    "refund\u2024create",
    "a." + "b" * 63,
    "access_request",
    "policy_request",
    "binding_request",
    "policy_change",
    "card_order",
    "refund.create\x00",
    "a.\ud800",
)
HOSTILE: list[tuple[object, str]] = [
    ([], PLACE),
    ("{}", PLACE),
    (True, PLACE),
    (0, PLACE),
    ({"default_mode": None}, f"{PLACE}.default_mode"),
    ({"default_mode": "Allow"}, f"{PLACE}.default_mode"),
    ({"default_mode": ["allow"]}, f"{PLACE}.default_mode"),
    ({"default_mode": True}, f"{PLACE}.default_mode"),
    ({"default": "allow"}, f"{PLACE}.default"),
    ({"Rules": []}, f"{PLACE}.Rules"),
    ({"rules": {}}, f"{PLACE}.rules"),
    ({"rules": None}, f"{PLACE}.rules"),
    ({"rules": "x"}, f"{PLACE}.rules"),
    ({"rules": [None]}, f"{PLACE}.rules[0]"),
    ({"rules": [[]]}, f"{PLACE}.rules[0]"),
    ({"rules": [{}]}, f"{PLACE}.rules[0].action_type"),
    ({"rules": [{"action_type": "refund.create"}]}, f"{PLACE}.rules[0].mode"),
    (one(mode=None), f"{PLACE}.rules[0].mode"),
    (one(mode="ALLOW"), f"{PLACE}.rules[0].mode"),
    (one(mode={"a": 1}), f"{PLACE}.rules[0].mode"),
    (one(amount="5"), f"{PLACE}.rules[0].amount"),
    (one(require_for_amount_above="5"), f"{PLACE}.rules[0].require_for_amount_above"),
    (one(summary_template=5), f"{PLACE}.rules[0].summary_template"),
    (one(summary_template="x" * 501), f"{PLACE}.rules[0].summary_template"),
    (one(summary_template="a\x00"), f"{PLACE}.rules[0].summary_template"),
    (one(summary_template="\udfff"), f"{PLACE}.rules[0].summary_template"),
    *((one(action_type=action), f"{PLACE}.rules[0].action_type") for action in NO_ACTIONS),
    ({"rules": [{"action_type": "a.b", "mode": "deny"}] * 2}, f"{PLACE}.rules[1].action_type"),
    ({"rules": [{"action_type": f"a.b{n}", "mode": "deny"} for n in range(101)]}, f"{PLACE}.rules"),
]


@pytest.mark.parametrize(("document", "place"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_document_that_is_not_fully_understood_is_refused_at_its_place(document: object, place: str) -> None:
    assert refused(document) == place


def refused(document: object) -> str | None:
    """The field a refusal names; its sentence names the same, and echoes harmlessly."""
    with pytest.raises(Invalid) as wrong:
        parse_rules(document)
    assert wrong.value.field is not None
    assert wrong.value.detail.startswith(f"`{wrong.value.field.rpartition('.')[0] or PLACE}")
    assert wrong.value.detail.isprintable()
    assert len(wrong.value.detail) < 300
    wrong.value.detail.encode()
    return wrong.value.field


def test_an_unknown_key_is_echoed_harmlessly() -> None:
    with pytest.raises(Invalid) as wrong:
        parse_rules({"`\n\ud800\x1b" + "x" * 100: 1})
    assert wrong.value.detail == f"`{PLACE}` has an unknown key `????{'x' * 36}`; known are default_mode, rules"
    assert wrong.value.field == f"{PLACE}.????{'x' * 36}"


def test_a_hundred_rules_and_five_hundred_characters_are_taken() -> None:
    read = parse_rules({"rules": [{"action_type": f"a.b{n}", "mode": "deny", "summary_template": "x" * 500} for n in range(100)]})
    assert len(read.rules) == 100


def test_another_place_is_named_when_the_document_is_elsewhere() -> None:
    with pytest.raises(Invalid) as wrong:
        parse_rules({"rules": 1}, field="agents[2].action_approval_policy")
    assert wrong.value.field == "agents[2].action_approval_policy.rules"


# -- widening

ACTIONS = ("refund.create", "ticket.close", "order.place")
modes = st.sampled_from(MODES)
thresholds = st.none() | st.sampled_from([Decimal(text) for text in ("0", "0.0001", "10", "49.9999", "50", "50.0001", "100")])
rule_sets = st.builds(
    lambda default, listed: ApprovalRules(default, tuple(Rule(name, *entry) for name, entry in listed.items()), {}),
    modes,
    st.dictionaries(st.sampled_from(ACTIONS[:2]), st.tuples(modes, thresholds)),
)
amounts = st.none() | st.sampled_from(["0", "0.0001", "9.9999", "10", "49.9999", "50", "50.0001", "99.9999", "100", "1000"])


@given(rule_sets)
def test_no_rules_are_wider_than_themselves(rules: ApprovalRules) -> None:
    assert not widens(rules, rules)


def test_denying_everything_narrows_whatever_threshold_stood_there() -> None:
    old = parse_rules({"rules": [{"action_type": "refund.create", "mode": "allow", "require_for_amount_above_usd": "20"}]})
    assert not widens(old, parse_rules({"default_mode": "deny"}))


@pytest.mark.parametrize("words", ["Pay 5 USD to the cleaner", None])
def test_other_words_for_the_human_who_is_asked_are_wider(words: str | None) -> None:
    def rules(template: str | None) -> ApprovalRules:
        rule = {"action_type": "refund.create", "mode": "approve", "summary_template": template}
        return parse_rules({"rules": [rule]})

    assert widens(rules("Refund {{amount_usd}} USD"), rules(words))


@given(rule_sets, rule_sets, rule_sets)
def test_what_widens_nothing_twice_widens_nothing(first: ApprovalRules, second: ApprovalRules, third: ApprovalRules) -> None:
    if not widens(first, second) and not widens(second, third):
        assert not widens(first, third)


@settings(max_examples=400, deadline=None)
@given(rule_sets, rule_sets, st.sampled_from(ACTIONS), amounts, st.sampled_from([None, 1, 2, 3]), st.booleans())
def test_rules_that_are_not_wider_never_do_more_with_less_asking(
    old: ApprovalRules, new: ApprovalRules, action: str, amount: str | None, declared: int | None, known: bool
) -> None:
    if widens(old, new):
        return
    payload: dict[str, object] = {} if amount is None else {"amount_usd": amount, "recipient": "a@b.co"}
    before, after = (_outcome(rules, action, payload, declared, known) for rules in (old, new))
    assert not (after.automatic and not before.automatic)
    assert not (after.requestable and not before.requestable)
    assert not after.requestable or after.tier >= before.tier


class _Outcome:
    """What the real policies make of one proposal under some rules."""

    def __init__(self, automatic: bool, requestable: bool, tier: int) -> None:
        self.automatic, self.requestable, self.tier = automatic, requestable, tier


WORLD = World()


def _outcome(rules: ApprovalRules, action: str, payload: dict[str, object], declared: int | None, known: bool) -> _Outcome:
    WORLD.state.put_agent(an_agent("agent", rules=rules))
    proposal = read_proposal(action, payload, rules=rules, known_recipient=known, declared_tier=declared, sensitive_actions=())
    agent = agent_caller()
    asked = session(agent, datetime(2026, 3, 4, 10, tzinfo=UTC))
    automatic = WORLD.access.ask_automatic(asked, proposal, principal=agent, person_paused=False)
    requestable = WORLD.access.ask(asked, "approval.request", proposal)
    return _Outcome(automatic.allowed, requestable.allowed, proposal.derived_tier)


def _rules(mode: Mode | None = None, threshold: str | None = None, default: Mode = "approve") -> ApprovalRules:
    listed = () if mode is None else (Rule("refund.create", mode, None if threshold is None else Decimal(threshold)),)
    return ApprovalRules(default, listed, {})


@pytest.mark.parametrize(
    ("old", "new", "wider"),
    [
        (_rules(), _rules("allow"), True),
        (_rules(), _rules("approve"), False),
        (_rules(), _rules("deny"), False),
        (_rules(), _rules("approve", "60"), True),  # the tier floor moves up from 50
        (_rules(), _rules("approve", "40"), False),
        (_rules("approve", "40"), _rules(), True),  # and back to it
        (_rules("deny"), _rules("approve"), True),
        (_rules("deny"), _rules(), True),
        (_rules("deny"), _rules(default="deny"), False),
        (_rules("allow", "20"), _rules("allow", "20.0001"), True),
        (_rules("allow", "20"), _rules("allow", "19.9999"), False),
        (_rules("allow", "100"), _rules("allow"), True),  # an amount that is absent was not below 100
        (_rules("allow"), _rules("allow", "50"), False),
        (_rules("allow"), _rules("approve"), False),
        (_rules(default="deny"), _rules(), True),
        (_rules(), _rules(default="allow"), True),
        (_rules(default="allow"), _rules(default="deny"), False),
    ],
)
def test_a_change_widens_or_it_does_not(old: ApprovalRules, new: ApprovalRules, wider: bool) -> None:
    assert widens(old, new) is wider


def test_nothing_is_wider_than_no_rules_by_saying_nothing() -> None:
    assert not widens(NO_RULES, parse_rules({}))
    assert not widens(parse_rules({}), NO_RULES)


# -- summaries


@pytest.mark.parametrize(
    ("template", "payload", "expected"),
    [
        ("plain", {}, "plain"),
        ("Refund {{amount}} to {{ to }}", {"amount": "5.00", "to": "Ann"}, "Refund 5.00 to Ann"),
        ("{{n}} and {{d}}", {"n": 3, "d": Decimal("12.50")}, "3 and 12.50"),
        ("{{big}}", {"big": 10**5000}, "1" + "0" * 199),
        ("{{to}}", {}, None),
        ("{{to}} {{amount}}", {"to": "Ann"}, None),
        ("{{to}}", {"to": None}, None),
        ("{{to}}", {"to": True}, None),
        ("{{to}}", {"to": ["Ann"]}, None),
        ("{{to}}", {"to": {"name": "Ann"}}, None),
        ("{{to}}", {"to": ""}, ""),
        ("{{to}}", {"to": "{{amount}}", "amount": "5"}, "{{amount}}"),
        ("{{to}}", {"to": "\\1 \\g<0>"}, "\\1 \\g<0>"),
        ("{{to}}", {"to": "a\r\nb\tc\x00d\x1b[31me\x7f\x9b"}, "abcd[31me"),
        ("{{to}}", {"to": "a\u202eb\u2066c\u200ed\u061ce\ufefff\u2028g\u2029h\U000e0041i"}, "abcdefghi"),
        ("{{to}}", {"to": "\ud800a"}, "a"),
        ("{{to}}", {"to": "क्\u200dष \U0001f469\u200d\U0001f680"}, "क्\u200dष \U0001f469\u200d\U0001f680"),
        ("{{to}}", {"to": "x" * 300}, "x" * 200),
        ("{{a-b}} {to} {{}}", {"to": "Ann"}, "{{a-b}} {to} {{}}"),
    ],
)
def test_a_summary_is_filled_or_there_is_none(template: str, payload: dict[str, object], expected: str | None) -> None:
    assert render_summary(template, payload) == expected


@given(st.text(max_size=300))
def test_what_an_agent_puts_into_a_summary_stays_on_one_line_and_in_its_place(text: str) -> None:
    shown = render_summary("to {{to}}, now", {"to": text})
    assert shown is not None
    assert len(shown.splitlines()) == 1
    assert (shown[:3], shown[-5:]) == ("to ", ", now")
    assert len(shown) <= 3 + 200 + 5
    shown.encode()
