"""Writing memories: whole or not at all, and never wider than what they came from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Conflict, Invalid, NotFound, Stale, TooManyRequests
from gateway.model.caller import Caller
from gateway.model.memory import LAYERS, LayerFields, Source
from gateway.model.strictest import Labels, derive
from gateway.store.db import Database
from gateway.store.memories import add, delete, index, retag, retract
from gateway.store.writer import Unit, record
from tests.store.memory_samples import (
    AGENT,
    DID,
    NOON,
    ORG,
    a_memory,
    a_vector,
    an_agent,
    audits,
    counts,
    done,
    granted,
    kept,
    naming,
    remember,
    stamped,
    values,
)
from tests.store.samples import a_row, busy_writer

REMOTE = Caller("Connection", "net1", ORG, "credential")
SUPPRESS = "INSERT INTO memory_suppressions VALUES ($1, $2, $3, 'owner')"
ALPHA = {"project_id": "alpha", "tags": ("a", "b"), "classification": "internal"}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = Database.create(tmp_path / "data")
    yield made
    made.close()


def a_child(memory_id: str, *sources: str, **changes: Any) -> Any:
    return a_memory(memory_id, derived_from=sources, **{**ALPHA, **changes})


def told(store: Database, action: str) -> list[dict[str, Any]]:
    found = [json.loads(text) for text in audits(store, action)]
    return [{name: value for name, value in each.items() if name not in ("decision_id", "request_id")} for each in found]


# -- add


@pytest.mark.parametrize("layer", LAYERS)
def test_what_is_written_is_what_is_kept(store: Database, layer: Any) -> None:
    extra = LayerFields("title", NOON, "channel", NOON, NOON + timedelta(hours=1))
    row = stamped("1", **ALPHA, layer=layer, expires_at=NOON, extra=extra)
    assert done(store, add, granted(row), row) == row
    assert kept(store) == {"1": row}


def test_tokens_and_vectors_are_written_with_it(store: Database) -> None:
    remember(store, a_memory("1", "one two two"), vectors=[a_vector(1.0), a_vector(0.5)])
    found = store.read_sync(lambda rows: rows.all("SELECT agent_id, token, memory_id, times FROM memory_tokens ORDER BY token"))
    assert found == [(AGENT, "one", "1", 1), (AGENT, "two", "1", 2)]
    found = store.read_sync(lambda rows: rows.all("SELECT piece, agent_id, model, vector[1] FROM memory_vectors ORDER BY piece"))
    assert found == [(0, AGENT, "model", 1.0), (1, AGENT, "model", 0.5)]
    assert values(store, "SELECT words FROM memories") == [3]


def test_a_text_without_a_token_is_kept_too(store: Database) -> None:
    remember(store, a_memory("1", "..."))
    assert list(kept(store)) == ["1"]


def test_the_log_says_of_it_nothing_that_somebody_wrote(store: Database) -> None:
    remember(store, a_memory("1", "secret words", project_id="secret-project", tags=("secret tag",)))
    assert told(store, "memory.added") == [
        {"layer": "fact", "classification": "internal", "tagged": True, "derived_from": [], "supersedes": None}
    ]
    assert values(store, "SELECT count(*) FROM log WHERE strpos(log::VARCHAR, 'secret') > 0") == [0]


def test_what_it_supersedes_names_it_and_nothing_is_inherited(store: Database) -> None:
    old, new = a_memory("1", **ALPHA), a_memory("2")
    remember(store, old)
    remember(store, new, supersedes=old)
    assert kept(store) == {"1": replace(old, superseded_by="2"), "2": new}


def test_what_was_superseded_is_not_superseded_again(store: Database) -> None:
    remember(store, a_memory("1"))
    remember(store, a_memory("2"), supersedes=a_memory("1"))
    with pytest.raises(Conflict):
        remember(store, a_memory("3"), supersedes=kept(store)["1"])
    assert list(kept(store)) == ["1", "2"]


@pytest.mark.parametrize("link", ["supersedes", "sources"])
def test_a_link_to_what_is_gone_or_another_agents_is_not_found(store: Database, link: str) -> None:
    foreign = a_memory("2", agent_id="other")
    remember(store, foreign)
    for linked in (a_memory("1"), foreign):
        row = a_memory("3")
        with pytest.raises(NotFound):
            done(store, add, granted(row), row, **{link: [linked] if link == "sources" else linked})
    assert list(kept(store)) == ["2"]


@pytest.mark.parametrize("link", ["supersedes", "sources"])
def test_a_link_to_what_has_changed_makes_the_request_run_again(store: Database, link: str) -> None:
    before = a_memory("1", **ALPHA)
    remember(store, before)
    done(store, retag, granted(before), Labels(None, (), "pii"))
    row = a_memory("2")
    with pytest.raises(Stale):
        done(store, add, granted(row), row, **{link: [before] if link == "sources" else before})
    assert list(kept(store)) == ["1"]


def test_a_derived_row_keeps_its_links_and_all_provenance(store: Database) -> None:
    sources = [stamped("2", **ALPHA), stamped("1", "net2", "did:x:2", **ALPHA)]
    remember(store, *sources)
    made = derive(sources)
    row = a_child("3", "1", "2", provenance=made.provenance, connection_id=made.connection_id, source_did=made.source_did)
    remember(store, row)
    assert kept(store)["3"] == row
    assert row.provenance == (Source("net1", DID), Source("net2", "did:x:2"))
    assert values(store, "SELECT sources FROM memories WHERE id = '3'") == [["net1", "net2"]]


def test_a_row_that_is_wider_than_its_sources_is_refused_whatever_the_request_decided(store: Database) -> None:
    remember(store, a_memory("1", **{**ALPHA, "classification": "pii"}))
    with pytest.raises(Invalid):
        remember(store, a_child("2", "1"))


def test_nothing_is_derived_from_what_was_retracted(store: Database) -> None:
    remember(store, a_memory("1", **ALPHA))
    done(store, retract, granted(a_memory("1")))
    with pytest.raises(Conflict):
        remember(store, a_child("2", "1"))


def test_what_came_over_a_suppressed_connection_is_a_conflict(store: Database) -> None:
    store.write(Unit(lambda tx: tx.run(SUPPRESS, ORG, "net1", NOON))).result()
    for row in (stamped("1"), a_memory("2", provenance=(Source("net1", None), Source("net2", None)))):
        with pytest.raises(Conflict):
            remember(store, row)
    remember(store, stamped("3", "net2"), replace(stamped("4"), org_id="elsewhere"))
    assert list(kept(store)) == ["3", "4"]


def test_a_suppression_counts_for_what_is_written_in_the_same_commit(store: Database) -> None:
    row = stamped("1")
    with busy_writer(store):
        store.write(Unit(lambda tx: tx.run(SUPPRESS, ORG, "net1", NOON)))
        written = store.write(Unit(lambda tx: add(tx, granted(row), row)))
    with pytest.raises(Conflict):
        written.result()


def test_a_unit_that_fails_leaves_nothing(store: Database) -> None:
    old = a_memory("1", **ALPHA)
    remember(store, old)
    before = counts(store)
    row = replace(stamped("2"), derived_from=("1",), **ALPHA)

    def fail(tx: Any) -> None:
        add(tx, granted(row, REMOTE), row, supersedes=old, sources=[old], vectors=[a_vector(1.0)])
        raise LookupError

    with pytest.raises(LookupError):
        store.write(Unit(fail)).result()
    assert (counts(store), kept(store)) == (before, {"1": old})
    assert len(told(store, "memory.added")) == 1


def test_a_row_that_is_there_already_fails_alone(store: Database) -> None:
    with busy_writer(store):
        futures = [store.write(Unit(lambda tx, row=row: add(tx, granted(row), row))) for row in map(a_memory, "1121")]
    assert [future.exception() is None for future in futures] == [True, False, True, False]
    assert list(kept(store)) == ["1", "2"]


# -- a connection's day


def test_a_connection_writes_as_many_a_day_as_it_may(store: Database) -> None:
    late = NOON.replace(hour=23, minute=59, second=30, microsecond=1)
    for name in "12":
        row = stamped(name)
        done(store, add, granted(row, REMOTE, late), row, max_per_day=2)
    with pytest.raises(TooManyRequests) as refused:
        done(store, add, granted(stamped("3"), REMOTE, late), stamped("3"), max_per_day=2)
    assert refused.value.retry_after == 30
    done(store, add, granted(stamped("4"), REMOTE, late + timedelta(seconds=30)), stamped("4"), max_per_day=2)
    assert list(kept(store)) == ["1", "2", "4"]


def test_what_was_deleted_since_counts_and_so_does_what_was_written_without_a_limit(store: Database) -> None:
    done(store, add, granted(stamped("1"), REMOTE), stamped("1"))
    done(store, delete, granted(stamped("1")))
    with pytest.raises(TooManyRequests):
        done(store, add, granted(stamped("2"), REMOTE), stamped("2"), max_per_day=1)


def test_writes_of_one_commit_are_counted_one_by_one(store: Database) -> None:
    rows = [stamped(name) for name in "123"]
    with busy_writer(store):
        futures = [store.write(Unit(lambda tx, row=row: add(tx, granted(row, REMOTE), row, max_per_day=2))) for row in rows]
    assert [future.exception() is None for future in futures] == [True, True, False]


def test_what_an_owner_imports_is_not_counted(store: Database) -> None:
    remember(store, stamped("1"))
    assert counts(store)["memory_written"] == 0


# -- retag


def test_new_labels_are_kept_and_told_before_and_after(store: Database) -> None:
    row = a_memory("1", **ALPHA)
    remember(store, row)
    before, after = done(store, retag, granted(row), Labels("beta", ("c",), "pii"))
    assert (before, after) == (row, replace(row, project_id="beta", tags=("c",), classification="pii"))
    assert kept(store) == {"1": after}
    assert told(store, "memory.retagged") == [
        {
            "before": {"tagged": True, "tags": 2, "classification": "internal"},
            "after": {"tagged": True, "tags": 1, "classification": "pii"},
            "project_changed": True,
            "rows": 1,
        }
    ]


def test_a_decision_about_other_labels_is_taken_again(store: Database) -> None:
    row = a_memory("1", **ALPHA)
    remember(store, row)
    done(store, retag, granted(row), Labels(None, (), "pii"))
    with pytest.raises(Stale):
        done(store, retag, granted(row), Labels("alpha", (), "internal"))


def test_all_that_was_derived_follows_in_any_shape(store: Database) -> None:
    remember(store, a_memory("0", **ALPHA), a_memory("1", **ALPHA))
    remember(store, a_child("2", "1"), a_child("3", "0", "1"), a_child("4", "2", "3"), a_child("5", "0"))
    done(store, retag, granted(kept(store)["1"]), Labels(None, ("b",), "confidential"))
    shown = {row.id: (row.project_id, row.tags, row.classification) for row in kept(store).values()}
    as_it_was, narrow = ("alpha", ("a", "b"), "internal"), (None, ("b",), "confidential")
    assert shown == {"0": as_it_was, "1": narrow, "2": narrow, "3": narrow, "4": narrow, "5": as_it_was}


def test_nothing_is_widened_with_its_source(store: Database) -> None:
    remember(store, a_memory("1", **ALPHA), a_child("2", "1", classification="pii", tags=("a",)))
    done(store, retag, granted(kept(store)["1"]), Labels("alpha", ("a", "b", "c"), "public"))
    assert (kept(store)["2"].tags, kept(store)["2"].classification) == (("a",), "pii")


def test_what_was_derived_goes_to_the_project_that_its_source_goes_to(store: Database) -> None:
    remember(store, a_memory("1", **ALPHA), a_child("2", "1"))
    done(store, retag, granted(kept(store)["1"]), Labels("beta", ("a", "b"), "internal"))
    assert [row.project_id for row in kept(store).values()] == ["beta", "beta"]


def test_a_derived_row_is_not_made_wider_than_its_sources(store: Database) -> None:
    remember(store, a_memory("1", **ALPHA), a_child("2", "1", tags=()))
    with pytest.raises(Invalid) as refused:
        done(store, retag, granted(kept(store)["2"]), Labels("alpha", ("c",), "internal"))
    assert refused.value.field == "tags"
    done(store, retag, granted(kept(store)["2"]), Labels("alpha", ("a",), "internal"))
    assert kept(store)["2"].tags == ("a",)


# -- retract


def test_a_row_is_retracted_once_with_all_that_was_derived(store: Database) -> None:
    remember(store, a_memory("1", **ALPHA), a_child("2", "1"), a_child("3", "2"), a_memory("4"))
    later = NOON + timedelta(hours=1)
    done(store, retract, granted(a_memory("2"), now=NOON))
    assert done(store, retract, granted(a_memory("1"), now=later)).retracted_at == later
    assert [row.retracted_at for row in kept(store).values()] == [later, NOON, NOON, None]
    assert done(store, retract, granted(a_memory("2"), now=later)).retracted_at == NOON
    assert told(store, "memory.retracted") == [{"rows": 2}, {"rows": 1}]


# -- delete


def test_after_a_deletion_nothing_names_it_or_holds_its_text(store: Database) -> None:
    gone = stamped("id-that-goes", text="canary one", **ALPHA)
    child = replace(gone, id="id-derived", text="canary two", derived_from=(gone.id,))
    remember(store, gone, child, a_memory("stays", "canary stays"), vectors=[a_vector(1.0)])
    bodies = {name: json.dumps([{"uid": {"type": "Memory", "id": name}}], separators=(",", ":")) for name in (child.id, "stays")}
    store.write(record(a_row(slices=tuple(bodies), slice_bodies=bodies))).result()
    assert naming(store, child.id) == {
        "memories": 1,
        "memory_links": 1,
        "memory_provenance": 1,
        "memory_tokens": 2,
        "memory_vectors": 1,
        "slices": 1,
    }
    done(store, delete, granted(gone))
    assert (naming(store, gone.id), naming(store, child.id)) == ({}, {})
    assert naming(store, "canary") == {"memories": 1, "memory_tokens": 1}
    assert values(store, "SELECT hash FROM slices") == ["stays"]
    assert told(store, "memory.deleted") == [{"rows": 2}]


def test_what_a_deleted_row_superseded_stays_superseded(store: Database) -> None:
    remember(store, a_memory("1"))
    remember(store, a_memory("2"), supersedes=a_memory("1"))
    done(store, delete, granted(a_memory("2")))
    assert kept(store) == {"1": a_memory("1", superseded_by="2")}


@pytest.mark.parametrize("change", [retract, delete, lambda tx, grant: retag(tx, grant, Labels(None, (), "pii"))])
def test_what_is_gone_is_not_found(store: Database, change: Any) -> None:
    with pytest.raises(NotFound):
        done(store, change, granted(a_memory("1")))


# -- index


def test_vectors_are_replaced_and_never_made_for_what_is_gone(store: Database) -> None:
    remember(
        store, a_memory("1"), a_memory("2", agent_id="other"), vectors=[a_vector(1.0, model="old"), a_vector(2.0, model="old")]
    )
    fresh = {name: [a_vector(3.0, model="new")] for name in "123"}
    assert done(store, index, granted(an_agent()), fresh) == 1
    found = store.read_sync(lambda rows: rows.all("SELECT memory_id, piece, model FROM memory_vectors ORDER BY 1, 2"))
    assert found == [("1", 0, "new"), ("2", 0, "old"), ("2", 1, "old")]
