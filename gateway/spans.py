"""Spans: the parts of a request by name, for a tracer where one is installed; without one they cost next to nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Literal, Protocol

#: The names of all spans there are: none is ever made of what was sent.
Name = Literal["request", "authenticate", "entities", "decide", "store", "log"]


class Span(Protocol):
    """A part of a request. INVARIANT: what is set are names of ours: never content, an id of anybody, or a credential."""

    def set(self, **attributes: str | int) -> None: ...


class _Nothing:
    """The span when nobody traces: one for all."""

    __slots__ = ()

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def set(self, **attributes: str | int) -> None: ...


_NOTHING = _Nothing()
Make = Callable[[Name], AbstractContextManager[Span]]
_make: Make | None = None


def span(name: Name) -> AbstractContextManager[Span]:
    """A span of this name around a block, inside the one around it."""
    return _NOTHING if _make is None else _make(name)


def install(make: Make | None) -> None:
    """Have spans made by a tracer from now on, in the whole process; None ends that."""
    global _make
    _make = make
