"""Forgetting: everything of one origin, all that came of it, and nothing else; and it does not come back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import Conflict
from gateway.model.memory import DEPTHS, LAYERS, Depth, Source
from gateway.store.db import Database
from gateway.store.erase import rewrite
from gateway.store.erasure import ERASED
from gateway.store.forgetting import PARTS, Receipt, Selection, forget, preview
from gateway.store.lineage import DELETES, with_derived
from gateway.store.memories import add, delete
from gateway.store.writer import Unit
from tests.store.memory_samples import (
    DID,
    NOON,
    a_memory,
    a_vector,
    an_agent,
    audits,
    connected,
    counts,
    done,
    granted,
    kept,
    naming,
    remember,
    stamped,
    tables,
    values,
)

NOTHING = dict.fromkeys((*LAYERS, "memory_provenance", "memory_links", "memory_tokens", "memory_vectors", "memory_written"), 0)
OVER = Selection("connection_id", "net1")
#: What holds no memory, nothing of a peer's person and nothing of what a remote agent said, and why it stays.
STAYS = {
    "schema_version": "the file's own",
    "meta": "the installation's own",
    "bundles": "policies",
    "orgs": "members and their organisation are the organisation's own",
    "humans": "as above",
    "agents": "as above",
    "credentials": "as above; hashes only",
    "revoked_tokens": "ids of tokens, until they would have ended",
    "platform_apps": "as above",
    "platform_templates": "as above",
    "platform_connections": "who is connected, not what is known of them",
    "claims": "hashes, for ten minutes",
    "approvals": "the organisation's record of what was asked and decided",
    "log": "ids only, in a chain",
    "slices": "taken out by the id of what they name",
    "erased": "ids, so that nothing about them is kept again",
    "remote_connections": "who is connected, not what they said",
    "memory_grants": "what a person allowed",
    "org_policies": "what an organisation decides by",
    "org_policy_versions": "as above",
    "memory_suppressions": "ids, so that nothing of them is stored again",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = Database.create(tmp_path / "data")
    yield made
    made.close()


def forgotten(store: Database, selection: Selection, depth: Depth = "delete", agent: str = "agent") -> Receipt:
    return done(store, forget, granted(an_agent(agent)), selection, depth)


def previewed(store: Database, selection: Selection, depth: Depth = "delete") -> Receipt:
    return store.read_sync(lambda rows: preview(rows, granted(an_agent()), selection, depth), snapshot=True)


def shown(store: Database) -> list[str]:
    """The ids that are not retracted."""
    return [row.id for row in kept(store).values() if row.retracted_at is None]


def a_world(store: Database) -> None:
    """A row a layer from each of two connections, one of the agent's own, and what was derived from them."""
    connected(store, "net1")
    connected(store, "net2", did="did:x:2")
    for number, layer in enumerate(LAYERS):
        for connection, did in (("net1", DID), ("net2", "did:x:2")):
            row = stamped(f"{connection}-{number}", connection, did, text="one two", layer=layer, project_id="alpha")
            remember(store, row, vectors=[a_vector(1.0), a_vector(1.0)])
    remember(store, a_memory("own", project_id="alpha"))
    both = (Source("net1", DID), Source("net2", "did:x:2"))
    remember(store, a_memory("mixed", derived_from=("net1-0", "net2-0"), provenance=both, project_id="alpha"))
    remember(store, a_memory("summary", "three", derived_from=("mixed", "own"), provenance=both))


