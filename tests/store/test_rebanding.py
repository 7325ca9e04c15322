"""A changed table of bands: everything is derived anew by its own amounts, and a belief keeps its basis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from derive import bands
from gateway.store.db import Database
from gateway.store.sweep import Swept
from tests.store.test_derivation import DAY, NOON, ORG, PEER, change, derive, rows, sweep

EVENT = "INSERT INTO events VALUES ($1, $2, $3, 'approval', $4, 'hash', $5, 'agent:a', $6, $7, true)"
SUPPRESS = "INSERT INTO suppressions VALUES ($1, $2, $3, 'u')"
FACTS = "SELECT fact_key, live, disputed, edited_by_human, bands_version, fact_value FROM facts ORDER BY fact_key"
LATE = NOON + timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    made = Database.create(tmp_path / "data")
    yield made
    made.close()


@pytest.fixture
def other_table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Use the table in which 0-10 is split at 5, and 10-50 and 50-100 are one."""

    def use() -> None:
        edges = tuple(map(Decimal, (0, 5, 10, 100, 500)))
        ranges = (*(f"{low}-{high}" for low, high in pairwise(edges)), "500+")
        monkeypatch.setattr(bands, "_EDGES", edges)
        monkeypatch.setattr(bands, "_RANGES", ranges)
        monkeypatch.setattr(bands, "BANDS", (*ranges, "none", "unknown"))
        monkeypatch.setattr(bands, "BANDS_VERSION", 2)

    return use


def key(band: str, recipient: str = "a@b.co") -> str:
    return f"approval_tendency:refund.create|{band}|new|{recipient}"


def event(event_id: str, amount: str, band: str, decision: str = "approved", at: Any = NOON) -> tuple[Any, ...]:
    content = {"action": "refund.create", "decision": decision, "payload": {"amount_usd": amount, "recipient": "a@b.co"}}
    return (EVENT, PEER, event_id, ORG, json.dumps(content), at, key(band), decision)


def facts(store: Database) -> list[tuple[Any, ...]]:
    """Key, live, disputed, edited, version and the number of observations of each fact."""
    return [(*row[:5], json.loads(row[5]).get("observations")) for row in rows(store, FACTS)]


def keys(store: Database, table: str, order: str = "id") -> list[str]:
    return [row[0] for row in rows(store, f"SELECT fact_key FROM {table} ORDER BY {order}")]


def test_each_decision_goes_where_its_own_amount_belongs(store: Database, other_table: Any) -> None:
    change(store, *[event(f"e{n}", amount, "0-10") for n, amount in enumerate(("1", "2", "4.9999", "5", "6", "9"))])
    derive(store, key=key("0-10"))
    other_table()
    assert sweep(store, only_owed=True) == Swept(peers=1, buckets=3, facts_made=2, facts_retired=1)
    assert keys(store, "events") == [key("0-5")] * 3 + [key("5-10")] * 3
    assert [row for row in facts(store) if row[1]] == [
        (key("0-5"), True, False, False, 2, 3),
        (key("5-10"), True, False, False, 2, 3),
    ]
    assert sweep(store, only_owed=True) == Swept()


def test_a_fact_whose_band_lies_in_one_of_todays_moves_with_its_tombstones_and_its_dispute(
    store: Database, other_table: Any
) -> None:
    change(store, *[event(f"e{n}", "60", "50-100") for n in range(3)])
    derive(store, key=key("50-100"))
    change(store, ("UPDATE facts SET disputed = true",))
    sweep(store, NOON + 90 * DAY)
    change(store, event("e3", "20", "10-50", at=NOON + 90 * DAY))
    other_table()
    sweep(store, NOON + 90 * DAY)
    assert facts(store) == [(key("10-100"), True, True, False, 2, 4)]
    assert (keys(store, "provenance"), keys(store, "events")) == ([key("10-100")] * 3, [key("10-100")])


