"""What is sent from outside as Cedar's JSON: each value by the type that the schema gives it, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from ipaddress import ip_interface
from typing import assert_never

from gateway.errors import echo
from gateway.model.asked import Unusable
from gateway.model.entity import EntityUid
from gateway.policy.schema import ActionOf, Primitive, RecordOf, Reference, SetOf, Type
from gateway.policy.value import ValueRefused, value_json

LONG = range(-(2**63), 2**63)
#: Ten-thousandths of Cedar's decimals are 64 bits wide.
MOST = Decimal("922337203685477.5807")
DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,4})?", re.ASCII)
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
DURATION = re.compile(r"-?(?=[0-9])([0-9]{1,9}d)?([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?([0-9]{1,9}ms)?", re.ASCII)
#: Without a zone or a mask in dots, which Cedar does not take.
ADDRESS = re.compile(r"[0-9A-Fa-f:.]{2,45}(/[0-9]{1,3})?", re.ASCII)
ABSENT = object()


class Incomplete(Unusable):
    """An object lacks a member without which there is no such value."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of values: the Cedar types that outside names stand for, and the entities that were named on the way."""

    aliases: Mapping[str, str]
    named: set[EntityUid] = field(default_factory=set)

    def record(self, sent: Mapping[str, object], declared: RecordOf, place: str) -> dict[str, object]:
        """Returns the members of `sent` that are declared; what is null or not declared is left out.

        Raises `Unusable` for one that is not of its type. A required one may be missing: whoever asks looks after that.
        """
        made: dict[str, object] = {}
        for name, value in sent.items():
            known = declared.fields.get(name)
            if known is None or value is None:
                continue
            read = self.value(known.type, value, f"{place}.{name}")
            if read is not ABSENT:
                made[name] = read
        return made

    def value(self, type_: Type, value: object, place: str) -> object:
        """Returns one value as Cedar's JSON, `ABSENT` when its type is none that can be sent; raises `Unusable`."""
        match type_:
            case Primitive(name=name):
                return _primitive(name, value, place)
            case ActionOf():
                return ABSENT
            case Reference(name=name):
                return self._entity(name, value, place)
            case SetOf(item=item):
                if not isinstance(value, list):
                    raise _wrong(place, "a list", value)
                items = (self.value(item, each, f"{place}[{at}]") for at, each in enumerate(value) if each is not None)
                return [each for each in items if each is not ABSENT]
            case RecordOf():
                if not isinstance(value, Mapping):
                    raise _wrong(place, "an object", value)
                made = self.record(value, type_, place)
                if missing := missing_of(type_, made):
                    raise Incomplete(f"{place}.{missing}", "is required where the rest of its object is sent")
                return made
            case _:
                assert_never(type_)

    def _entity(self, type_: str, value: object, place: str) -> object:
        """An entity is its id, or an object of its type and id."""
        if isinstance(value, Mapping):
            sent, value = value.get("type"), value.get("id")
            if not isinstance(sent, str) or self.aliases.get(sent, sent) != type_:
                raise _wrong(f"{place}.type", f"the type `{type_}`", sent)
        if not isinstance(value, str):
            raise _wrong(place, f"the id of an entity of type `{type_}`", value)
        uid = EntityUid(type_, value)
        self.named.add(uid)
        return value_json(uid, set())


def missing_of(declared: RecordOf, made: Mapping[str, object]) -> str | None:
    """Returns the first required member that is not there."""
    return next((name for name, known in declared.fields.items() if not known.optional and name not in made), None)


def _primitive(name: str, value: object, place: str) -> object:
    match name:
        case "Bool":
            return value if isinstance(value, bool) else _refuse(place, "true or false", value)
        case "String":
            return value if isinstance(value, str) else _refuse(place, "a string", value)
        case "Long":
            return _long(value, place)
        case "decimal":
            return _decimal(value, place)
        case "datetime":
            return _moment(value, place)
        case "duration":
            fits = isinstance(value, str) and DURATION.fullmatch(value)
            return _extension("duration", value) if fits else _refuse(place, "a duration, such as `1h30m`", value)
        case "ipaddr":
            return _extension("ip", value) if _is_address(value) else _refuse(place, "an address or a range of them", value)
        case _:
            return ABSENT


def _long(value: object, place: str) -> object:
    if isinstance(value, Decimal) and str(value) == "-0":
        return 0
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(place, "a whole number", value)
    if value not in LONG:
        raise Unusable(place, "is a whole number outside of 64 bits")
    return value


def _decimal(value: object, place: str) -> object:
    expected = "a decimal of at most four places"
    if isinstance(value, str) and DECIMAL.fullmatch(value):
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal) or not -MOST <= value <= MOST:
        raise _wrong(place, expected, value)
    try:
        return value_json(Decimal(value), set())
    except ValueRefused as refused:
        raise _wrong(place, expected, value) from refused


def _moment(value: object, place: str) -> object:
    expected = "a time with an offset, such as 2030-01-31T12:00:00Z, or a date"
    if not isinstance(value, str) or not value.isascii():
        raise _wrong(place, expected, value)
    try:
        moment = datetime.fromisoformat(value.upper())
        return value_json(moment.replace(tzinfo=UTC) if DATE.fullmatch(value) else moment, set())
    except (ValueError, OverflowError) as wrong:  # a time without an offset is refused as a value
        raise _wrong(place, expected, value) from wrong


def _is_address(value: object) -> bool:
    if not isinstance(value, str) or not ADDRESS.fullmatch(value):
        return False
    try:
        ip_interface(value)
    except ValueError:
        return False
    return True


def _extension(function: str, argument: object) -> object:
    return {"__extn": {"fn": function, "arg": argument}}


def _refuse(place: str, expected: str, value: object) -> object:
    raise _wrong(place, expected, value)


def _wrong(place: str, expected: str, value: object) -> Unusable:
    return Unusable(place, f"must be {expected}, got {echo(value)}")
