"""The operator's session: what whoever holds the data directory decides and does is recorded like anybody's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.model.caller import OPERATOR
from gateway.model.evidence import LogRow
from gateway.model.grant import Session
from gateway.model.ids import new_id
from gateway.operations.call import Services
from gateway.store.writer import record


@asynccontextmanager
async def as_operator(services: Services) -> AsyncIterator[Session]:
    """A session of the operator; whichever way it ends, what was decided in it is in the log."""
    session = Session(OPERATOR, new_id(), services.clock())
    try:
        yield session
    finally:
        await put_down(services, session)


async def put_down(services: Services, session: Session, *audits: LogRow) -> None:
    """Write what was decided so far, and what was done, into the log."""
    rows = (*session.rows, *audits)
    if rows:
        await services.database.awrite(record(*rows))
        session.written(rows)
