"""Faults of the store itself: it cannot be opened, it has died, or it is full to the brim."""

from __future__ import annotations


class StoreRefused(Exception):
    """The store cannot be opened, or an order to it cannot be carried out; the sentence says what to do."""


class StoreHeld(StoreRefused):
    """Another process holds the data directory, most likely a gateway that serves it."""


class StoreBehind(StoreRefused):
    """The log lacks what was acknowledged: `missing` records, or 0 when a record is there but is another one."""

    def __init__(self, sentence: str, *, missing: int) -> None:
        super().__init__(sentence)
        self.missing = missing


class StoreFailed(Exception):
    """The database instance has died, or the log cannot be written: what was under way may or may not have happened."""


class StoreBusy(Exception):
    """A queue is full or the log is behind: nothing has happened, and the caller may try again."""
