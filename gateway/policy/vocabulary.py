"""What a query needs to know of a schema: entity types, whose attributes are columns, and what actions are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.policy.schema import Field, Primitive, Reference, Schema, SetOf

#: The types of which a column can be, but for entities.
COLUMNS = frozenset(("Bool", "Long", "String", "decimal"))


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of an attribute; `many` is a set of it. `name` is one of `COLUMNS` or an entity type, "" for all else."""

    name: str
    entity: bool = False
    many: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """An entity type: what it is directly in, and its attributes."""

    parents: tuple[str, ...]
    attributes: Mapping[str, Kind]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`entities` by type, of those outside namespaces; of each action that names any, its resource and principal types."""

    entities: Mapping[str, Shape]
    resources: Mapping[str, frozenset[str]]
    principals: Mapping[str, frozenset[str]]
    types: Schema = field(repr=False)

    def above(self, type_: str) -> frozenset[str]:
        """Returns every type of which an entity of a type could be within another entity."""
        return self.types.above(type_)


def of(types: Schema) -> Vocabulary:
    """Returns what there is outside of namespaces."""
    entities = {name: shape for name, shape in types.entities.items() if "::" not in name}
    actions = {uid.id: types.actions[uid.id] for uid in types.groups if uid.type == "Action" and uid.id in types.actions}
    return Vocabulary(
        {
            name: Shape(shape.parents, {attribute: _kind(known) for attribute, known in shape.attributes.fields.items()})
            for name, shape in entities.items()
        },
        {id_: frozenset(shape.resources) for id_, shape in actions.items()},
        {id_: frozenset(shape.principals) for id_, shape in actions.items()},
        types,
    )


def _kind(known: Field) -> Kind:
    many = isinstance(known.type, SetOf)
    match known.type.item if isinstance(known.type, SetOf) else known.type:
        case Reference(name=name) if "::" not in name:
            return Kind(name, entity=True, many=many, optional=known.optional)
        case Primitive(name=name) if name in COLUMNS:
            return Kind(name, many=many, optional=known.optional)
        case _:
            return Kind("", many=many, optional=known.optional)
