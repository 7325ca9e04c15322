"""Reading members of a body or a query string, with an error that names the member and echoes what was sent."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TypeGuard, TypeVar, overload

from gateway.errors import Invalid
from gateway.errors import echo as echo  # where operations look for it

T = TypeVar("T", bound=str)
# Types that two readers below are named like.
Entries = list[object]
Members = Mapping[str, object]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_SURROGATE_OR_NUL = re.compile(r"[\x00\ud800-\udfff]")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_DIGITS = re.compile(r"[0-9]+")
_ABSENT = object()

ID = "an id (a lower-case UUID)"


def is_id(value: object) -> TypeGuard[str]:
    """Whether a value has the form of an id the gateway gave out."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


class Fields:
    """The members of one object. Every reader raises `Invalid` for a wrong type, form or length.

    An explicit null is absent unless a reader says otherwise.
    """

    def __init__(self, members: Members, *, place: str = "") -> None:
        self.members = members
        self._place = place

    def name(self, field: str) -> str:
        return f"{self._place}{field}"

    def __contains__(self, field: str) -> bool:
        return field in self.members

    def has(self, field: str) -> bool:
        """Whether the member is there and not null."""
        return self.members.get(field) is not None

    def refuse_others(self, known: Collection[str]) -> None:
        for field in self.members:
            if field not in known:
                allowed = ", ".join(known) or "none"
                shown = echo(self.name(field))
                raise Invalid(f"{shown} is not a known field here; known are {allowed}", field=shown[1:-1])

    def wrong(self, field: str, expected: str) -> Invalid:
        value = self.members.get(field, _ABSENT)
        if value is _ABSENT or value is None:
            return Invalid(f"`{self.name(field)}` is required and must be {expected}", field=self.name(field))
        return Invalid(f"`{self.name(field)}` must be {expected}, got {echo(value)}", field=self.name(field))

    def text(self, field: str, *, longest: int, shortest: int = 1) -> str:
        """A string of `shortest` to `longest` characters without NUL and lone surrogates."""
        value = self.members.get(field)
        expected = f"a string of {shortest} to {longest} characters"
        if not isinstance(value, str) or _SURROGATE_OR_NUL.search(value) or not shortest <= len(value) <= longest:
            raise self.wrong(field, expected)
        return value

    def optional_text(self, field: str, *, longest: int, shortest: int = 0) -> str | None:
        return self.text(field, longest=longest, shortest=shortest) if self.has(field) else None

    def id(self, field: str) -> str:
        value = self.members.get(field)
        if not is_id(value):
            raise self.wrong(field, ID)
        return value

    def optional_id(self, field: str) -> str | None:
        return self.id(field) if self.has(field) else None

    def ids(self, field: str, *, most: int) -> Ids:
        """A list of distinct ids, in the order given; absent is empty."""
        distinct: dict[str, None] = {}
        for index, value in enumerate(self.list(field, most=most)):
            if not is_id(value):
                raise Invalid(f"`{self.name(field)}[{index}]` must be {ID}, got {echo(value)}", field=self.name(field))
            distinct[value] = None
        return [*distinct]

    def list(self, field: str, *, most: int) -> Entries:
        value = self.members.get(field)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > most:
            raise self.wrong(field, f"a list of at most {most} entries")
        return value

    def objects(self, field: str, *, most: int) -> Objects:
        made: Objects = []
        for index, value in enumerate(self.list(field, most=most)):
            if not isinstance(value, dict):
                raise Invalid(f"`{self.name(field)}[{index}]` must be an object, got {echo(value)}", field=self.name(field))
            made.append(Fields(value, place=f"{self.name(field)}[{index}]."))
        return made

    def object(self, field: str) -> Members:
        value = self.members.get(field)
        if not isinstance(value, dict):
            raise self.wrong(field, "an object")
        return value

    def optional_object(self, field: str) -> Members | None:
        return self.object(field) if self.has(field) else None

    def choice(self, field: str, choices: Sequence[T]) -> T:
        value = self.members.get(field)
        for choice in choices:
            if isinstance(value, str) and value == choice:
                return choice
        raise self.wrong(field, f"one of {', '.join(choices)}")

    @overload
    def optional_choice(self, field: str, choices: Sequence[T], default: T) -> T: ...
    @overload
    def optional_choice(self, field: str, choices: Sequence[T], default: None = None) -> T | None: ...
    def optional_choice(self, field: str, choices: Sequence[T], default: T | None = None) -> T | None:
        return self.choice(field, choices) if self.has(field) else default

    def boolean(self, field: str) -> bool:
        value = self.members.get(field)
        if not isinstance(value, bool):
            raise self.wrong(field, "true or false")
        return value

    def optional_boolean(self, field: str, *, default: bool) -> bool:
        return self.boolean(field) if self.has(field) else default

    def integer(self, field: str, *, least: int, most: int) -> int:
        """A whole number from a body: `2`, never `2.0`, `"2"` or `true`."""
        value = self.members.get(field)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.wrong(field, f"a whole number from {least} to {most}")
        return value

    def optional_integer(self, field: str, *, least: int, most: int) -> int | None:
        return self.integer(field, least=least, most=most) if self.has(field) else None

    def count(self, field: str, *, least: int, most: int, default: int, clamp: bool = False) -> int:
        """A whole number from a query string, in ASCII digits; with `clamp`, more than `most` is `most`."""
        value = self.members.get(field)
        if value is None:
            return default
        if not isinstance(value, str) or not _DIGITS.fullmatch(value):
            raise self.wrong(field, f"a whole number from {least} to {most}")
        digits = value.lstrip("0") or "0"
        number = int(digits) if len(digits) < 19 else most + 1
        if number < least or (number > most and not clamp):
            raise self.wrong(field, f"a whole number from {least} to {most}")
        return min(number, most)

    def timestamp(self, field: str) -> datetime:
        """An RFC 3339 time with an offset, as aware UTC."""
        value = self.members.get(field)
        expected = "an RFC 3339 time with an offset, such as 2030-01-31T12:00:00Z"
        if not isinstance(value, str) or not value.isascii() or not _TIMESTAMP.fullmatch(value):
            raise self.wrong(field, expected)
        try:
            moment = datetime.fromisoformat(value.upper())
            return moment.astimezone(UTC)
        except (ValueError, OverflowError) as wrong:
            raise self.wrong(field, expected) from wrong

    def optional_timestamp(self, field: str) -> datetime | None:
        return self.timestamp(field) if self.has(field) else None


Objects = list[Fields]
Ids = list[str]


def stamp(moment: datetime) -> str:
    """A time as the wire shows it: RFC 3339 in UTC with `Z`."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def optional_stamp(moment: datetime | None) -> str | None:
    return stamp(moment) if moment is not None else None


def json_number(value: Decimal) -> float:
    """A two-decimal figure as a JSON number."""
    return float(value)
