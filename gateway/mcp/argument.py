"""Arguments of a tool: their JSON Schema, and where in the request of an operation each of them goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gateway.errors import Invalid, echo
from gateway.operations.fields import Fields

Schema = Mapping[str, object]
Place = Literal["path", "query", "body"]

UUID = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
#: What models send for an argument that they mean to leave out.
JUNK = frozenset({"", "*", "null", "none", "undefined"})


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; `field` is what the operation calls it, where that is another word.

    Left out, it is `otherwise` that the operation gets, if there is such. `own` stands for the id of the caller.
    """

    name: str
    schema: Schema
    place: Place = "body"
    required: bool = False
    field: str | None = None
    otherwise: object = None
    own: bool = False

    @property
    def target(self) -> str:
        return self.field or self.name

    def read(self, given: Fields, caller_id: str) -> object:
        """What the operation is to get, None for nothing. What it means is for the operation to check.

        Raises:
            Invalid: junk for an argument that may be left out, or a value that has no place in a path or a query string.
        """
        if self.name not in given:
            if self.required and self.place == "path":
                raise given.wrong(self.name, "an id (a lower-case UUID)")
            return caller_id if self.own else self.otherwise
        value = given.members[self.name]
        if not self.required and _is_junk(value):
            shown = "`{}`" if value == {} else echo(value)
            raise Invalid(f"`{self.name}` is optional: leave it out instead of sending {shown}", field=self.name)
        match self.place:
            case "path":
                return given.id(self.name)
            case "query":
                return _word(given, self.name, value, self.schema)
            case "body":
                return value


def _is_junk(value: object) -> bool:
    return value is None or value == {} or (isinstance(value, str) and value.strip().casefold() in JUNK)


def _word(given: Fields, name: str, value: object, schema: Schema) -> str:
    """A value as a query string holds it."""
    if schema["type"] == "integer":
        if isinstance(value, bool) or not isinstance(value, int):
            raise given.wrong(name, f"a whole number from {schema['minimum']} to {schema['maximum']}")
        return str(value)
    if not isinstance(value, str):
        raise given.wrong(name, "a string")
    return value


# -- the schemas


def an_id(description: str) -> Schema:
    return {"type": "string", "pattern": UUID, "description": description}


def text(description: str, longest: int, *, shortest: int = 1) -> Schema:
    return {"type": "string", "minLength": shortest, "maxLength": longest, "description": description}


def word(description: str, words: Sequence[str]) -> Schema:
    return {"type": "string", "enum": [*words], "description": description}


def whole(description: str, least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


def moment(description: str) -> Schema:
    return {"type": "string", "format": "date-time", "description": description}


def anything(description: str) -> Schema:
    """An object of the caller's own making."""
    return {"type": "object", "minProperties": 1, "description": description}


def several(description: str, items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most, "description": description}