def test_a_connection_is_forgotten_in_every_layer_with_all_that_was_derived(store: Database) -> None:
    a_world(store)
    receipt = forgotten(store, OVER)
    expected = {
        **{"fact": 3, "timeline": 1, "session": 1, "chunk": 1, "memory_provenance": 8, "memory_links": 4},
        **{"memory_tokens": 12, "memory_vectors": 8, "memory_written": 0},
    }
    assert receipt == Receipt(False, "delete", ("net1",), expected, 6, ("net1",), NOON)
    assert list(kept(store)) == ["net2-0", "net2-1", "net2-2", "net2-3", "own"]
    # The connection itself, and that nothing of it is stored again.
    assert naming(store, "net1") == {"memory_suppressions": 1, "remote_connections": 1}


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_preview_says_the_same_and_changes_nothing(store: Database, depth: Depth) -> None:
    a_world(store)
    before = (counts(store), kept(store), values(store, "SELECT count(*) FROM log"))
    receipt = previewed(store, OVER, depth)
    assert (counts(store), kept(store), values(store, "SELECT count(*) FROM log")) == before
    assert receipt == replace(forgotten(store, OVER, depth), dry_run=True, suppressed=())


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_second_time_finds_nothing(store: Database, depth: Depth) -> None:
    a_world(store)
    forgotten(store, OVER, depth)
    was: Depth = "hide" if depth == "hide" else "delete"
    assert forgotten(store, OVER, depth) == Receipt(False, was, ("net1",), NOTHING, 0, ("net1",), NOON)


def test_what_is_hidden_is_retracted_and_can_be_deleted_later(store: Database) -> None:
    a_world(store)
    hidden = forgotten(store, OVER, "hide")
    assert (hidden.total, hidden.counts["memory_tokens"]) == (6, 0)
    assert shown(store) == ["net2-0", "net2-1", "net2-2", "net2-3", "own"]
    assert counts(store)["memories"] == 11
    assert forgotten(store, OVER).total == 6


def test_a_remote_agent_is_forgotten_with_what_it_said_without_a_connection(store: Database) -> None:
    a_world(store)
    remember(store, a_memory("heard", source_did=DID, provenance=(Source(None, DID),)))
    receipt = forgotten(store, Selection("source_did", DID))
    assert (receipt.total, receipt.connections, receipt.suppressed) == (7, ("net1",), ("net1",))
    assert naming(store, DID) == {"remote_connections": 1}


def test_a_project_is_forgotten_with_what_became_untagged(store: Database) -> None:
    a_world(store)
    remember(store, a_memory("beta", project_id="beta"), a_memory("look-alike", project_id="alpha2"))
    receipt = forgotten(store, Selection("project_id", "alpha"))
    assert (receipt.total, receipt.connections, receipt.suppressed) == (11, (), ())
    assert list(kept(store)) == ["beta", "look-alike"]


def test_one_row_is_forgotten_with_what_was_derived(store: Database) -> None:
    a_world(store)
    assert forgotten(store, Selection("id", "own")).total == 2
    assert "summary" not in kept(store)


@pytest.mark.parametrize(
    "selection", [Selection("id", "1"), Selection("project_id", "alpha"), Selection("source_did", DID), OVER]
)
def test_another_agents_memory_stays(store: Database, selection: Selection) -> None:
    connected(store, "net1", agent="other")
    remember(store, stamped("1", agent_id="other", project_id="alpha"))
    assert forgotten(store, selection) == Receipt(False, "delete", (), NOTHING, 0, (), NOON)
    assert list(kept(store)) == ["1"]


@pytest.mark.parametrize("named", ["net1", "net2", "net3"])
def test_connections_that_replaced_one_another_are_followed_both_ways(store: Database, named: str) -> None:
    for older, connection in ((None, "net1"), ("net1", "net2"), ("net2", "net3"), (None, "net4")):
        connected(store, connection, replaces=older)
        remember(store, stamped(f"of {connection}", connection))
    receipt = forgotten(store, Selection("connection_id", named))
    assert (receipt.connections, receipt.suppressed) == (("net1", "net2", "net3"), ("net1", "net2", "net3"))
    assert list(kept(store)) == ["of net4"]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("selection", [OVER, Selection("source_did", DID)])
def test_nothing_of_a_forgotten_connection_is_stored_again(store: Database, selection: Selection, depth: Depth) -> None:
    connected(store, "net1")
    forgotten(store, selection, depth)
    assert values(store, "SELECT connection_id FROM memory_suppressions") == ["net1"]
    with pytest.raises(Conflict):
        remember(store, stamped("1"))
    assert kept(store) == {}


