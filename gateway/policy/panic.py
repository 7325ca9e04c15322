"""A panic of Cedar's engine, which must not end the process, that serves others, and must not pass for an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def unless_it_panics(ask: Callable[[], T]) -> T | None:
    """Returns what `ask` does, or None when Cedar panics.

    Ordinary exceptions are bugs of ours and are raised: uids and contexts that get so far were accepted by Cedar or are
    JSON text, for which it returns NoDecision.
    """
    try:
        return ask()
    except BaseException as panic:  # a Rust panic is one, and its class cannot be imported
        if type(panic).__name__ != "PanicException":
            raise
        return None
