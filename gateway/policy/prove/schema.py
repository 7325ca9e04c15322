"""What of a schema can be encoded."""

from __future__ import annotations

from gateway.policy.schema import ActionOf, RecordOf, Schema, SetOf, Type


class Unprovable(Exception):
    """Something is outside of what can be encoded; the message says what."""


def encodable(types: Schema) -> Schema:
    """Returns a schema; raises `Unprovable` when it has namespaces, an enumerated type, or a value that is an action."""
    for name, shape in types.entities.items():
        if "::" in name:
            raise Unprovable("a schema with `namespace`")
        if shape.ids is not None:
            raise Unprovable(f"the enumerated type `{name}`")
        for type_ in (shape.attributes, *([shape.tags] if shape.tags is not None else [])):
            _encodable(type_)
    for asked in types.actions.values():
        _encodable(asked.context)
    if any(uid.type != "Action" for uid in types.groups):
        raise Unprovable("a schema with `namespace`")
    return types


def _encodable(type_: Type) -> None:
    match type_:
        case ActionOf(name):
            raise Unprovable(f"the type `{name}`")
        case SetOf(item):
            _encodable(item)
        case RecordOf(fields):
            for known in fields.values():
                _encodable(known.type)
        case _:
            pass
