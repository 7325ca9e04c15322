"""Reading members: what is taken, what is refused, and how a refusal speaks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Invalid
from gateway.model.ids import new_id
from gateway.operations.fields import Fields, echo, is_id, json_number, optional_stamp, stamp

ID = "0b0e7f0c-4b7e-4c58-9a52-3d6a3f6f7a11"
OTHER = "1b0e7f0c-4b7e-4c58-9a52-3d6a3f6f7a11"
Reader = Callable[[Fields], object]

READERS: dict[str, Reader] = {
    "text": lambda f: f.text("x", longest=5),
    "id": lambda f: f.id("x"),
    "object": lambda f: f.object("x"),
    "choice": lambda f: f.choice("x", ("a", "b")),
    "boolean": lambda f: f.boolean("x"),
    "integer": lambda f: f.integer("x", least=1, most=3),
    "timestamp": lambda f: f.timestamp("x"),
}
OPTIONAL: dict[str, tuple[Reader, object]] = {
    "optional_text": (lambda f: f.optional_text("x", longest=5), None),
    "optional_id": (lambda f: f.optional_id("x"), None),
    "optional_object": (lambda f: f.optional_object("x"), None),
    "optional_choice": (lambda f: f.optional_choice("x", ("a", "b")), None),
    "optional_choice with a default": (lambda f: f.optional_choice("x", ("a", "b"), "b"), "b"),
    "optional_boolean": (lambda f: f.optional_boolean("x", default=True), True),
    "optional_integer": (lambda f: f.optional_integer("x", least=1, most=3), None),
    "optional_timestamp": (lambda f: f.optional_timestamp("x"), None),
    "count": (lambda f: f.count("x", least=1, most=9, default=4), 4),
    "ids": (lambda f: f.ids("x", most=3), []),
    "list": (lambda f: f.list("x", most=3), []),
    "objects": (lambda f: f.objects("x", most=3), []),
}
ALL = {**READERS, **{name: reader for name, (reader, _) in OPTIONAL.items()}}

#: Of each JSON type, and of each way to look like another.
VALUES: dict[str, object] = {
    "true": True,
    "false": False,
    "zero": 0,
    "two": 2,
    "minus": -1,
    "huge": 10**30,
    "colossal": 10**5000,
    "fraction": Decimal("2.0"),
    "exponent": Decimal("2E+0"),
    "nan": Decimal("NaN"),
    "float": 2.0,
    "empty": "",
    "a": "a",
    "long": "a" * 6,
    "digit": "2",
    "unicode digit": "\u0662",
    "nan text": "NaN",
    "true text": "true",
    "null text": "null",
    "blank": " ",
    "nul": "a\x00",
    "surrogate": "\ud800",
    "id": ID,
    "upper id": ID.upper(),
    "id line": ID + "\n",
    "urn id": f"urn:uuid:{ID}",
    "time": "2030-01-31T12:00:00Z",
    "naive": "2030-01-31T12:00:00",
    "list": [],
    "list of null": [None],
    "list of id": [ID],
    "list of ids": [ID, OTHER, ID],
    "list of object": [{"a": 1}],
    "long list": [ID] * 4,
    "nested": [[]],
    "object": {},
    "filled": {"a": 1},
}
TAKEN: dict[str, set[str]] = {
    "text": {"a", "digit", "unicode digit", "nan text", "true text", "null text", "blank"},
    "id": {"id"},
    "object": {"object", "filled"},
    "choice": {"a"},
    "boolean": {"true", "false"},
    "integer": {"two"},
    "timestamp": {"time"},
    "count": {"digit"},
    "ids": {"list", "list of id", "list of ids"},
    "list": {"list", "list of null", "list of id", "list of ids", "list of object", "nested"},
    "objects": {"list", "list of object"},
}


@pytest.mark.parametrize("reader", ALL)
@pytest.mark.parametrize("value", VALUES)
def test_a_reader_takes_its_own_type_and_refuses_every_other(reader: str, value: str) -> None:
    fields = Fields({"x": VALUES[value]})
    kind = reader.removeprefix("optional_").removesuffix(" with a default")
    taken = TAKEN[kind] | ({"empty"} if reader == "optional_text" else set())
    if value in taken:
        ALL[reader](fields)
        return
    with pytest.raises(Invalid) as wrong:
        ALL[reader](fields)
    assert wrong.value.field == "x"
    assert wrong.value.detail.startswith(("`x` must be ", "`x[0]` must be "))
    assert wrong.value.detail.isprintable()
    assert len(wrong.value.detail) < 200
    wrong.value.detail.encode()


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("members", [{}, {"x": None}], ids=["absent", "null"])
def test_what_is_required_is_said_to_be(reader: str, members: dict[str, object]) -> None:
    with pytest.raises(Invalid, match=r"^`x` is required and must be "):
        READERS[reader](Fields(members))


@pytest.mark.parametrize("reader", OPTIONAL)
@pytest.mark.parametrize("members", [{}, {"x": None}], ids=["absent", "null"])
def test_what_is_absent_or_null_is_the_default(reader: str, members: dict[str, object]) -> None:
    read, default = OPTIONAL[reader]
    assert read(Fields(members)) == default


def test_what_is_read_is_what_was_sent() -> None:
    sent = {
        "t": "aé\n",
        "i": ID,
        "o": {"a": 1},
        "c": "b",
        "b": False,
        "n": 3,
        "l": [1, None],
        "q": "007",
        "ids": [OTHER, ID, OTHER],
    }
    fields = Fields(sent)
    read = (fields.text("t", longest=3), fields.id("i"), fields.object("o"), fields.choice("c", ("a", "b")), fields.boolean("b"))
    assert read == ("aé\n", ID, {"a": 1}, "b", False)
    assert (fields.integer("n", least=1, most=3), fields.list("l", most=2)) == (3, [1, None])
    assert (fields.count("q", least=0, most=7, default=1), fields.ids("ids", most=3)) == (7, [OTHER, ID])


# -- text


@pytest.mark.parametrize("text", ["a", "ab", "\U0001f469\u200d"])
def test_a_text_is_counted_in_code_points(text: str) -> None:
    assert Fields({"x": text}).text("x", longest=2) == text


@pytest.mark.parametrize("text", ["", "abc", "\U0001f469\u200d\U0001f680"])
def test_a_text_that_is_too_short_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"^`x` must be a string of 1 to 2 characters, got `"):
        Fields({"x": text}).text("x", longest=2)


# -- numbers


@pytest.mark.parametrize(("sent", "read"), [("1", 1), ("9", 9), ("09", 9), ("0" * 30 + "5", 5)])
def test_a_count_is_read_from_its_digits(sent: str, read: int) -> None:
    assert Fields({"x": sent}).count("x", least=1, most=9, default=4) == read


@pytest.mark.parametrize("sent", ["0", "10", "9" * 18, "9" * 5000, "-1"])
def test_a_count_out_of_its_bounds_is_refused(sent: str) -> None:
    with pytest.raises(Invalid, match=r"^`x` must be a whole number from 1 to 9, got `"):
        Fields({"x": sent}).count("x", least=1, most=9, default=4)


@pytest.mark.parametrize("sent", ["10", "9" * 18, "9" * 19, "1" + "0" * 5000], ids=len)
def test_a_count_that_is_clamped_is_clamped_whatever_its_length(sent: str) -> None:
    assert Fields({"x": sent}).count("x", least=1, most=9, default=4, clamp=True) == 9


@pytest.mark.parametrize("sent", ["0", "", "x", "+5", "5.0", "5e1", "0x5", "5 ", "\u0665", "1_0"])
def test_clamping_takes_nothing_else(sent: str) -> None:
    with pytest.raises(Invalid):
        Fields({"x": sent}).count("x", least=1, most=9, default=4, clamp=True)


# -- times

TIMES = [
    ("2030-01-31T12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
    ("2030-01-31t12:00:00z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
    ("2030-01-31 12:00:00Z", datetime(2030, 1, 31, 12, tzinfo=UTC)),
    ("2030-01-31T12:00:00.5Z", datetime(2030, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
    ("2030-01-31T12:00:00.123456789Z", datetime(2030, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
    ("2030-01-31T12:00:00+14:00", datetime(2030, 1, 30, 22, tzinfo=UTC)),
    ("2030-01-31T12:00:00-12:00", datetime(2030, 2, 1, 0, tzinfo=UTC)),
    ("2030-01-31T12:00:00-00:00", datetime(2030, 1, 31, 12, tzinfo=UTC)),
    ("2026-03-29T02:30:00+01:00", datetime(2026, 3, 29, 1, 30, tzinfo=UTC)),
    ("9999-12-31T23:59:59.999999Z", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
    ("2028-02-29T00:00:00Z", datetime(2028, 2, 29, tzinfo=UTC)),
]
NO_TIMES = [
    "2030-01-31T12:00:00",
    "2030-01-31",
    "31/01/2030",
    "2030-1-31T12:00:00Z",
    "2030-01-31T12:00Z",
    "2030-01-31T12:00:00 02:00",
    "2030-01-31T12:00:00+0200",
    "2030-01-31T12:00:00+02",
    "2030-01-31T12:00:00,5Z",
    "2030-01-31T12:00:00.Z",
    "2030-W05-4T12:00:00Z",
    "20300131T120000Z",
    "2030-01-31T24:00:00Z",
    "2030-01-31T12:60:00Z",
    "2030-01-31T12:00:60Z",
    "2030-02-29T00:00:00Z",
    "2030-13-01T00:00:00Z",
    "2030-00-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "2030-01-31T12:00:00+24:00",
    "2030-01-31T12:00:00+99:99",
    "9999-12-31T23:59:59-14:00",
    "0001-01-01T00:00:00+14:00",
    "+2030-01-31T12:00:00Z",
    "12030-01-31T12:00:00Z",
    "2030-01-31T12:00:00Z ",
    "2030-01-31T12:00:00Z\n",
    "\u0662030-01-31T12:00:00Z",
    "2030\u201001\u201031T12:00:00Z",
    "now",
    "",
    "1900000000",
    "NaN",
]


@pytest.mark.parametrize(("sent", "read"), TIMES, ids=[sent for sent, _ in TIMES])
def test_a_time_is_read_as_the_same_instant_in_utc(sent: str, read: datetime) -> None:
    found = Fields({"x": sent}).timestamp("x")
    assert (found, found.tzinfo) == (read, UTC)


@pytest.mark.parametrize("sent", NO_TIMES, ids=range(len(NO_TIMES)))
def test_a_time_that_is_no_instant_is_refused(sent: str) -> None:
    with pytest.raises(Invalid) as wrong:
        Fields({"x": sent}).timestamp("x")
    assert wrong.value.detail.startswith("`x` must be an RFC 3339 time with an offset, such as 2030-01-31T12:00:00Z, got `")


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_stamped_is_read_back(moment: datetime) -> None:
    assert stamp(moment).endswith("Z")
    assert Fields({"x": stamp(moment)}).timestamp("x") == moment


def test_times_are_shown_in_utc() -> None:
    there = datetime(2030, 1, 31, 12, tzinfo=timezone(timedelta(hours=14)))
    assert (stamp(there), optional_stamp(there), optional_stamp(None)) == ("2030-01-30T22:00:00Z",) * 2 + (None,)


# -- places, unknown members, echoes


def test_a_member_of_a_list_is_named_by_its_place() -> None:
    first, second = Fields({"rows": [{"a": "x"}, {"a": 5, "b": [None]}]}).objects("rows", most=2)
    assert first.text("a", longest=3) == "x"
    for read, field in (
        (lambda: second.text("a", longest=3), "rows[1].a"),
        (lambda: second.ids("b", most=2), "rows[1].b"),
        (lambda: second.id("c"), "rows[1].c"),
        (lambda: second.refuse_others(("a",)), "rows[1].b"),
    ):
        with pytest.raises(Invalid) as wrong:
            read()
        assert wrong.value.field == field
        assert wrong.value.detail.startswith(f"`{field}")


def test_an_unknown_member_is_named_with_the_known_ones() -> None:
    fields = Fields({"name": 1, "nmae": 2})
    with pytest.raises(Invalid, match=r"^`nmae` is not a known field here; known are name$"):
        fields.refuse_others(("name",))
    with pytest.raises(Invalid, match=r"known are none$"):
        fields.refuse_others(())
    fields.refuse_others(("name", "nmae"))


def test_an_unknown_member_is_echoed_harmlessly() -> None:
    with pytest.raises(Invalid) as wrong:
        Fields({"`\n\ud800" + "x" * 90: 1}).refuse_others(())
    assert (wrong.value.detail, wrong.value.field) == (
        f"`???{'x' * 37}` is not a known field here; known are none",
        f"???{'x' * 37}",
    )


def test_a_member_is_there_when_it_is_named_and_has_a_value_when_it_is_not_null() -> None:
    fields = Fields({"a": None, "b": 0})
    assert ["a" in fields, "b" in fields, "c" in fields] == [True, True, False]
    assert [fields.has("a"), fields.has("b"), fields.has("c")] == [False, True, False]


ECHOES: list[tuple[object, str]] = [
    (None, "`null`"),
    (True, "`true`"),
    (5, "`5`"),
    (10**5000, f"`1{'0' * 39}`"),
    (-(10**30), f"`-1{'0' * 30}`"),
    (Decimal("1.50"), "`1.50`"),
    ({}, "an object"),
    ([1], "a list"),
    ("a`b", "`a?b`"),
    ("a\r\n\x1b[31m\x00", "`a???[31m?`"),
    ("\u202eevil\u2066", "`?evil?`"),
    ("\ud800", "`?`"),
    ("café 日本", "`café 日本`"),
    ("x" * 100, f"`{'x' * 40}`"),
]


@pytest.mark.parametrize(("value", "shown"), ECHOES, ids=range(len(ECHOES)))
def test_an_echo_is_short_and_harmless(value: Any, shown: str) -> None:
    assert echo(value) == shown


@given(
    st.text()
    | st.integers()
    | st.none()
    | st.booleans()
    | st.decimals()
    | st.lists(st.integers())
    | st.dictionaries(st.text(), st.none())
)
def test_every_echo_can_be_printed_and_sent(value: object) -> None:
    shown = echo(value)
    assert shown.isprintable()
    assert len(shown) <= 42
    assert shown[1:-1].count("`") == 0
    shown.encode()


def test_fresh_ids_are_ids_and_differ() -> None:
    made = {new_id() for _ in range(100)}
    assert len(made) == 100
    assert all(is_id(one) for one in made)


@pytest.mark.parametrize(
    "value",
    ["", "-", ID.upper(), ID[:-1], ID + "0", f"{{{ID}}}", ID.replace("-", ""), ID + "\n", None, 5, [ID], "\uff10" + ID[1:]],
)
def test_nothing_else_is_an_id(value: object) -> None:
    assert is_id(ID)
    assert not is_id(value)


def test_a_figure_of_two_decimals_is_a_json_number() -> None:
    assert [json_number(Decimal(text)) for text in ("0.83", "0.05", "1")] == [0.83, 0.05, 1.0]
