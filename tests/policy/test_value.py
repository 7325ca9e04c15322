from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from gateway.model.entity import EntityUid, Value
from gateway.policy.context import Context
from gateway.policy.value import ValueRefused, canonical, refuse_implicit, value_json
from tests.policy import builders as b

NOON = datetime(2026, 3, 4, 12, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=14)))
EVE = EntityUid("User", "eve")


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (True, True),
        (7, 7),
        ('{"__extn": 1}', '{"__extn": 1}'),
        (EVE, {"__entity": {"type": "User", "id": "eve"}}),
        (Decimal("50"), {"__extn": {"fn": "decimal", "arg": "50.0000"}}),
        (Decimal("1E+3"), {"__extn": {"fn": "decimal", "arg": "1000.0000"}}),
        (Decimal("-0.00010"), {"__extn": {"fn": "decimal", "arg": "-0.0001"}}),
        (NOON, {"__extn": {"fn": "datetime", "arg": "2026-03-03T22:00:00.123Z"}}),
        (datetime(1, 1, 1, tzinfo=UTC), {"__extn": {"fn": "datetime", "arg": "0001-01-01T00:00:00.000Z"}}),
        ((1, EVE), [1, {"__entity": {"type": "User", "id": "eve"}}]),
        ({"a": {"b": ()}}, {"a": {"b": []}}),
    ],
)
def test_each_value_has_one_spelling(value: Value, json: object) -> None:
    assert value_json(value, set()) == json


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Decimal("0.00001"), "more than four places"),
        (Decimal("1e30"), "out of range"),
        (Decimal("NaN"), "not a number"),
        (Decimal("Infinity"), "out of range"),
        (datetime(2026, 1, 1), "without a time zone"),  # noqa: DTZ001 - the naive time is what is refused
        ({"__extn": {"fn": "unknown", "arg": "x"}}, "reserved key `__extn`"),
        ({"__anything": 1}, "reserved key"),
        ({"type": "User", "id": "eve"}, "reads as an entity"),
        ({"a": ({"fn": "decimal", "arg": "1.0"},)}, "reads as an entity or an extension"),
        (1.5, "a `float` is not a Cedar value"),
        (None, "a `NoneType` is not a Cedar value"),
        ([1], "a `list` is not a Cedar value"),
    ],
)
def test_what_has_no_exact_spelling_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueRefused, match=message):
        value_json(value, set())


def test_a_value_nested_too_deep_is_refused() -> None:
    value: Value = 1
    for _ in range(2_000):
        value = (value,)
    with pytest.raises(ValueRefused, match="nested deeper than 50"):
        value_json(value, set())


def test_canonical_text_has_sorted_keys_no_spaces_and_ascii_only() -> None:
    assert canonical({"b": 1, "a": "é"}) == '{"a":"\\u00e9","b":1}'


def test_a_context_is_a_mapping_that_keeps_its_text_and_its_entities() -> None:
    context = Context({"n": 1, "friend": EVE})
    assert (dict(context), len(context)) == ({"n": 1, "friend": EVE}, 2)
    assert context.text == '{"friend":{"__entity":{"id":"eve","type":"User"}},"n":1}'
    assert context.uids == {EVE}


def test_a_prepared_context_stays_as_it_was_made() -> None:
    values: dict[str, Value] = {"n": 1}
    context = Context(values)
    values["n"] = 2
    assert (context["n"], context.text) == (1, '{"n":1}')


def test_a_prepared_context_decides_as_the_plain_one_does() -> None:
    engine = b.an_engine('@id("x") permit (principal, action, resource) when { context has n && context.n == 1 };')
    slice = engine.slice(b.an_org(), b.a_user(), b.a_doc())
    for values, allowed in (({"n": 1}, True), ({"n": 2}, False)):
        assert engine.decide(b.a_query(**values), slice).allowed is allowed
        prepared = type(b.a_query())(b.ANN, "read", b.DOC, Context(values))
        assert engine.decide(prepared, slice).allowed is allowed


def test_a_context_in_json_names_its_entities_or_is_refused() -> None:
    json = {"friend": {"__entity": {"type": "User", "id": "eve"}}, "list": [1, {"a": "b"}]}
    assert (Context.from_json(json).uids, dict(Context.from_json(json))) == ({EVE}, json)
    with pytest.raises(ValueRefused, match="reads as an entity"):
        Context.from_json({"friend": {"type": "User", "id": "eve"}})
    with pytest.raises(ValueRefused, match="an unknown"):
        Context.from_json({"a": [{"__expr": "unknown(1)"}]})


def test_an_explicit_entity_or_extension_is_not_taken_for_an_implicit_one() -> None:
    refuse_implicit([{"__entity": {"type": "User", "id": "eve"}}, {"__extn": {"fn": "decimal", "arg": "1.0"}}])
