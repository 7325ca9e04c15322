"""Model values as Cedar's JSON: typed in, so that nothing a user wrote is read as an entity or an extension."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Context as Arithmetic
from decimal import Decimal, Inexact, InvalidOperation
from typing import Any

from gateway.model.entity import EntityUid, Value
from gateway.policy.guard import MAX_NESTING

FOUR_PLACES = Decimal("0.0001")
EXACT = Arithmetic(prec=28, traps=[Inexact, InvalidOperation])
#: Where the schema expects an entity or an extension, Cedar's JSON reads one from a record of exactly these keys.
LOOKALIKES = ({"type", "id"}, {"fn", "arg"}, {"fn", "args"})


class ValueRefused(ValueError):
    """A value has no exact spelling in Cedar, or one that Cedar could take for something else."""


def canonical(value: object) -> str:
    """Returns `value` as JSON: keys sorted, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def uid_json(uid: EntityUid) -> dict[str, str]:
    """Returns the uid as cedarpy and Cedar's JSON take it: never as text, so an id cannot break out of it."""
    return {"type": uid.type, "id": uid.id}


def each_key_once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Returns the record of what `json` read; raises `ValueRefused` when a key stands in it twice."""
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ValueRefused(f"the key `{key}` stands twice in one record")
        record[key] = value
    return record


def value_json(value: Value, seen: set[EntityUid], *, room: int = MAX_NESTING) -> object:
    """Returns `value` as Cedar's JSON and adds each entity that it names to `seen`.

    A `Decimal` gets exactly four places and is never rounded; a `datetime` is cut to whole milliseconds.
    Raises `ValueRefused` for more decimals, a naive time, a key that starts with `__`, a record that Cedar
    could read as something else, nesting deeper than `MAX_NESTING`, and anything that is no `Value`.
    """
    if not room:
        raise ValueRefused(f"nested deeper than {MAX_NESTING}")
    match value:
        case bool() | int() | str():
            return value
        case EntityUid():
            seen.add(value)
            return {"__entity": uid_json(value)}
        case Decimal():
            return {"__extn": {"fn": "decimal", "arg": _decimal(value)}}
        case datetime():
            return {"__extn": {"fn": "datetime", "arg": _moment(value)}}
        case tuple():
            return [value_json(item, seen, room=room - 1) for item in value]
        case Mapping():
            return record_json(value, seen, room=room)
        case _:
            raise ValueRefused(f"a `{type(value).__name__}` is not a Cedar value")


def record_json(record: Mapping[str, Value], seen: set[EntityUid], *, room: int = MAX_NESTING) -> dict[str, object]:
    """Returns a record, or the attributes or tags of an entity, as `value_json` does."""
    if record.keys() in LOOKALIKES:
        raise ValueRefused(f"a record of {sorted(record)} reads as an entity or an extension")
    return {_key(key): value_json(value, seen, room=room - 1) for key, value in record.items()}


def named(value: object) -> Iterator[EntityUid]:
    """Yields each entity that a value of Cedar's JSON names by `__entity`."""
    for key, record in _records(value):
        match record:
            case {"type": str(type_), "id": str(id_)} if key == "__entity":
                yield EntityUid(type_, id_)
            case _:
                pass


def refuse_unknown(value: object) -> None:
    """Raises `ValueRefused` when Cedar's JSON holds an unknown or an expression: both pass validation, and then err."""
    for _, record in _records(value):
        if record.get("fn") == "unknown" or "__expr" in record:
            raise ValueRefused("an unknown is not a value")


def refuse_implicit(value: object) -> None:
    """Raises `ValueRefused` when Cedar's JSON could name an entity or an extension without `__entity` or `__extn`."""
    for key, record in _records(value):
        if record.keys() in LOOKALIKES and key not in ("__entity", "__extn"):
            raise ValueRefused(f"a record of {sorted(record)} reads as an entity or an extension")


def _records(value: object) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Yields each record in a value of JSON, under the key that it stands at; a deep one does not use up the stack."""
    waiting: list[tuple[str | None, object]] = [(None, value)]
    while waiting:
        key, found = waiting.pop()
        if isinstance(found, dict):
            yield key, found
            waiting.extend(found.items())
        elif isinstance(found, list | tuple):
            waiting.extend((None, item) for item in found)


def _key(key: str) -> str:
    if key.startswith("__"):
        raise ValueRefused(f"reserved key `{key}`")
    return key


def _decimal(value: Decimal) -> str:
    try:
        exact = value.quantize(FOUR_PLACES, context=EXACT)
    except (Inexact, InvalidOperation) as error:
        raise ValueRefused("a decimal of more than four places, or out of range") from error
    if not exact.is_finite():
        raise ValueRefused("not a number")
    return f"{exact:f}"


def _moment(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueRefused("a time without a time zone")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
