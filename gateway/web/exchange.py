"""An exchange: one request and its answer, as what is counted and logged of it."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.model.grant import Session
from gateway.operations.traffic import NO_OPERATION


@dataclass(slots=True)
class Exchange:
    """Which request it is, what it asks for, and its session, once known.

    `queued` is when it began to wait for its turn and `began` when it had it, on a clock that only runs forward.
    """

    request_id: str
    queued: float
    began: float
    operation: str = NO_OPERATION
    session: Session | None = None

    @property
    def decisions(self) -> list[str]:
        """The ids of its decisions in the log."""
        return self.session.recorded if self.session is not None else []
