"""A recorded decision laid out: its question, the entities and the grants, as they were when it was taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gateway.model.decision import DenyKind, Query
from gateway.model.memory import MemoryGrant
from gateway.model.recorded import Recorded
from gateway.policy.bundle import Bundle
from gateway.policy.context import Context
from gateway.policy.grants import HOLDER, ROW
from gateway.policy.slice import Slice, SliceError, from_texts
from gateway.policy.value import ValueRefused
from gateway.recent import Recent

#: Why a decision cannot be taken again: its row was changed into what the gateway never writes; the gateway withdrew the answer;
#: nobody asked Cedar; the record lacks what was asked; the entities were erased; those of a row that was denied are never kept;
#: a grant is not known any more; the entities do not fit the schema; the policies are not known any more.
Lost = Literal[
    "unreadable", "withdrawn", "not_asked", "not_recorded", "erased", "never_kept", "grant_unknown", "other_schema", "bundle_gone"
]
WITHDRAWN = frozenset({DenyKind.STALE, DenyKind.DEADLINE})
#: Slices and contexts that are kept for the decisions that follow; a slice is some kilobytes.
KEPT = 8_192


@dataclass(frozen=True, slots=True)
class Laid:
    """A decision with the context that it was asked in, the entities, and the grants of its principal, where these decide."""

    row: Recorded
    context: Context
    slice: Slice
    grants: tuple[MemoryGrant, ...]

    @property
    def query(self) -> Query:
        """What was asked."""
        return Query(self.row.principal, self.row.action, self.row.resource, self.context)


@dataclass(frozen=True, slots=True)
class _Held:
    """Entities that are ready to be asked over, and the grants that they name by the id of their holder."""

    slice: Slice
    grants: Mapping[str, tuple[str, ...]]


class Laying:
    """Lays out decisions under the schema of a bundle, one after the other; what many share is read once.

    `grants` are all that there were, by id.
    """

    def __init__(self, bundle: Bundle, grants: Mapping[str, MemoryGrant]) -> None:
        self._bundle = bundle
        self._grants = grants
        self._held: Recent[tuple[str, ...], _Held | None] = Recent(KEPT)
        self._contexts: Recent[str, Context | None] = Recent(KEPT)

    def lay_out(self, row: Recorded, bodies: Mapping[str, str]) -> Laid | Lost:
        """Returns a decision laid out, or why it cannot be; `bodies` are the entities of slices as canonical JSON, by hash."""
        if not row.readable:
            return "unreadable"
        if row.deny_kind in WITHDRAWN:
            return "withdrawn"
        shown = row.context
        if not row.slices or shown is None:
            return "not_recorded"
        context = self._contexts.of(repr(shown), lambda: _context(shown))
        if context is None:
            return "unreadable"
        if row.slices in self._held:
            held = self._held[row.slices]
        elif all(hash_ in bodies for hash_ in row.slices):
            held = _held(self._bundle, [bodies[hash_] for hash_ in row.slices])
            self._held.put(row.slices, held)
        else:
            return "never_kept" if row.resource.type == ROW and not row.allowed else "erased"
        if held is None:
            return "other_schema"
        ids = held.grants.get(row.principal.id, ()) if _granted(row) else ()
        if not ids:
            return Laid(row, context, held.slice, ())
        if not all(id_ in self._grants for id_ in ids):
            return "grant_unknown"
        return Laid(row, context, held.slice, tuple([self._grants[id_] for id_ in ids]))


def lay_out(bundle: Bundle, row: Recorded, bodies: Mapping[str, str], grants: Mapping[str, MemoryGrant]) -> Laid | Lost:
    """Returns one decision laid out under the schema of a bundle, as `Laying` does."""
    return Laying(bundle, grants).lay_out(row, bodies)


def cedars_kind(row: Recorded) -> str | None:
    """Returns why Cedar denied: a pause is a forbid to Cedar, and the record calls it by what it means."""
    return DenyKind.FORBIDDEN.value if row.deny_kind == DenyKind.PAUSED else row.deny_kind


def _granted(row: Recorded) -> bool:
    """Whether the grants of its principal decide a row: where it is a remote agent that asks about rows."""
    return row.principal.type == HOLDER and ROW in (row.planned, row.resource.type)


def _context(shown: Mapping[str, object]) -> Context | None:
    try:
        return Context.from_record(shown)
    except ValueRefused:
        return None


def _held(bundle: Bundle, texts: list[str]) -> _Held | None:
    try:
        slice = from_texts(bundle, texts, salt=b"")
    except SliceError:
        return None
    grants: dict[str, tuple[str, ...]] = {}
    for entity in json.loads(slice.text):
        match entity:
            case {"uid": {"type": type_, "id": str(id_)}, "attrs": {"grants": list(ids)}} if type_ == HOLDER:
                grants[id_] = tuple(map(str, ids))
            case _:
                pass
    return _Held(slice, grants)
