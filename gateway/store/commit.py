"""Commit: the units of one transaction, and whether it happened when the instance died in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.store.inbox import Work
from gateway.store.log import Head


@dataclass(frozen=True, slots=True)
class Refused:
    """What a unit raised before it had changed anything: it is as if it had not been, and the others go on."""

    error: Exception


@dataclass(slots=True)
class Commit:
    """A commit and what is told of it. When the instance dies in it, the log of the next instance says whether it happened."""

    units: Sequence[Work]
    results: Sequence[Any]
    start: Head
    end: Head
    returned: bool = False

    def kept(self, head: Head) -> bool:
        """Say whether it is in the log that ends with `head`; of one without rows only COMMIT itself can tell."""
        return self.returned if self.start == self.end else head == self.end

    def acknowledge(self) -> None:
        """Tell each unit's future its result."""
        for unit, result in zip(self.units, self.results, strict=True):
            if isinstance(result, Refused):
                unit.future.set_exception(result.error)
            else:
                unit.future.set_result(result)
