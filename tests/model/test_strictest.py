"""What is derived is never wider than what it was derived from, and every step that widens is one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import Invalid
from gateway.model.memory import TIERS, Source
from gateway.model.strictest import Derived, Labels, Said, derive, followed, labels, refuse_wider, widens
from tests.store.memory_samples import NOON, a_memory

ALPHA = a_memory("1", project_id="alpha", tags=("a", "b"), classification="internal")
some_labels = st.builds(
    Labels,
    st.sampled_from([None, "alpha", "beta"]),
    st.sets(st.sampled_from("abc")).map(lambda tags: tuple(sorted(tags))),
    st.sampled_from(TIERS),
)


def test_a_copy_of_one_row_has_its_labels() -> None:
    assert derive([ALPHA]) == Derived("alpha", ("a", "b"), "internal", None, None, None, ())


def test_of_several_it_has_the_strictest_and_what_all_share() -> None:
    other = replace(ALPHA, tags=("b", "c"), classification="pii", expires_at=NOON)
    third = replace(ALPHA, tags=("b",), classification="public", expires_at=NOON + timedelta(days=1))
    assert derive([ALPHA, other, third]) == Derived("alpha", ("b",), "pii", NOON, None, None, ())


@pytest.mark.parametrize("project", ["beta", None])
def test_of_two_projects_it_is_untagged(project: str | None) -> None:
    assert derive([ALPHA, replace(ALPHA, project_id=project)]).project_id is None


def test_one_connection_in_the_provenance_is_its_own() -> None:
    over = replace(ALPHA, connection_id="net1", source_did="did:x:1", provenance=(Source("net1", "did:x:1"),))
    made = derive([ALPHA, over], own=Source(None, "did:x:2"))
    assert (made.connection_id, made.source_did) == ("net1", None)
    assert made.provenance == (Source(None, "did:x:2"), Source("net1", "did:x:1"))


def test_of_two_connections_it_has_neither() -> None:
    over = [replace(ALPHA, provenance=(Source(name, "did:x:1"),)) for name in ("net2", "net1")]
    made = derive(over)
    assert (made.connection_id, made.source_did) == (None, "did:x:1")
    assert made.provenance == (Source("net1", "did:x:1"), Source("net2", "did:x:1"))


def test_what_a_request_says_may_be_stricter() -> None:
    said = Said("alpha", ("b",), "confidential", NOON)
    assert derive([ALPHA], said) == Derived("alpha", ("b",), "confidential", NOON, None, None, ())
    assert derive([ALPHA], Said(tags=())).tags == ()


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("project_id", Said(project_id="beta")),
        ("tags", Said(tags=("b", "c"))),
        ("classification", Said(classification="public")),
        ("expires_at", Said(expires_at=NOON + timedelta(microseconds=1))),
    ],
)
def test_what_a_request_says_may_not_be_wider(field: str, said: Said) -> None:
    with pytest.raises(Invalid) as refused:
        derive([replace(ALPHA, expires_at=NOON)], said)
    assert refused.value.field == field


def test_a_project_is_not_named_for_what_comes_from_two() -> None:
    with pytest.raises(Invalid):
        derive([ALPHA, replace(ALPHA, project_id="beta")], Said(project_id="alpha"))


@pytest.mark.parametrize(
    ("change", "wider"),
    [
        ({}, False),
        ({"project_id": None}, False),
        ({"project_id": "beta"}, True),
        ({"tags": ("a",)}, False),
        ({"tags": ("a", "b", "c")}, True),
        ({"tags": ("a", "c")}, True),
        ({"classification": "pii"}, False),
        ({"classification": "public"}, True),
        ({"project_id": None, "tags": (), "classification": "public"}, True),
        ({"project_id": None, "tags": (), "classification": "confidential"}, False),
    ],
)
def test_several_changes_are_narrowing_when_each_is(change: dict[str, Any], wider: bool) -> None:
    assert widens(ALPHA, replace(labels(ALPHA), **change)) is wider


def test_naming_a_project_is_widening() -> None:
    assert widens(replace(ALPHA, project_id=None), ALPHA)


@given(some_labels, st.lists(some_labels, min_size=1, max_size=4), st.lists(some_labels, min_size=1, max_size=4))
def test_what_follows_its_sources_is_no_wider_than_they_are_nor_but_for_the_project_than_it_was(
    row: Labels, before: list[Labels], sources: list[Labels]
) -> None:
    after = followed(row, before, sources)
    assert not widens(replace(row, project_id=after.project_id), after)
    assert after.project_id is None or row.project_id is not None
    refuse_wider(sources, after)
    for source in sources:
        assert not widens(source, after)
    assert followed(after, sources, sources) == after


def test_a_derived_row_goes_with_its_sources_to_another_project_when_it_was_in_theirs() -> None:
    beta = replace(labels(ALPHA), project_id="beta")
    assert followed(ALPHA, [ALPHA], [beta]).project_id == "beta"
    assert followed(ALPHA, [ALPHA, ALPHA], [beta, ALPHA]).project_id is None
    assert followed(replace(ALPHA, project_id=None), [ALPHA], [beta]).project_id is None
    assert followed(replace(ALPHA, project_id=None), [replace(ALPHA, project_id=None)], [beta]).project_id is None
