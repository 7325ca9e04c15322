"""The strictest of it: what a row that is made from others may be labelled with, and what makes a label wider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from gateway.errors import Invalid
from gateway.model.memory import TIERS, Memory, Source, Tier

T = TypeVar("T")


class Labelled(Protocol):
    """Whatever carries what grants reach rows by: a row, or labels without one."""

    @property
    def project_id(self) -> str | None: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def classification(self) -> Tier: ...


@dataclass(frozen=True, slots=True)
class Labels:
    """A project (None is untagged), tags (sorted, without duplicates) and a tier."""

    project_id: str | None
    tags: tuple[str, ...]
    classification: Tier


@dataclass(frozen=True, slots=True)
class Said:
    """What a request says of a row that it derives; None is nothing, and takes what the sources give."""

    project_id: str | None = None
    tags: tuple[str, ...] | None = None
    classification: Tier | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Derived:
    """What a derived row is stored with."""

    project_id: str | None
    tags: tuple[str, ...]
    classification: Tier
    expires_at: datetime | None
    connection_id: str | None
    source_did: str | None
    provenance: tuple[Source, ...]


def labels(of: Labelled) -> Labels:
    """The labels of a row."""
    return Labels(of.project_id, of.tags, of.classification)


def widens(before: Labelled, after: Labelled) -> bool:
    """Whether a change of labels lets anybody see more: it names or changes a project, adds a tag or lowers a tier."""
    return _wider_field(before, after) is not None


def refuse_wider(sources: Sequence[Labelled], wanted: Labelled) -> None:
    """Make sure that labels are no wider than those of what a row is derived from.

    Raises:
        Invalid: they are; it names the field.
    """
    if (field := _wider_field(common(sources), wanted)) is not None:
        raise _wider(field)


def derive(sources: Sequence[Memory], said: Said = Said(), own: Source | None = None) -> Derived:
    """What a row made from at least one other is stored with, when a request says `said` of it and it came in by `own`.

    Raises:
        Invalid: the request asks for more than the sources allow; it names the field.
    """
    bounds = common(sources)
    wanted = Labels(
        bounds.project_id if said.project_id is None else said.project_id,
        bounds.tags if said.tags is None else said.tags,
        bounds.classification if said.classification is None else said.classification,
    )
    refuse_wider(sources, wanted)
    latest = min((row.expires_at for row in sources if row.expires_at is not None), default=None)
    if said.expires_at is not None and latest is not None and said.expires_at > latest:
        raise _wider("expires_at")
    provenance = {source for row in sources for source in row.provenance} | ({own} if own is not None else set())
    return Derived(
        *(wanted.project_id, wanted.tags, wanted.classification),
        expires_at=latest if said.expires_at is None else said.expires_at,
        connection_id=_only(source.connection_id for source in provenance),
        source_did=_only(source.source_did for source in provenance),
        provenance=tuple(sorted(provenance, key=_order)),
    )


def common(sources: Sequence[Labelled]) -> Labels:
    """The widest labels that a row derived from all of these, at least one, may have."""
    projects = {row.project_id for row in sources}
    shared = set(sources[0].tags).intersection(*(row.tags for row in sources))
    return Labels(
        projects.pop() if len(projects) == 1 else None,
        tuple(sorted(shared)),
        max((row.classification for row in sources), key=_rank),
    )


def followed(row: Labelled, before: Sequence[Labelled], after: Sequence[Labelled]) -> Labels:
    """The labels of a derived row when those of its sources change from `before` to `after`.

    It goes with them from one project to another, if it was in theirs. In all else it is no wider than it was, nor than they
    allow: nobody has looked at it.
    """
    bounds = common(after)
    went_along = row.project_id is not None and row.project_id in (common(before).project_id, bounds.project_id)
    return Labels(
        bounds.project_id if went_along else None,
        tuple(tag for tag in row.tags if tag in bounds.tags),
        max(row.classification, bounds.classification, key=_rank),
    )


def _wider_field(before: Labelled, after: Labelled) -> str | None:
    if after.project_id not in (None, before.project_id):
        return "project_id"
    if not set(after.tags) <= set(before.tags):
        return "tags"
    return "classification" if _rank(after.classification) < _rank(before.classification) else None


def _wider(field: str) -> Invalid:
    return Invalid(f"`{field}` must not be wider than what the memory is derived from allows", field=field)


_rank: Callable[[Tier], int] = TIERS.index


def _order(source: Source) -> tuple[str, str]:
    return source.connection_id or "", source.source_did or ""


def _only(values: Iterable[T | None]) -> T | None:
    named = {value for value in values if value is not None}
    return named.pop() if len(named) == 1 else None
