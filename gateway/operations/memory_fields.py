"""Inputs about memory, each in its one normal form: what is written, asked for and granted is read here and compares equal."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

from gateway import limits
from gateway.errors import Invalid, echo
from gateway.model.ids import REMOTE_ID
from gateway.model.memory import LAYERS, TIERS, Layer, LayerFields, Match, Narrow, Tier
from gateway.operations.fields import Fields
from gateway.operations.wire.memory import DID, MATCHES

T = TypeVar("T", bound=str)

SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
SLUG_FORM = "a project of 1 to 64 of a-z, 0-9, `.`, `_` and `-`, beginning with a letter or a digit"
_DID = re.compile(DID)
#: Which fields belong to which layer.
LAYER_FIELDS: dict[Layer, tuple[str, ...]] = {
    "fact": (),
    "timeline": ("title", "occurred_at"),
    "session": ("channel", "started_at", "ended_at"),
    "chunk": (),
}

_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def refuse_nulls(fields: Fields, *, allowed: Sequence[str] = ()) -> None:
    """Refuse an explicit null: it does not say whether nothing or everything is meant."""
    for field, value in fields.members.items():
        if value is None and field not in allowed:
            raise Invalid(f"`{fields.name(field)}` must not be null: leave it out", field=fields.name(field))


def project(fields: Fields, field: str = "project_id") -> str:
    """A project that must be named, as it is stored: NFC, and ASCII letters in lower case."""
    value = fields.members.get(field)
    made = unicodedata.normalize("NFC", value).translate(_ASCII_LOWER) if isinstance(value, str) else ""
    if not SLUG.fullmatch(made):
        raise fields.wrong(field, SLUG_FORM)
    return made


def optional_project(fields: Fields, field: str = "project_id") -> str | None:
    """A project, or None when the field is absent."""
    return project(fields, field) if field in fields else None


def tags(fields: Fields, field: str = "tags", *, most: int = limits.MEMORY_TAGS) -> tuple[str, ...] | None:
    """A set of tags, sorted, each in NFC and without white space around it; None when the field is absent."""
    values = _list(fields, field)
    if values is None:
        return None
    made: set[str] = set()
    for index, value in enumerate(values):
        tag = unicodedata.normalize("NFC", value).strip() if isinstance(value, str) else ""
        if not 1 <= len(tag) <= limits.TAG_CHARACTERS:
            raise _wrong_entry(fields, field, index, f"a tag of 1 to {limits.TAG_CHARACTERS} characters", value)
        made.add(tag)
    if len(made) > most:
        raise Invalid(f"`{fields.name(field)}` must hold at most {most} tags", field=fields.name(field))
    return tuple(sorted(made))


def choices(fields: Fields, field: str, known: Sequence[T]) -> tuple[T, ...] | None:
    """Some of the known words, in their order; None when the field is absent."""
    values = _list(fields, field)
    if values is None:
        return None
    for index, value in enumerate(values):
        if not isinstance(value, str) or value not in known:
            raise _wrong_entry(fields, field, index, f"one of {', '.join(known)}", value)
    return tuple(word for word in known if word in values)


def tiers(fields: Fields, field: str = "classifications") -> tuple[Tier, ...] | None:
    """Some tiers, from the least strict to the strictest; None when the field is absent."""
    return choices(fields, field, TIERS)


def layers(fields: Fields, field: str = "layers") -> tuple[Layer, ...] | None:
    """Some layers; None when the field is absent."""
    return choices(fields, field, LAYERS)


def tags_match(fields: Fields) -> Match:
    """Whether a row must have any of the tags, which is the default, or all of them."""
    return fields.optional_choice("tags_match", MATCHES, "any")


def did(fields: Fields, field: str) -> str:
    """A decentralised identifier; its method is not looked up."""
    value = fields.members.get(field)
    if not isinstance(value, str) or len(value) > limits.REF_CHARACTERS or not _DID.fullmatch(value):
        raise fields.wrong(field, f"an identifier such as did:web:a.example, of at most {limits.REF_CHARACTERS} characters")
    return value


def remote_id(fields: Fields, field: str) -> str:
    """The id of a remote connection, in the network's form."""
    value = fields.members.get(field)
    if not isinstance(value, str) or not REMOTE_ID.fullmatch(value):
        raise fields.wrong(field, "the id of a connection")
    return value


def memory_text(fields: Fields) -> str:
    """The text of a row: anything but nothing, up to 64 KiB in UTF-8."""
    text = fields.text("text", longest=limits.MEMORY_TEXT_BYTES)
    if len(text.encode()) > limits.MEMORY_TEXT_BYTES:
        raise Invalid(f"`text` must be of at most {limits.MEMORY_TEXT_BYTES // 1024} KiB in UTF-8", field="text")
    return text


def layer_fields(fields: Fields, layer: Layer) -> LayerFields:
    """What a row of this layer says beside its text; a field of another layer is refused."""
    for other, names in LAYER_FIELDS.items():
        for name in names:
            if other != layer and name in fields:
                raise Invalid(f"`{name}` belongs to the layer {other}, and this is a {layer}", field=name)
    extra = LayerFields(
        title=fields.optional_text("title", longest=limits.TEXT_CHARACTERS),
        occurred_at=fields.optional_timestamp("occurred_at"),
        channel=fields.optional_text("channel", longest=limits.NAME_CHARACTERS),
        started_at=fields.optional_timestamp("started_at"),
        ended_at=fields.optional_timestamp("ended_at"),
    )
    if extra.started_at is not None and extra.ended_at is not None and extra.ended_at < extra.started_at:
        raise fields.wrong("ended_at", "not before `started_at`")
    return extra


def narrow_of_body(body: Fields) -> Narrow:
    """What the body of a search narrows itself to."""
    return Narrow(
        project_id=optional_project(body),
        tags=tags(body),
        tags_match=tags_match(body),
        layers=layers(body),
        classifications=tiers(body),
    )


def narrow_of_query(query: Fields) -> Narrow:
    """What a query string narrows itself to; `tag`, `layer` and `classification` may be repeated."""
    return Narrow(
        project_id=optional_project(query),
        tags=tags(query, "tag"),
        tags_match=tags_match(query),
        layers=layers(query, "layer"),
        classifications=tiers(query, "classification"),
    )


def _list(fields: Fields, field: str) -> list[object] | None:
    if field not in fields:
        return None
    value = fields.members[field]
    if not isinstance(value, list):
        raise fields.wrong(field, "a list")
    return value


def _wrong_entry(fields: Fields, field: str, index: int, expected: str, value: object) -> Invalid:
    return Invalid(f"`{fields.name(field)}[{index}]` must be {expected}, got {echo(value)}", field=fields.name(field))
