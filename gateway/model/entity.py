"""Cedar entities as we build them: typed values only, so that nothing a user wrote is ever parsed as Cedar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

NOTHING: Mapping[str, Value] = MappingProxyType({})


@dataclass(frozen=True, slots=True, order=True)
class EntityUid:
    """A Cedar entity identifier: a constant type name and an opaque id, compared byte for byte."""

    type: str
    id: str

    def __str__(self) -> str:
        return f'{self.type}::"{self.id}"'


#: A Cedar value. `Decimal` is Cedar's decimal (four places), `datetime` is aware UTC, a tuple is a set.
Value = bool | int | str | Decimal | datetime | EntityUid | tuple["Value", ...] | Mapping[str, "Value"]


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity of a slice: its attributes, its direct parents and its tags."""

    uid: EntityUid
    attrs: Mapping[str, Value] = field(default_factory=lambda: NOTHING)
    parents: tuple[EntityUid, ...] = ()
    tags: Mapping[str, Value] = field(default_factory=lambda: NOTHING)
