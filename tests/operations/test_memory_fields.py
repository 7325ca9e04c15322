"""Inputs about memory: one normal form, whoever writes, asks or grants."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.errors import Invalid
from gateway.operations.fields import Fields
from gateway.operations.memory_fields import (
    did,
    layer_fields,
    layers,
    memory_text,
    optional_project,
    project,
    refuse_nulls,
    tags,
    tiers,
)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("alpha", "alpha"),
        ("ALPHA", "alpha"),
        ("a_b", "a_b"),
        ("0.x-y", "0.x-y"),
        ("a" * 64, "a" * 64),
        ("\u212a", "k"),  # the sign for kelvin, which NFC says is the letter K
    ],
)
def test_a_project_has_one_normal_form(sent: str, stored: str) -> None:
    assert project(Fields({"project_id": sent})) == stored


@pytest.mark.parametrize(
    "sent",
    [
        *(
            "",
            " ",
            "*",
            "%",
            "_a",
            "-a",
            ".a",
            "a b",
            " a",
            "a ",
            "a\n",
            "a" * 65,
            "x" * 10_240,
            "a%",
            "a/b",
            "ä",
            "a\u0308",
            "\u017f",
        ),
        *(
            "\u0430lpha",
            "alpha\u200b",
            "alpha\u202e",
            "\uff41",
            "\ufb01",
            "\u0130",
            "\u0131",
            'a" ) ; permit(principal,action,resource);//',
        ),
        *(None, ["alpha"], {"id": "alpha"}, 1, True, 1.0),
    ],
)
def test_what_is_no_slug_is_refused_and_never_all(sent: object) -> None:
    fields = Fields({"project_id": sent})
    for read in (project, optional_project):
        with pytest.raises(Invalid) as refused:
            read(fields)
        assert refused.value.field == "project_id"


def test_a_project_that_is_left_out_is_none_only_where_it_may_be() -> None:
    assert optional_project(Fields({})) is None
    with pytest.raises(Invalid):
        project(Fields({}))


def test_tags_are_a_set_of_normal_forms_in_which_every_character_is_ordinary() -> None:
    sent = [" b ", "a,b", 'q"', "%", "_", "e\u0301", "é", "b", "B", "😀", "x" * 64]
    assert tags(Fields({"tags": sent})) == tuple(sorted({"b", "a,b", 'q"', "%", "_", "é", "B", "😀", "x" * 64}))
    assert tags(Fields({"tags": []})) == ()
    assert tags(Fields({})) is None


def test_a_hundred_equal_tags_are_one_and_33_are_too_many() -> None:
    assert tags(Fields({"tags": ["a"] * 100})) == ("a",)
    with pytest.raises(Invalid):
        tags(Fields({"tags": [f"t{number}" for number in range(33)]}))


@pytest.mark.parametrize("sent", ["a", {"a": 1}, None, [""], ["  "], ["x" * 65], [1], [None], [["a"]], [True]])
def test_what_is_no_set_of_tags_is_refused(sent: object) -> None:
    with pytest.raises(Invalid) as refused:
        tags(Fields({"tags": sent}))
    assert refused.value.field == "tags"


def test_tiers_and_layers_are_exact_words() -> None:
    assert tiers(Fields({"classifications": ["pii", "public", "pii"]})) == ("public", "pii")
    assert layers(Fields({"layers": ["chunk", "fact"]})) == ("fact", "chunk")
    assert (tiers(Fields({"classifications": []})), layers(Fields({}))) == ((), None)


@pytest.mark.parametrize("sent", ["pii", ["PII"], ["pii "], [""], [None], [0], [{}], ["secret"], None, {}])
def test_another_word_is_no_tier(sent: object) -> None:
    with pytest.raises(Invalid):
        tiers(Fields({"classifications": sent}))


@pytest.mark.parametrize(
    ("layer", "sent"),
    [
        ("fact", {"title": "t"}),
        ("chunk", {"occurred_at": "2026-01-01T00:00:00Z"}),
        ("session", {"title": "t"}),
        ("timeline", {"channel": "c"}),
        ("session", {"started_at": "2026-01-02T00:00:00Z", "ended_at": "2026-01-01T00:00:00Z"}),
        ("session", {"started_at": "2026-01-02"}),
    ],
)
def test_a_field_of_another_layer_is_refused(layer: Any, sent: dict[str, object]) -> None:
    with pytest.raises(Invalid) as refused:
        layer_fields(Fields(sent), layer)
    assert refused.value.field == list(sent)[-1]


def test_a_text_is_measured_in_bytes() -> None:
    assert memory_text(Fields({"text": " "})) == " "
    assert memory_text(Fields({"text": "é" * 32_768})) == "é" * 32_768
    for text in ("", "é" * 32_769, "a" * 65_537):
        with pytest.raises(Invalid):
            memory_text(Fields({"text": text}))


@pytest.mark.parametrize(
    "sent", ["", "did:", "did:web", "did:web:", "DID:web:a", "did:Web:a", "did:web:a b", "x did:web:a", "did:web:é", 1, None]
)
def test_what_is_no_did_is_refused(sent: object) -> None:
    with pytest.raises(Invalid):
        did(Fields({"source_did": sent}), "source_did")


@pytest.mark.parametrize("sent", ["did:web:a.example", "did:key:z6Mk_-x", "did:web:a.example%3A3000:user"])
def test_a_did_is_taken_as_it_is(sent: str) -> None:
    assert did(Fields({"source_did": sent}), "source_did") == sent


def test_an_explicit_null_is_refused_unless_it_has_a_meaning() -> None:
    refuse_nulls(Fields({"project_id": None, "tags": []}), allowed=("project_id",))
    with pytest.raises(Invalid) as refused:
        refuse_nulls(Fields({"tags": None}), allowed=("project_id",))
    assert refused.value.field == "tags"
