"""What an AuthZEN client sends, read into questions; every member that is not known is ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from gateway import limits
from gateway.errors import Invalid, echo
from gateway.model.asked import Asked, Named, Properties, Sizes, Sought

Members = Mapping[str, object]
Semantic = Literal["execute_all", "deny_on_first_deny", "permit_on_first_permit"]
SEMANTICS: tuple[Semantic, ...] = ("execute_all", "deny_on_first_deny", "permit_on_first_permit")
MEMBERS = ("subject", "action", "resource", "context")


@dataclass(frozen=True, slots=True)
class Batch:
    """Several questions, each of which may be wrong by itself, how large each is, and when to stop."""

    items: tuple[Asked | Invalid, ...]
    sizes: tuple[int, ...]
    semantic: Semantic


def read_question(body: Members, sought: Sought | None = None) -> Asked:
    """The one question of a body; what is sought is not read but for its type.

    Raises:
        Invalid: a member is missing or of another kind, or it is larger than a body of one question can be.
    """
    subject = read_named(body.get("subject"), "subject", identified=sought != "subject")
    action, action_properties = ("", None) if sought == "action" else read_action(body.get("action"))
    resource = read_named(body.get("resource"), "resource", identified=sought != "resource")
    asked = Asked(subject, action, resource, action_properties, read_properties(body.get("context"), "context"))
    _size(asked, Sizes())
    return asked


def read_batch(body: Members) -> Batch | None:
    """The questions of a body, each with the members of the body for those that it lacks; None when there are none.

    A member that an item has takes the place of the body's whole, and a null is a member too.

    Raises:
        Invalid: the body as a whole is wrong, or holds more questions than one answer takes.
    """
    semantic = _semantic(body.get("options"))
    items = body.get("evaluations")
    if items is None or items == []:
        return None
    if not isinstance(items, list):
        raise _wrong("evaluations", "a list of objects", items)
    if len(items) > limits.EVALUATIONS:
        sentence = f"`evaluations` holds {len(items)} questions, over the limit of {limits.EVALUATIONS}"
        raise Invalid(sentence, field="evaluations")
    for name in MEMBERS:
        if body.get(name) is not None and not isinstance(body[name], dict):
            raise _wrong(name, "an object", body[name])
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise _wrong(f"evaluations[{at}]", "an object", item)
    read, sizes = _items(body, items)
    if sum(sizes) > limits.EVALUATIONS_CHARACTERS:
        most = limits.EVALUATIONS_CHARACTERS // 1024**2
        sentence = f"`evaluations`, each with what it takes from the body, are over the limit of {most} Mi characters in all"
        raise Invalid(sentence, field="evaluations")
    return Batch(tuple(read), tuple(sizes), semantic)


def _items(body: Members, items: Sequence[Members]) -> tuple[list[Asked | Invalid], list[int]]:
    of_body, known = _OfBody(body), Sizes()
    read: list[Asked | Invalid] = []
    sizes: list[int] = []
    for item in items:
        try:
            subject = read_named(item["subject"], "subject") if "subject" in item else of_body.subject
            action, properties = read_action(item["action"]) if "action" in item else of_body.action
            resource = read_named(item["resource"], "resource") if "resource" in item else of_body.resource
            context = read_properties(item["context"], "context") if "context" in item else of_body.context
            asked = Asked(subject, action, resource, properties, context)
            sizes.append(_size(asked, known))
            read.append(asked)
        except Invalid as invalid:
            sizes.append(0)
            read.append(invalid)
    return read, sizes


def _size(asked: Asked, known: Sizes) -> int:
    size = known.of(asked)
    if size > limits.BODY_BYTES:
        raise Invalid(f"the question is over the limit of {limits.BODY_BYTES // 1024} Ki characters")
    return size


class _OfBody:
    """The members of the body, each read once for all the items that lack it."""

    def __init__(self, body: Members) -> None:
        self._body = body

    @cached_property
    def subject(self) -> Named:
        return read_named(self._body.get("subject"), "subject")

    @cached_property
    def action(self) -> tuple[str, Properties | None]:
        return read_action(self._body.get("action"))

    @cached_property
    def resource(self) -> Named:
        return read_named(self._body.get("resource"), "resource")

    @cached_property
    def context(self) -> Properties | None:
        return read_properties(self._body.get("context"), "context")


def read_named(value: object, place: str, *, identified: bool = True) -> Named:
    """A subject or a resource; its id is read where it is `identified` by one.

    Raises:
        Invalid: it is missing, or has no type or no id that is a string.
    """
    if not isinstance(value, dict):
        raise _wrong(place, "an object", value)
    type_ = value.get("type")
    if not isinstance(type_, str):
        raise _wrong(f"{place}.type", "a string", type_)
    id_ = value.get("id") if identified else ""
    if not isinstance(id_, str):
        raise _wrong(f"{place}.id", "a string", id_)
    properties = value.get("properties")
    return Named(type_, id_, properties if properties is None else read_properties(properties, f"{place}.properties"))


def read_action(value: object) -> tuple[str, Properties | None]:
    """The name of an action and what was sent of it.

    Raises:
        Invalid: it is missing, or has no name that is a string.
    """
    if not isinstance(value, dict):
        raise _wrong("action", "an object", value)
    name = value.get("name")
    if not isinstance(name, str):
        raise _wrong("action.name", "a string", name)
    return name, read_properties(value.get("properties"), "action.properties")


def read_properties(value: object, place: str) -> Properties | None:
    """An object of anything, or None.

    Raises:
        Invalid: it is something else.
    """
    if value is None or isinstance(value, dict):
        return value
    raise _wrong(place, "an object", value)


def _semantic(options: object) -> Semantic:
    if options is None:
        return "execute_all"
    if not isinstance(options, dict):
        raise _wrong("options", "an object", options)
    asked = options.get("evaluations_semantic", "execute_all")
    for known in SEMANTICS:
        if asked == known:
            return known
    raise _wrong("options.evaluations_semantic", f"one of {', '.join(SEMANTICS)}", asked)


def _wrong(place: str, expected: str, value: object) -> Invalid:
    if value is None:
        return Invalid(f"`{place}` is required and must be {expected}", field=place)
    return Invalid(f"`{place}` must be {expected}, got {echo(value)}", field=place)
