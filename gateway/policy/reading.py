"""What a policy reads of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from cedarpy import pst


def reads_context(policy: pst.Template) -> bool:
    """Whether any condition of a policy mentions the context; where none does, no context can change a decision."""
    return mentions(policy, "context")


def mentions(tree: object, variable: pst.VarName) -> bool:
    """Whether a policy or an expression mentions a variable of the request."""
    return any(isinstance(node, pst.Var) and node.name == variable for node in nodes(tree))


def nodes(root: object) -> Iterator[object]:
    """Yields a policy or an expression and all that it is made of."""
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
