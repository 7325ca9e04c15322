"""Replay: the decision log decided again under other policies, before they decide anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from gateway import limits
from gateway.model.grant import Grant
from gateway.model.recorded import RecordedPage
from gateway.model.records import Org
from gateway.operations.call import Call, Services
from gateway.operations.candidate import try_over
from gateway.operations.operation import Operation, Reply
from gateway.operations.operator import as_operator, put_down
from gateway.operations.policy_shape import cedar_text
from gateway.operations.replays import Turn
from gateway.operations.wire import policies as wire
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.kept import made_again
from gateway.policy.redecided import Redecided, Redeciding
from gateway.policy.replay import Replay, Report
from gateway.store import replaying
from gateway.store.entities import Installation, LogEntry

#: Rows that are read at once: while they are decided, other requests get their turn between the calls to Cedar.
PAGE = 1_000
Steps = Callable[[int], None]
#: Does some work beside the event loop, and says whether there is to be more of it.
Run = Callable[[Callable[[], None]], Awaitable[bool]]


def _silent(_: int) -> None:
    """Nobody watches."""


async def _on_a_thread(work: Callable[[], None]) -> bool:
    """For a command, which has the process to itself."""
    await asyncio.to_thread(work)
    return True


async def replay_policy(call: Call) -> Reply:
    """Decide the newest decisions of the organisation again with one more text of policies; nothing is kept of it.

    `stopped` says that it took as long as it may: what is counted is what was decided until then, the oldest first.
    """
    body = call.body
    text = cedar_text(body)
    since = body.optional_timestamp("since")
    limit = body.optional_integer("limit", least=1, most=limits.REPLAY_DECISIONS) or limits.REPLAY_DECISIONS
    grant = call.access.authorize(call.session, "policy.replay", call.org)
    with call.services.replays.turn(grant.target.id) as turn:
        candidate = await try_over(call.services, call.access.engines.of(grant.target.id).bundle, text)
        start = await call.read(replaying.before_newest, grant, since=since, limit=limit)
        report = await _replay(call.services, grant, candidate, {}, after=start, since=since, turn=turn)
    grant.note(candidate=candidate.hash, count=report.decided)
    return Reply({**shape(report, flips=limits.PAGE), "stopped": turn.stopped})


async def replay_data(services: Services, candidate: Bundle, *, since: datetime | None, progress: Steps = _silent) -> Report:
    """As the operator, decide everything that the data directory has recorded since a time again."""
    async with as_operator(services) as session:
        grant = services.access.authorize(session, "admin.take_evidence", Installation())
        await put_down(services, session)
        own = await asyncio.to_thread(_own, services, candidate, session.now)
        return await _replay(services, grant, candidate, own, after=0, since=since, progress=progress)


async def redecide_data(
    services: Services, old: Bundle, new: Bundle, only: Bundle, *, since: datetime | None, progress: Steps = _silent
) -> Redecided:
    """As the operator, decide everything that the data directory has recorded since a time again, by old policies and by new."""
    async with as_operator(services) as session:
        grant = services.access.authorize(session, "admin.take_evidence", Installation())
        await put_down(services, session)
        redeciding = Redeciding(old, new, only, dict(services.state.memory_grants))
        await _each_page(services, grant, redeciding.add, after=0, since=since, progress=progress)
        return redeciding.found


def shape(report: Report, *, flips: int | None = None) -> dict[str, Any]:
    """A report as JSON, with at most so many lines of its table."""
    counts = {name: value for name, value in asdict(report).items() if name != "flips"}
    return {**counts, "opens": report.opens, "flips": [asdict(flip) for flip in report.flips[:flips]], "lines": len(report.flips)}


def bundle_of(services: Services, grant: Grant[Org] | Grant[LogEntry] | Grant[Installation], bundle_hash: str) -> Bundle | None:
    """The bundle of a hash, as it was kept when it first decided; None when it is not known, or not what its hash says.

    Not from the event loop of a server: it waits for the store.
    """
    body = services.database.read_sync(lambda rows: replaying.bundle_body(rows, grant, bundle_hash))
    return None if body is None else made_again(body, bundle_hash)


async def _replay(
    services: Services,
    grant: Grant[Org] | Grant[Installation],
    candidate: Bundle,
    own: Mapping[str, Bundle],
    *,
    after: int,
    since: datetime | None,
    progress: Steps = _silent,
    turn: Turn | None = None,
) -> Report:
    make = partial(Replay, candidate, own, dict(services.state.memory_grants), partial(bundle_of, services, grant))
    replay, run = (make(), _on_a_thread) if turn is None else (make(between=turn.between), turn.run)
    await _each_page(services, grant, replay.add, after=after, since=since, progress=progress, run=run)
    return replay.report()


async def _each_page(
    services: Services,
    grant: Grant[Org] | Grant[Installation],
    add: Callable[[RecordedPage], None],
    *,
    after: int,
    since: datetime | None,
    progress: Steps,
    run: Run = _on_a_thread,
) -> None:
    done, place, goes_on = 0, after, True
    end: int | None = place
    while end is not None and goes_on:
        place = end
        read = partial(replaying.recorded, grant=grant, after=place, since=since, limit=PAGE)
        page = await services.database.read(read)
        # Not on the event loop: between two calls to Cedar others get their turn.
        goes_on = await run(partial(add, page))
        done += len(page.rows)
        progress(done)
        end = page.last_seq


def _own(services: Services, candidate: Bundle, now: datetime) -> dict[str, Bundle]:
    """What the policies of each organisation make of the candidate."""
    engines = services.access.engines
    built = engines.build_all(list(services.state.org_policies.values()), now, on=PolicyEngine(candidate, salt=b""))
    return {org_id: own.engine.bundle for org_id, own in built.items()}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "policy.replay",
        "POST",
        "/v1/org/cedar-policies/replay",
        "Decide recorded decisions again with a text of policies added: who would gain, who would lose.",
        replay_policy,
        actions=("policy.replay",),
        fields=wire.REPLAYED,
        strict=True,
        long=True,
        body_bytes=limits.LARGE_BODY_BYTES,
        unhurried=True,
        answers={200: wire.REPLAY},
    ),
)