def test_forgetting_a_project_or_a_row_suppresses_nothing(store: Database) -> None:
    a_world(store)
    forgotten(store, Selection("project_id", "alpha"))
    forgotten(store, Selection("id", "own"))
    assert values(store, "SELECT connection_id FROM memory_suppressions") == []
    remember(store, stamped("again"))


def test_the_count_of_a_day_goes_with_its_connection(store: Database) -> None:
    connected(store, "net1")
    row = stamped("1")
    remote = granted(row, replace(granted(row).caller, type="Connection", id="net1"))
    done(store, add, remote, row)
    assert forgotten(store, OVER, "hide").counts["memory_written"] == 0
    assert forgotten(store, OVER).counts["memory_written"] == 1
    assert naming(store, "net1") == {"memory_suppressions": 1, "remote_connections": 1}


def test_the_log_says_how_much_and_not_what(store: Database) -> None:
    a_world(store)
    forgotten(store, Selection("project_id", "alpha"))
    forgotten(store, Selection("source_did", DID))
    told = [json.loads(text) for text in audits(store, "memory.forgotten")]
    assert [(each["by"], each["depth"], each["connections"]) for each in told] == [
        ("project_id", "delete", []),
        ("source_did", "delete", ["net1"]),
    ]
    assert told[0]["counts"]["fact"] == 5
    assert values(store, "SELECT count(*) FROM log WHERE strpos(log::VARCHAR, 'alpha') + strpos(log::VARCHAR, $1) > 0", DID) == [
        0
    ]


def test_a_unit_that_fails_leaves_everything(store: Database) -> None:
    a_world(store)
    before = (counts(store), kept(store))

    def fail(tx: Any) -> None:
        forget(tx, granted(an_agent()), OVER, "delete")
        raise LookupError

    with pytest.raises(LookupError):
        store.write(Unit(fail, solo=True)).result()
    assert (counts(store), kept(store)) == before


def test_after_an_erasure_the_bytes_are_gone(store: Database) -> None:
    connected(store, "net1")
    text = "a sentence that has to go"
    remember(store, *(stamped(str(number), text=f"{text} {number}") for number in range(20)), a_memory("stays", "what stays"))
    store.checkpoint().result()
    assert forgotten(store, OVER, "erase").total == 20
    rewrite(store)
    assert text.encode() not in store.files.database.read_bytes()
    assert list(kept(store)) == ["stays"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_whatever_the_shape_what_is_left_never_came_from_what_is_gone(store: Database, data: st.DataObject) -> None:
    for row_id in kept(store):
        if row_id in kept(store):
            done(store, delete, granted(a_memory(row_id)))
    parents: dict[str, tuple[str, ...]] = {}
    for number in range(data.draw(st.integers(1, 8))):
        drawn = data.draw(st.sets(st.sampled_from(sorted(parents)), max_size=3)) if parents else set()
        parents[str(number)] = tuple(sorted(drawn))
        remember(store, a_memory(str(number), derived_from=parents[str(number)]))
    first = data.draw(st.sampled_from(sorted(parents)))
    gone = {first}
    for child, sources in parents.items():  # in the order in which they were written
        if gone & set(sources):
            gone.add(child)
    assert store.read_sync(lambda rows: with_derived(rows, [first])) == sorted(gone)
    assert forgotten(store, Selection("id", first)).total == len(gone)
    assert list(kept(store)) == sorted(parents.keys() - gone)


def test_every_table_is_emptied_by_forgetting_or_by_a_persons_erasure_or_has_a_reason_to_stay(store: Database) -> None:
    assert {*DELETES, *ERASED, "memory_written"} & STAYS.keys() == set()
    assert {*DELETES, *ERASED, *STAYS, "memory_written"} == tables(store)


def test_every_table_of_parts_is_counted_and_deleted_from(store: Database) -> None:
    naming_memories = {
        name for (name,) in store.read_sync(lambda rows: rows.all(
            "SELECT DISTINCT table_name FROM information_schema.columns WHERE column_name = 'memory_id'"
        ))
    }  # fmt: skip
    assert naming_memories == set(PARTS) == DELETES.keys() - {"memories"}
