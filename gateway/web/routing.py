"""Routing on the path as it was sent: one segment, one decoding, so that an encoded slash stays inside its segment."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import quote, unquote_to_bytes

from starlette.types import Scope

from gateway.operations.operation import Operation

#: Deeper than any route, so that a path of a thousand slashes is not walked.
MOST_SEGMENTS = 16

_PARAMETER = re.compile(r"\{([a-z_]+)\}")
_NO_SEGMENTS = frozenset(("", ".", ".."))
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Route:
    """One method and path of the application, the operation behind it and the names of its parameters in order."""

    method: str
    path: str
    operation: Operation
    parameters: tuple[str, ...]


@dataclass(slots=True)
class _Node:
    static: dict[str, _Node] = field(default_factory=dict)
    parameter: _Node | None = None
    methods: dict[str, Route] = field(default_factory=dict)


class Router:
    """Finds the routes of a path. Fixed segments win over parameters."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = _Node()
        self._fixed: dict[bytes, dict[str, Route]] = {}
        self.routes: tuple[Route, ...] = tuple(self._add(operation) for operation in operations)

    def find(self, raw_path: bytes) -> tuple[dict[str, Route], tuple[str, ...]] | None:
        """The routes of a path by method, and its decoded parameters; None when there is no such path."""
        fixed = self._fixed.get(raw_path)
        if fixed is not None:
            return fixed, ()
        segments = _segments(raw_path)
        return _descend(self._root, segments, ()) if segments is not None else None

    def _add(self, operation: Operation) -> Route:
        names: list[str] = []
        node = self._root
        for segment in operation.path.removeprefix("/").split("/"):
            named = _PARAMETER.fullmatch(segment)
            if named is not None:
                names.append(named[1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.static.setdefault(segment, _Node())
        route = Route(operation.method, operation.path, operation, tuple(names))
        if node.methods.setdefault(route.method, route) is not route:
            raise ValueError(f"two operations answer {route.method} {route.path}")
        if not names:
            self._fixed[operation.path.encode("ascii")] = node.methods
        return route


def raw_path(scope: Scope) -> bytes:
    """The path as sent; a server that does not pass it on has already lost encoded slashes."""
    sent = scope.get("raw_path")
    return bytes(sent) if sent is not None else quote(str(scope["path"])).encode("ascii")


def _segments(path: bytes) -> list[str] | None:
    """Decoded segments, or None for a path that no route has: empty and dot segments, NUL, bad escapes, bad UTF-8."""
    if not path.startswith(b"/") or path.count(b"/") > MOST_SEGMENTS or b"\x00" in path:
        return None
    if b"%" in path and (b"%00" in path or _BAD_ESCAPE.search(path)):
        return None
    try:
        if b"%" in path:
            segments = [unquote_to_bytes(part).decode("utf-8") for part in path[1:].split(b"/")]
        else:
            segments = path[1:].decode("utf-8").split("/")
    except UnicodeDecodeError:
        return None
    if not _NO_SEGMENTS.isdisjoint(segments):
        return None
    return segments


def _descend(node: _Node, segments: list[str], taken: tuple[str, ...]) -> tuple[dict[str, Route], tuple[str, ...]] | None:
    if not segments:
        return (node.methods, taken) if node.methods else None
    here, rest = segments[0], segments[1:]
    fixed = node.static.get(here)
    found = _descend(fixed, rest, taken) if fixed is not None else None
    if found is None and node.parameter is not None:
        found = _descend(node.parameter, rest, (*taken, here))
    return found