def test_two_facts_that_become_one_are_derived_from_the_history_of_both(store: Database, other_table: Any) -> None:
    change(store, *[event(f"a{n}", "20", "10-50") for n in range(3)], *[event(f"b{n}", "60", "50-100") for n in range(3)])
    for band in ("10-50", "50-100"):
        derive(store, key=key(band))
    other_table()
    sweep(store)
    assert [row for row in facts(store) if row[1]] == [(key("10-100"), True, False, False, 2, 6)]


def test_tombstones_of_a_band_that_was_split_keep_their_belief_under_its_old_key(store: Database, other_table: Any) -> None:
    change(store, *[event(f"e{n}", "1", "0-10") for n in range(3)])
    derive(store, key=key("0-10"))
    sweep(store, NOON + 90 * DAY)
    other_table()
    sweep(store, NOON + 90 * DAY)
    assert facts(store) == [(key("0-10"), True, False, False, 2, 3)]
    assert keys(store, "provenance") == [key("0-10")] * 3


def test_what_has_expired_leaves_its_tombstones_under_the_fact_it_spoke_for(store: Database, other_table: Any) -> None:
    change(store, *[event(f"e{n}", "60", "50-100") for n in range(3)])
    derive(store, key=key("50-100"))
    other_table()
    assert sweep(store, NOON + 90 * DAY) == Swept(peers=1, buckets=1, facts_changed=1, events_expired=3, tombstones=3)
    assert facts(store) == [(key("10-100"), True, False, False, 2, 3)]


def test_a_correction_stays_as_it_was_said(store: Database, other_table: Any) -> None:
    change(store, *[event(f"e{n}", "60", "50-100") for n in range(3)])
    derive(store, key=key("50-100"))
    change(store, ("""UPDATE facts SET edited_by_human = true, fact_value = '{"decision":"rejected"}', confidence = NULL""",))
    corrected = rows(store, "SELECT * FROM facts")
    other_table()
    sweep(store)
    assert rows(store, f"SELECT * FROM facts WHERE fact_key = '{key('50-100')}'") == corrected
    assert [row for row in facts(store) if not row[3]] == [(key("10-100"), True, False, False, 2, 3)]


def test_a_suppression_covers_every_band_that_shares_amounts_with_its_own(store: Database, other_table: Any) -> None:
    change(store, *[(SUPPRESS, PEER, key(band), NOON) for band in ("0-10", "50-100")])
    change(store, *[event(f"e{n}", "20", "10-50") for n in range(3)])
    derive(store, key=key("10-50"))
    other_table()
    sweep(store, only_owed=True)
    assert keys(store, "suppressions", "fact_key") == [key("0-5"), key("10-100"), key("5-10")]
    assert [row for row in facts(store) if row[1]] == []


def test_an_owed_bucket_of_an_earlier_table_is_paid_and_its_events_expire(store: Database, other_table: Any) -> None:
    owed = ("INSERT INTO pending_buckets VALUES ($1, $2, $3)", PEER, key("0-10"), NOON)
    change(store, *[event(f"e{n}", "1", "0-10") for n in range(3)], owed)
    other_table()
    sweep(store, NOON + 95 * DAY, only_owed=True)
    assert (rows(store, "SELECT * FROM pending_buckets"), keys(store, "events"), facts(store)) == (
        [],
        [],
        [(key("0-5"), True, False, False, 2, 3)],
    )


def test_with_one_table_nothing_is_moved(store: Database) -> None:
    change(store, *[event(f"e{n}", "1", "0-10") for n in range(3)], event("odd", "700", "0-10"))
    derive(store, key=key("0-10"))
    before = rows(store, "SELECT * FROM events")
    assert sweep(store, LATE) == Swept(peers=1, buckets=1)
    assert rows(store, "SELECT * FROM events") == before


def test_a_key_that_cannot_be_read_stays_where_it_is(store: Database, other_table: Any) -> None:
    change(store, (SUPPRESS, PEER, "no bucket", NOON), event("e0", "1", "0-10x"))
    other_table()
    sweep(store)
    assert (keys(store, "suppressions", "fact_key"), keys(store, "events")) == (["no bucket"], [key("0-10x")])
