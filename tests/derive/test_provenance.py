"""A belief keeps its basis, and shows an agent no more than its own part."""

from datetime import UTC, datetime

import pytest

from derive.events import Observation, Tombstone
from derive.provenance import Entry, entry, human_entry, redact_for_agent, tombstone_entry

AT = datetime(2026, 3, 29, 12, tzinfo=UTC)
Z = "2026-03-29T12:00:00Z"
BASIS: Entry = {"event_type": "approval", "decision": "approved", "at": Z}


def an_entry(source: str) -> Entry:
    return entry(Observation("e1", "approval", "approved", AT, source))


def test_an_event_is_named_with_its_source() -> None:
    assert an_entry("gateway") == {"type": "event", "event_id": "e1", **BASIS, "source": "gateway"}


def test_a_tombstone_keeps_the_kind_the_decision_and_the_time_only() -> None:
    assert tombstone_entry(Tombstone("approval", "approved", AT)) == {"type": "tombstone", **BASIS}


def test_a_correction_names_the_person() -> None:
    assert human_entry("u1", AT) == {"type": "human", "user_id": "u1", "at": Z}


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("gateway", {"type": "event", "event_id": "e1", **BASIS, "source": "gateway"}),
        ("agent:a1", {"type": "event", "event_id": "e1", **BASIS, "source": "agent:a1"}),
        ("agent:a12", {"type": "event", **BASIS, "source": "agent:other"}),
        ("user:u1", {"type": "event", **BASIS, "source": "human"}),
        ("user:a1", {"type": "event", **BASIS, "source": "human"}),
    ],
)
def test_an_agent_sees_the_gateway_itself_and_others_without_a_name(source: str, seen: Entry) -> None:
    assert redact_for_agent([an_entry(source)], "a1") == [seen]


def test_an_agent_sees_that_a_person_corrected_but_not_who() -> None:
    entries = [tombstone_entry(Tombstone("approval", "approved", AT)), human_entry("u1", AT)]
    assert redact_for_agent(entries, "a1") == [{"type": "tombstone", **BASIS}, {"type": "human", "at": Z}]


def test_a_field_that_is_not_listed_does_not_reach_an_agent() -> None:
    assert redact_for_agent([an_entry("gateway") | {"note": "secret"}], "a1") == [an_entry("gateway")]


def test_an_entry_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(ValueError, match="`rumour` is not a type of provenance"):
        redact_for_agent([{"type": "rumour"}], "a1")
