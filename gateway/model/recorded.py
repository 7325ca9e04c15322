"""A recorded decision, with what it takes to decide it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gateway.model.entity import EntityUid


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answer that the log holds; a row of it holds more than one where questions were asked together.

    `policies` is None where the record says only which way it went. `context` is None where there is none. `planned` is the
    type of the rows that were asked about, whichever they are; then the resource is what they belong to. `slices` are
    hashes, in the order in which what they stand for was laid together. It is not `readable` when the row was changed after it
    was written, into what the gateway never writes; what else it says of such a row is not to be relied on.
    """

    id: str
    seq: int
    at: datetime
    org_id: str
    principal: EntityUid
    action: str
    resource: EntityUid
    allowed: bool
    deny_kind: str | None
    policies: tuple[str, ...] | None
    errors: tuple[str, ...]
    bundle: str
    slices: tuple[str, ...]
    context: Mapping[str, Any] | None
    planned: str | None
    readable: bool = True


@dataclass(frozen=True, slots=True)
class RecordedPage:
    """Answers in the order of the log, and the entities of their slices as canonical JSON, by hash.

    A hash without a text is that of a slice which was erased. `last_seq` is the place to go on after, None at the end.
    """

    rows: tuple[Recorded, ...]
    bodies: Mapping[str, str]
    last_seq: int | None
