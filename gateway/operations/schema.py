"""Schemas: what a member of a body, a query string or an answer may be, in the words of JSON Schema 2020-12."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

Schema = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Maybe:
    """A member that may be left out."""

    schema: Schema


Member = Schema | Maybe
Members = Mapping[str, Member]

#: Neither a NUL nor a lone surrogate, which no text of this wire holds; the latter no JSON in UTF-8 can hold anyway.
NO_NUL = r"^[^\u0000]*$"

ANYTHING: Schema = {}
TEXT: Schema = {"type": "string"}
ID: Schema = {"type": "string", "pattern": r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"}
TIME: Schema = {"type": "string", "format": "date-time"}
FUTURE: Schema = {**TIME, "description": "A time in the future.", "examples": ["2100-01-31T12:00:00Z"]}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
OBJECT: Schema = {"type": "object"}
NOTHING: Schema = {"type": "null"}


def text(longest: int, shortest: int = 1) -> Schema:
    """A string of `shortest` to `longest` characters without a NUL."""
    return {"type": "string", "minLength": shortest, "maxLength": longest, "pattern": NO_NUL}


def matching(form: re.Pattern[str] | str, longest: int | None = None) -> Schema:
    """A string that has a form as a whole, of at most `longest` characters."""
    pattern = form if isinstance(form, str) else form.pattern
    most = {} if longest is None else {"maxLength": longest}
    return {"type": "string", "pattern": f"^(?:{pattern})$", **most}


def choice(*words: str) -> Schema:
    """One of some words."""
    return {"type": "string", "enum": list(words)}


def only(value: object) -> Schema:
    """One value."""
    return {"const": value}


def whole(least: int, most: int | None = None) -> Schema:
    """A whole number within a range."""
    return {"type": "integer", "minimum": least, **({} if most is None else {"maximum": most})}


def some(of: Schema, most: int | None = None, *, least: int = 0) -> Schema:
    """A list of `least` to `most` entries."""
    ends = {"minItems": least} if least else {}
    return {"type": "array", "items": of, **ends, **({} if most is None else {"maxItems": most})}


def table(of: Schema) -> Schema:
    """An object whose members have any names and are all of one kind."""
    return {"type": "object", "additionalProperties": of}


def either(*schemas: Schema) -> Schema:
    """Any of some schemas."""
    return {"anyOf": list(schemas)}


def or_null(schema: Schema) -> Schema:
    """The same, or null."""
    kind, words = schema.get("type"), schema.get("enum")
    if "title" in schema or "format" in schema or not isinstance(kind, str):
        return either(schema, NOTHING)
    return {**schema, "type": [kind, "null"], **({"enum": [*words, None]} if isinstance(words, list) else {})}


def unset(schema: Schema) -> Maybe:
    """A member that may be left out, or be null, which says the same."""
    return Maybe(or_null(schema))


def members(of: Members, *, closed: bool = False) -> Schema:
    """An object with these members; with `closed`, and no others."""
    required = [name for name, member in of.items() if not isinstance(member, Maybe)]
    return {
        "type": "object",
        "properties": {name: member.schema if isinstance(member, Maybe) else member for name, member in of.items()},
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if closed else {}),
    }


def shape(title: str = "", /, **of: Member) -> Schema:
    """An object of an answer. One with a title is described once, under it, and referred to."""
    return {**({"title": title} if title else {}), **members(of)}
