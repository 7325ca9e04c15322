"""Obligations: each is read strictly and done to an answer, or the answer is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.operations.obligations import (
    MEGABYTE,
    Obligations,
    Unsatisfiable,
    apply_obligations,
    encoded_bytes,
    first_words,
    read_obligations,
)
from gateway.web.answer import encode_json
from gateway.web.json_body import parse_object


def an_item(number: int, content: str = "three short words") -> dict[str, Any]:
    return {"id": f"i{number}", "content": content, "source_path": f"i{number}", "project_id": "alpha"}


def found(*items: dict[str, Any]) -> dict[str, Any]:
    return {"ok": True, "items": list(items), "redactions_applied": []}


def told(*contents: str) -> dict[str, Any]:
    sources = [{"source_path": f"s{n}", "content": text, "project_id": "alpha"} for n, text in enumerate(contents)]
    return {"ok": True, "answer": "\n\n".join(contents), "sources": sources}


def asked(*entries: tuple[str, dict[str, Any]]) -> Obligations:
    """Obligations as they arrive: through the reader of bodies."""
    body = json.dumps({"o": [{"type": kind, "params": params} for kind, params in entries]})
    return read_obligations(parse_object(body.encode())["o"])


def applied(made: dict[str, Any], *entries: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return apply_obligations(made, asked(*entries))


GOOD: list[tuple[str, dict[str, Any]]] = [
    ("summarize_only", {"max_words": 1}),
    ("rate_limit", {"window": "hour", "max": 60}),
    ("redact_fields", {"fields": ["a", "items.content", "x-y_z"]}),
    ("redact_fields_except", {"allowlist": []}),
    ("max_size_mb", {"max": 1}),
    ("max_size_mb", {"max": 0.25}),
    ("audit_level", {"level": "verbose"}),
]

BAD: list[tuple[str, Any]] = [
    ("summarize_only", {}),
    ("summarize_only", {"max_words": 10, "extra": 1}),
    *(("summarize_only", {"max_words": value}) for value in (0, -1, 1.0, 1.5, "10", True, None, [1], "NaN", "{{max}}")),
    ("rate_limit", {"max": 1}),
    ("rate_limit", {"window": "hour"}),
    *(("rate_limit", {"window": value, "max": 1}) for value in ("week", "HOUR", "", 3600, None, "{{window}}")),
    *(("rate_limit", {"window": "hour", "max": value}) for value in (0, True, 2.5, "1", "NaN", None)),
    ("redact_fields", {}),
    ("redact_fields", {"allowlist": ["a"]}),
    *(("redact_fields", {"fields": value}) for value in ("content", None, {}, 1, [1], [None], [[]])),
    *(("redact_fields", {"fields": [value]}) for value in ("", " ", "a..b", ".a", "a.", "*", "items[0].x", "{{f}}", "$.a")),
    *(("redact_fields_except", {"allowlist": value}) for value in ("a,b", '["a"]', None, ["a,b"], ["{{a}}"])),
    *(("max_size_mb", {"max": value}) for value in (0, -0.5, "1", True, None)),
    *(("audit_level", {"level": value}) for value in ("", 1, None, "{{level}}")),
    *((kind, {}) for kind in ("redact_regex", "", "Summarize_Only", "summarize_only ")),
    *((kind, {"max": 1}) for kind in (None, 1, ["max_size_mb"], {})),
    *(("max_size_mb", value) for value in (None, [], "max", 1)),
]


@pytest.mark.parametrize("entry", GOOD, ids=str)
def test_an_obligation_of_the_right_form_is_taken(entry: tuple[str, dict[str, Any]]) -> None:
    asked(entry)


@pytest.mark.parametrize("entry", BAD, ids=str)
def test_one_that_is_unknown_or_malformed_is_refused_among_good_ones_too(entry: tuple[str, Any]) -> None:
    for entries in ((entry,), (*GOOD, entry), (entry, *GOOD)):
        with pytest.raises(Unsatisfiable):
            asked(*entries)


@pytest.mark.parametrize("entries", [None, {}, "[]", 0, [None], ["max"], [[]], [{}]])
def test_what_is_no_list_of_obligations_is_refused(entries: object) -> None:
    with pytest.raises(Unsatisfiable):
        read_obligations(entries)


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "audit_level"},
        {"params": {"level": "x"}},
        {"type": "audit_level", "params": {"level": "x"}, "also": 1},
    ],
)
def test_a_member_more_or_less_is_refused(entry: dict[str, Any]) -> None:
    with pytest.raises(Unsatisfiable):
        read_obligations([entry])


def test_of_several_of_one_type_the_strictest_holds() -> None:
    assert asked(
        ("summarize_only", {"max_words": 9}),
        ("summarize_only", {"max_words": 5}),
        ("summarize_only", {"max_words": 7}),
        ("max_size_mb", {"max": 2}),
        ("max_size_mb", {"max": 0.5}),
        ("rate_limit", {"window": "hour", "max": 3}),
        ("rate_limit", {"window": "hour", "max": 4}),
        ("rate_limit", {"window": "day", "max": 10}),
        ("redact_fields", {"fields": ["a"]}),
        ("redact_fields", {"fields": ["b"]}),
        ("redact_fields_except", {"allowlist": ["c", "d"]}),
        ("redact_fields_except", {"allowlist": ["d", "e"]}),
    ) == Obligations(
        max_words=5,
        max_bytes=MEGABYTE // 2,
        rates={"hour": 3, "day": 10},
        hidden=frozenset({"a", "b"}),
        shown=(frozenset({"c", "d"}), frozenset({"d", "e"})),
    )


def test_without_obligations_an_answer_is_what_it_was() -> None:
    for made in (found(an_item(1)), told("a", "b"), {"ok": True, "item": an_item(1)}):
        assert apply_obligations(made, asked()) == made
        assert apply_obligations(made, asked(("audit_level", {"level": "full"}))) == made


# -- fields


@pytest.mark.parametrize("field", ["content", "items.content"])
def test_a_field_is_taken_out_of_every_row_by_its_name_or_its_path(field: str) -> None:
    left = {"id": "i1", "source_path": "i1", "project_id": "alpha"}
    assert applied(found(an_item(1), an_item(1)), ("redact_fields", {"fields": [field]})) == {
        "ok": True,
        "items": [left, left],
        "redactions_applied": [field],
    }


def test_a_field_that_no_row_has_is_no_redaction() -> None:
    made = found(an_item(1))
    for field in ("email", "content.x", "item.content", "tent"):
        assert applied(made, ("redact_fields", {"fields": [field]})) == made


def test_only_the_fields_of_an_allowlist_stay() -> None:
    assert applied(found(an_item(1)), ("redact_fields_except", {"allowlist": ["id", "items.content", "item.project_id"]})) == {
        "ok": True,
        "items": [{"id": "i1", "content": "three short words"}],
        "redactions_applied": ["project_id", "source_path"],
    }


def test_a_field_stays_only_when_every_allowlist_names_it_and_nothing_hides_it() -> None:
    entries = [("redact_fields_except", {"allowlist": names}) for names in (["id", "content"], ["id", "project_id"])]
    assert applied(found(an_item(1)), *entries)["items"] == [{"id": "i1"}]
    assert applied(found(an_item(1)), *entries, ("redact_fields", {"fields": ["id"]}))["items"] == [{}]


def test_an_allowlist_of_nothing_leaves_the_frame() -> None:
    nothing = ("redact_fields_except", {"allowlist": []})
    assert applied(found(an_item(1)), nothing)["items"] == [{}]
    assert applied({"ok": True, "item": an_item(1)}, nothing)["item"] == {}
    left = applied(told("secret"), nothing)
    assert (left["ok"], left["answer"], left["sources"]) == (True, "", [{}])


def test_the_frame_itself_is_emptied_and_never_taken_away() -> None:
    assert applied(found(an_item(1)), ("redact_fields", {"fields": ["items", "ok"]})) == {
        "ok": True,
        "items": [],
        "redactions_applied": ["items"],
    }
    assert applied({"ok": True, "item": an_item(1)}, ("redact_fields", {"fields": ["item"]}))["item"] == {}


def test_an_answer_does_not_repeat_the_content_that_is_withheld_from_its_sources() -> None:
    for entry in (
        ("redact_fields", {"fields": ["content"]}),
        ("redact_fields", {"fields": ["sources.content"]}),
        ("redact_fields_except", {"allowlist": ["source_path", "project_id"]}),
    ):
        left = applied(told("secret", "also secret"), entry)
        assert "secret" not in json.dumps(left)
        assert (left["answer"], [row["source_path"] for row in left["sources"]]) == ("", ["s0", "s1"])


def test_an_answer_stays_when_its_content_or_it_itself_may_be_shown() -> None:
    for name in ("content", "answer", "sources.content"):
        assert applied(told("a", "b"), ("redact_fields_except", {"allowlist": [name]}))["answer"] == "a\n\nb"


# -- words


@pytest.mark.parametrize(
    ("text", "most", "kept", "used"),
    [
        ("one two three", 3, "one two three", 3),
        ("one two three", 2, "one two", 2),
        ("  one\n\ntwo\tthree", 2, "  one\n\ntwo", 2),
        ("one", 0, "", 0),
        ("", 5, "", 0),
        ("x" * 64 + " b", 1, "x" * 64, 1),
        ("x" * 65, 1, "x" * 64, 1),
        ("a " + "x" * 200, 3, "a " + "x" * 128, 3),
        ("漢" * 130, 3, "漢" * 130, 3),
        ("漢" * 130, 2, "漢" * 128, 2),
    ],
)
def test_words_are_runs_and_a_long_run_is_several(text: str, most: int, kept: str, used: int) -> None:
    assert first_words(text, most) == (kept, used)


def test_the_words_are_those_of_the_whole_answer() -> None:
    left = applied(found(an_item(1), an_item(2), an_item(3)), ("summarize_only", {"max_words": 4}))
    assert [row["content"] for row in left["items"]] == ["three short words", "three", ""]
    left = applied(told("three short words", "more words"), ("summarize_only", {"max_words": 6}))
    assert (left["answer"], [row["content"] for row in left["sources"]]) == ("three short words\n\nmore words", ["three", ""])
    left = applied({"ok": True, "item": an_item(1)}, ("summarize_only", {"max_words": 2}))
    assert left["item"] == an_item(1, "three short")


def words_of(value: object) -> int:
    match value:
        case dict():
            return sum(words_of(member) for name, member in value.items() if name in ("answer", "content", "items", "sources"))
        case list():
            return sum(map(words_of, value))
        case str():
            return sum(-(-len(run) // 64) for run in value.split())
    return 0


@given(st.lists(st.text(st.sampled_from("a \n漢é\u00a0"), max_size=200), max_size=5), st.integers(1, 40))
def test_no_answer_has_more_words_than_it_may(texts: list[str], most: int) -> None:
    for made in (found(*(an_item(n, text) for n, text in enumerate(texts))), told(*texts)):
        assert words_of(applied(made, ("summarize_only", {"max_words": most}))) <= most


# -- bytes


def test_an_answer_that_is_too_large_loses_whole_rows_from_its_end() -> None:
    rows = [an_item(n) for n in range(5)]
    room = encoded_bytes(found(*rows[:3])) / MEGABYTE
    assert applied(found(*rows), ("max_size_mb", {"max": room})) == found(*rows[:3])


def test_of_a_single_row_that_is_too_large_the_text_is_cut() -> None:
    for made in (found(an_item(1, "é" * 500)), {"ok": True, "item": an_item(1, "é" * 500)}, told("é" * 500)):
        left = applied(made, ("max_size_mb", {"max": 0.0003}))
        assert 250 < encoded_bytes(left) <= 300


def test_what_an_answer_loses_its_sources_lose_too() -> None:
    made, smaller = told("first text", "second text", "third text"), told("first text", "second text")
    assert applied(made, ("max_size_mb", {"max": encoded_bytes(smaller) / MEGABYTE})) == smaller


def test_a_size_that_nothing_fits_is_refused() -> None:
    for made in (found(an_item(1)), {"ok": True, "item": an_item(1)}, told("a")):
        with pytest.raises(Unsatisfiable):
            applied(made, ("max_size_mb", {"max": 0.00001}))


@given(st.lists(st.text(max_size=60), max_size=6), st.integers(1, 600), st.booleans())
def test_no_answer_is_larger_than_it_may_be(texts: list[str], most: int, few: bool) -> None:
    entries = [("max_size_mb", {"max": most / MEGABYTE})]
    if few:
        entries.append(("redact_fields_except", {"allowlist": ["content"]}))
    for made in (found(*(an_item(n, text) for n, text in enumerate(texts))), told(*texts)):
        try:
            left = applied(made, *entries)
        except Unsatisfiable:
            continue
        assert len(encode_json(left).encode()) <= most
