"""Replay: the decision log decided again under other policies, before they decide anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Any

from gateway import limits
from gateway.errors import Invalid
from gateway.model.grant import Grant
from gateway.model.records import Org
from gateway.operations.call import Call, Services
from gateway.operations.operation import Operation, Reply
from gateway.operations.operator import as_operator, put_down
from gateway.policy import sandbox
from gateway.policy.bundle import Bundle
from gateway.policy.engine import PolicyEngine
from gateway.policy.finding import PolicyError
from gateway.policy.organisation import extend
from gateway.policy.replay import Replay, Report
from gateway.store import replaying
from gateway.store.entities import Installation

#: Rows that are read at once: while they are decided, other requests get their turn between the calls to Cedar.
PAGE = 1_000
#: What a text that is tried is called, as if it were a policy of the organisation.
CANDIDATE = "candidate"
Steps = Callable[[int], None]


def _silent(_: int) -> None:
    """Nobody watches."""


async def replay_policy(call: Call) -> Reply:
    """Decide the newest decisions of the organisation again with one more text of policies; nothing is kept of it."""
    body = call.body
    name = "policy_text" if body.has("policy_text") and not body.has("cedar_text") else "cedar_text"
    text = body.text(name, longest=limits.LARGE_BODY_BYTES)
    since = body.optional_timestamp("since")
    limit = body.optional_integer("limit", least=1, most=limits.REPLAY_DECISIONS) or limits.REPLAY_DECISIONS
    grant = call.access.authorize(call.session, "policy.replay", call.org)
    try:
        candidate = await asyncio.to_thread(_with, call.access.engines.of(grant.target.id).bundle, text)
    except PolicyError as refused:
        raise Invalid(f"`{name}` does not load: {refused}", field=name) from refused
    start = await call.read(replaying.before_newest, grant, since=since, limit=limit)
    report = await _replay(call.services, grant, candidate, {}, after=start, since=since)
    grant.note(candidate=candidate.hash, count=report.decided)
    return Reply(shape(report, flips=limits.PAGE))


async def replay_data(services: Services, candidate: Bundle, *, since: datetime | None, progress: Steps = _silent) -> Report:
    """As the operator, decide everything that the data directory has recorded since a time again."""
    async with as_operator(services) as session:
        grant = services.access.authorize(session, "admin.take_evidence", Installation())
        await put_down(services, session)
        own = await asyncio.to_thread(_own, services, candidate, session.now)
        return await _replay(services, grant, candidate, own, after=0, since=since, progress=progress)


def shape(report: Report, *, flips: int | None = None) -> dict[str, Any]:
    """A report as JSON, with at most so many lines of its table."""
    counts = {name: value for name, value in asdict(report).items() if name != "flips"}
    return {**counts, "opens": report.opens, "flips": [asdict(flip) for flip in report.flips[:flips]], "lines": len(report.flips)}


def bundle_of(services: Services, grant: Grant[Org] | Grant[Installation], bundle_hash: str) -> Bundle | None:
    """The bundle of a hash, as it was kept when it first decided; None when it is not known, or not what its hash says.

    Not from the event loop of a server: it waits for the store.
    """
    kept = services.database.read_sync(lambda rows: replaying.bundle_text(rows, grant, bundle_hash))
    if kept is None:
        return None
    schema, policies = kept
    try:
        bundle = Bundle.from_text(schema, policies, house_rules=False)
    except PolicyError:
        return None
    return bundle if bundle.hash == bundle_hash else None


async def _replay(
    services: Services,
    grant: Grant[Org] | Grant[Installation],
    candidate: Bundle,
    own: Mapping[str, Bundle],
    *,
    after: int,
    since: datetime | None,
    progress: Steps = _silent,
) -> Report:
    replay = Replay(candidate, own, dict(services.state.memory_grants), partial(bundle_of, services, grant))
    done, place = 0, after
    end: int | None = place
    while end is not None:
        place = end
        read = partial(replaying.recorded, grant=grant, after=place, since=since, limit=PAGE)
        page = await services.database.read(read)
        # Not on the event loop: between two calls to Cedar others get their turn.
        await asyncio.to_thread(replay.add, page)
        done += len(page.rows)
        progress(done)
        end = page.last_seq
    return replay.report()


def _with(bundle: Bundle, text: str) -> Bundle:
    """The policies that decide for an organisation now, and one more text of its own."""
    sandbox.check(bundle.schema_text, {CANDIDATE: text})
    return extend(bundle, {CANDIDATE: text})


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
        fields=("cedar_text", "policy_text", "since", "limit"),
        strict=True,
        body_bytes=limits.LARGE_BODY_BYTES,
        unhurried=True,
    ),
)
