"""Replaying: the decisions of the log in batches, with the entities that each was taken over."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from gateway.errors import NotFound
from gateway.model.entity import EntityUid
from gateway.model.grant import Grant
from gateway.model.recorded import Recorded, RecordedPage
from gateway.model.records import Org
from gateway.store.entities import Installation, LogEntry
from gateway.store.rows import Rows

COLUMNS = """seq, id, "at", org_id, principal_type, principal_id, action, resource_type, resource_id, outcome, deny_kind,
  policies, bundle, slices, details"""
PAGE = f"""SELECT {COLUMNS} FROM log
  WHERE kind = 'decision' AND seq > $1 AND ($2::VARCHAR IS NULL OR org_id = $2)
  AND ($3::TIMESTAMP IS NULL OR "at" >= $3) AND ($4::TIMESTAMP IS NULL OR "at" < $4) ORDER BY seq LIMIT $5"""  # noqa: S608  # constants only
ONE = f"""SELECT {COLUMNS} FROM log
  WHERE kind = 'decision' AND id = $1 AND ($2::VARCHAR IS NULL OR org_id = $2)"""  # noqa: S608  # constants only
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
    answers = tuple([answer for row in found for answer in _answers(row)])
    return RecordedPage(answers, _bodies(rows, answers), found[-1][0] if len(found) == limit else None)


def before_newest(rows: Rows, grant: Grant[Org], *, since: datetime | None, limit: int) -> int:
    """Return the place before the newest `limit` decisions of the granted organisation."""
    first = rows.value(NEWEST, grant.target.id, since, limit)
    return 0 if first is None else first - 1


def recorded_one(rows: Rows, grant: Grant[LogEntry] | Grant[Installation], decision_id: str) -> RecordedPage:
    """Return what the row of one decision says: of the granted one or, for the operator, of any.

    Raises:
        NotFound: it is not in the log.
    """
    org_id = grant.target.org_id if isinstance(grant.target, LogEntry) else None
    answers = tuple([answer for row in rows.all(ONE, decision_id, org_id) for answer in _answers(row)])
    if not answers:
        raise NotFound
    return RecordedPage(answers, _bodies(rows, answers), None)


def bundle_body(rows: Rows, grant: Grant[Org] | Grant[LogEntry] | Grant[Installation], bundle_hash: str) -> str | None:
    """Return the text of a bundle that has decided, from which it is made again, or None when it is not known."""
    body: str | None = rows.value(BUNDLE, bundle_hash)
    return body


def _bodies(rows: Rows, answers: Sequence[Recorded]) -> dict[str, str]:
    """Return the entities of the slices of some answers by hash, of those that are kept."""
    hashes = {hash_ for answer in answers for hash_ in answer.slices}
    return dict(rows.all(BODIES, list(hashes))) if hashes else {}


def _answers(row: tuple[Any, ...]) -> Iterator[Recorded]:
    """Yield the answer of a row, and those that were asked for in the same breath."""
    (seq, id_, at, org_id, principal_type, principal_id, action, resource_type, resource_id, outcome, deny_kind, policies, bundle,
     slices, details) = row  # fmt: skip
    noted: dict[str, Any] = json.loads(details)
    answer = Recorded(
        id=id_,
        seq=seq,
        at=at,
        org_id=org_id,
        principal=EntityUid(principal_type, principal_id),
        action=action,
        resource=EntityUid(resource_type, resource_id),
        allowed=outcome == "allow",
        deny_kind=deny_kind,
        policies=tuple(json.loads(policies)),
        errors=tuple(noted.get("errors", ())),
        bundle=bundle,
        slices=tuple(json.loads(slices)),
        context=noted.get("context"),
        planned=noted.get("planned"),
    )
    yield answer
    # A second question is noted on the row of the first when its answer is yes, and wider ones when theirs is no.
    for also in noted.get("also", ()):
        yield replace(answer, action=also["action"], allowed=True, deny_kind=None, policies=tuple(also["policies"]), errors=())
    for wider in noted.get("not_allowed", ()):
        yield replace(answer, action=wider, allowed=False, deny_kind=None, policies=None, errors=())
