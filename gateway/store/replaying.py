"""Replaying: the decisions of the log in batches, with the entities that each was taken over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.recorded import Recorded, RecordedPage
from gateway.model.records import Org
from gateway.store.entities import Installation, LogEntry
from gateway.store.logged import COLUMNS, Logged, Unreadable, read, record, words
from gateway.store.rows import Rows

PAGE = f"""SELECT {COLUMNS} FROM log
  WHERE kind = 'decision' AND seq > $1 AND ($2::VARCHAR IS NULL OR org_id = $2)
  AND ($3::TIMESTAMP IS NULL OR "at" >= $3) AND ($4::TIMESTAMP IS NULL OR "at" < $4) ORDER BY seq LIMIT $5"""  # noqa: S608  # constants only
BODIES = "SELECT hash, body FROM slices WHERE hash IN (SELECT unnest($1::VARCHAR[]))"
BUNDLE = "SELECT body FROM bundles WHERE hash = $1"
NEWEST = """SELECT min(seq) FROM (SELECT seq FROM log WHERE kind = 'decision' AND org_id = $1
  AND ($2::TIMESTAMP IS NULL OR "at" >= $2) ORDER BY seq DESC LIMIT $3)"""


def recorded(
    rows: Rows,
    grant: Grant[Org] | Grant[Installation],
    *,
    after: int,
    since: datetime | None,
    until: datetime | None = None,
    limit: int,
) -> RecordedPage:
    """Return what at most `limit` rows after a place say: of the granted organisation, or of all that there are."""
    org_id = grant.target.id if isinstance(grant.target, Org) else None
    found = rows.all(PAGE, after, org_id, since, until, limit)
    made = tuple([answer for row in found for answer in _answers(read(row))])
    return RecordedPage(made, _bodies(rows, made), found[-1][0] if len(found) == limit else None)


def before_newest(rows: Rows, grant: Grant[Org], *, since: datetime | None, limit: int) -> int:
    """Return the place before the newest `limit` decisions of the granted organisation."""
    first = rows.value(NEWEST, grant.target.id, since, limit)
    return 0 if first is None else first - 1


def answers(rows: Rows, grant: Grant[LogEntry] | Grant[Installation], decision: Logged) -> RecordedPage:
    """Return the answers of a decision that was read, the asked one first."""
    found = tuple(_answers(decision))
    return RecordedPage(found, _bodies(rows, found), None)


def bundle_body(rows: Rows, grant: Grant[Org] | Grant[LogEntry] | Grant[Installation], bundle_hash: str) -> str | None:
    """Return the text of a bundle that has decided, from which it is made again, or None when it is not known."""
    body: str | None = rows.value(BUNDLE, bundle_hash)
    return body


def _bodies(rows: Rows, made: Sequence[Recorded]) -> dict[str, str]:
    """Return the entities of the slices of some answers by hash, of those that are kept."""
    hashes = {hash_ for answer in made for hash_ in answer.slices}
    return dict(rows.all(BODIES, list(hashes))) if hashes else {}


def _answers(row: Logged) -> Iterator[Recorded]:
    """Yield the answer of a row, and those that were asked for in the same breath; of one that was changed the first alone,
    which says so."""
    answer = Recorded(
        id=row.id,
        seq=row.seq,
        at=row.at,
        org_id=row.org_id,
        principal=EntityUid(row.principal_type, row.principal_id),
        action=row.action,
        resource=EntityUid(row.resource_type, row.resource_id),
        allowed=row.outcome == "allow",
        deny_kind=row.deny_kind,
        policies=tuple(row.policies),
        errors=(),
        bundle=row.bundle,
        slices=tuple(row.slices),
        context=None,
        planned=None,
        readable=False,
    )
    try:
        yield from _noted(answer, row.details) if row.readable else [answer]
    except Unreadable:
        yield answer


def _noted(answer: Recorded, noted: Mapping[str, Any]) -> list[Recorded]:
    """Return the answers that a row and its details hold; raise `Unreadable`."""
    context, planned = noted.get("context"), noted.get("planned")
    if planned is not None and not isinstance(planned, str):
        raise Unreadable
    asked = replace(
        answer,
        errors=tuple(words(noted.get("errors", []))),
        context=None if context is None else record(context),
        planned=planned,
        readable=True,
    )
    # A second question is noted on the row of the first when its answer is yes, and wider ones when theirs is no.
    made = [asked]
    for also in map(record, _list(noted, "also")):
        [action] = words([also.get("action")])
        policies = tuple(words(also.get("policies")))
        made.append(replace(asked, action=action, allowed=True, deny_kind=None, policies=policies, errors=()))
    for wider in words(noted.get("not_allowed", [])):
        made.append(replace(asked, action=wider, allowed=False, deny_kind=None, policies=None, errors=()))
    return made


def _list(noted: Mapping[str, Any], name: str) -> list[object]:
    found = noted.get(name, [])
    if not isinstance(found, list):
        raise Unreadable
    return found
