"""What a policy reads of a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass

from cedarpy import pst

from gateway.model.entity import EntityUid


def reads_context(policy: pst.Template) -> bool:
    """Whether any condition of a policy mentions the context; where none does, no context can change a decision."""
    return mentions(policy, "context")


def mentions(tree: object, variable: pst.VarName) -> bool:
    """Whether a policy or an expression mentions a variable of the request."""
    return any(isinstance(node, pst.Var) and node.name == variable for node in _nodes(tree))


@dataclass(frozen=True, slots=True)
class Reads:
    """What some policies read: the names of all attributes, of whatever; whether any tag; and the entities that they name
    where something of these is read."""

    attributes: frozenset[str]
    tags: bool
    entities: frozenset[EntityUid]


def reads(policies: Iterable[pst.Template]) -> Reads:
    """Returns what policies read: to an entity that is reached by nothing of it, no decision can come."""
    attributes: set[str] = set()
    tags = False
    entities: set[EntityUid] = set()
    for policy in policies:
        compared: set[int] = set()
        for node in _nodes(policy.clauses):  # outer first
            match node:
                case pst.GetAttr(_, name):
                    attributes.add(name)
                case pst.HasAttr(_, names):
                    attributes.update(names)
                case pst.BinaryOp("get_tag"):
                    tags = True
                case pst.BinaryOp("eq" | "not_eq", left, right):
                    compared |= {id(left), id(right)}
                case pst.BinaryOp("in", _, pst.Set(elements)):
                    compared |= {id(element) for element in elements}
                case pst.BinaryOp("in", _, right) | pst.Is(_, _, right):
                    compared.add(id(right))
                case pst.EntityLit(uid) if id(node) not in compared:
                    entities.add(EntityUid(str(uid.type), uid.id))
                case _:
                    pass
    return Reads(frozenset(attributes), tags, frozenset(entities))


def _nodes(root: object) -> Iterator[object]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        if is_dataclass(node):
            waiting.extend(getattr(node, field.name) for field in fields(node))
        elif isinstance(node, Mapping):
            waiting.extend(node.values())
        elif isinstance(node, tuple):
            waiting.extend(node)
