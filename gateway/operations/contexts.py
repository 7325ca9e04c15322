"""Rendered contexts, kept while nothing they were made from has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from json import dumps

from derive.context import Cut
from gateway.recent import Recent


@dataclass(frozen=True, slots=True)
class Served:
    """A rendered context. `available` are the facts that a budget without end would show, `served` those that are shown.

    `shape` is what is answered of it, and `json` is that as it is written: to write it is a good part of what an answer costs.
    """

    text: str
    characters: int
    budget: int
    available: int
    served: int
    cut: tuple[Cut, ...]
    shape: Mapping[str, object] = field(init=False)
    json: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = {
            "context": self.text,
            "characters": self.characters,
            "budget": self.budget,
            "facts_available": self.available,
        }
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "json", dumps(shape, ensure_ascii=False, separators=(",", ":")))


class ContextCache:
    """Rendered contexts by (peer, budget), and for each peer when the first of its events expires.

    An entry stands while the version of the peer's facts and the day (UTC) stand. Only the event loop uses it. Decisions
    and their records are never kept.
    """

    TEXTS = 4_096
    PEERS = 65_536

    def __init__(self) -> None:
        self._texts: Recent[tuple[str, int], tuple[int, date, Served]] = Recent(self.TEXTS)
        self._expiries: Recent[str, tuple[int, datetime | None]] = Recent(self.PEERS)

    def text(self, peer_id: str, budget: int, version: int, day: date) -> Served | None:
        kept = self._texts.get((peer_id, budget))
        return kept[2] if kept is not None and kept[:2] == (version, day) else None

    def keep_text(self, peer_id: str, version: int, day: date, served: Served) -> None:
        self._texts.put((peer_id, served.budget), (version, day, served))

    def settled(self, peer_id: str, version: int, now: datetime) -> bool:
        """Whether it is known that none of the peer's events has expired."""
        version_then, expiry = self._expiries.get(peer_id) or (None, None)
        return version_then == version and (expiry is None or now < expiry)

    def keep_expiry(self, peer_id: str, version: int, expiry: datetime | None) -> None:
        self._expiries.put(peer_id, (version, expiry))
