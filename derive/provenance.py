"""Provenance: the entries that say why a fact is believed, and what of them an agent sees."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from derive.events import Observation, Tombstone, rfc3339

Entry = dict[str, object]


def entry(observation: Observation) -> Entry:
    """Names the event of a decision."""
    return {
        "type": "event",
        "event_id": observation.event_id,
        "event_type": observation.event_type,
        "decision": observation.decision,
        "at": rfc3339(observation.at),
        "source": observation.source,
    }


def tombstone_entry(tombstone: Tombstone) -> Entry:
    """Says that there was a decision, when its event is gone."""
    return {
        "type": "tombstone",
        "event_type": tombstone.event_type,
        "decision": tombstone.decision,
        "at": rfc3339(tombstone.at),
    }


def human_entry(user_id: str, at: datetime) -> Entry:
    """Says who corrected the fact, and when."""
    return {"type": "human", "user_id": user_id, "at": rfc3339(at)}


def redact_for_agent(entries: Iterable[Mapping[str, object]], agent_id: str) -> list[Entry]:
    """Gives the entries as that agent sees them, in their order; raises ValueError for an unknown type.

    The source is `gateway`, `agent:<its own id>`, `agent:other` or `human`; only the first two keep their
    `event_id`; no person is named. A field that is not listed here does not pass.
    """
    return [_redacted(each, f"agent:{agent_id}") for each in entries]


def _redacted(entry: Mapping[str, object], own: str) -> Entry:
    match entry["type"]:
        case "event":
            source = _seen_source(str(entry["source"]), own)
            names = ("event_id",) if source in ("gateway", own) else ()
            return _only(entry, "type", *names, "event_type", "decision", "at") | {"source": source}
        case "tombstone":
            return _only(entry, "type", "event_type", "decision", "at")
        case "human":
            return _only(entry, "type", "at")
        case other:
            raise ValueError(f"`{other}` is not a type of provenance")


def _seen_source(source: str, own: str) -> str:
    if source in ("gateway", own):
        return source
    return "agent:other" if source.startswith("agent:") else "human"


def _only(entry: Mapping[str, object], *fields: str) -> Entry:
    return {field: entry[field] for field in fields}
