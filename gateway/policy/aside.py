"""Aside: policies are read again while others decide, so that whoever is being answered meanwhile hardly notices.

Reading thousands of policies takes some seconds, of which Cedar holds the interpreter for tenths at a time: all checks are
those of a process of its own, which gives way to this one. `python -m gateway.policy.aside` is that process: it reads texts
as JSON, and writes what is wrong with them.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gateway.policy import child, guardrails
from gateway.policy.bundle import Bundle
from gateway.policy.finding import PolicyError

#: Checking 5,000 policies takes some 5 s of a processor; a busy machine may need many times that.
SECONDS = 300
#: How far the checking process steps back behind those that answer; 19 would never end on a busy machine.
NICE = 10
#: One at a time, as collection is off and on again for the whole process, and so many that wait; whoever calls `load` keeps
#: to it.
PROCESSES, WAITING = 1, 4
COMMAND = ("-m", "gateway.policy.aside")


def load(schema: str, policies: Mapping[str, str], shipped: Mapping[str, str]) -> Bundle:
    """Returns the bundle of `policies`, by file name, checked as `guardrails.load` does; raises `PolicyError`.

    It takes seconds: call it on a thread of its own. A text that ends the process which reads it does not load.
    """
    given = json.dumps({"schema": schema, "policies": dict(policies), "shipped": dict(shipped)})
    if findings := child.ask(COMMAND, given, seconds=SECONDS):
        raise PolicyError(findings)
    with uncollected():
        return Bundle.from_text(schema, policies, house_rules=False, checked=True)


@contextmanager
def uncollected() -> Iterator[None]:
    """No collection of garbage within, and none ever of what was made: trees of policies and stored entities stay as long as
    they decide, and looking through all of them holds everybody up for some tenths of a second. What is no more referred to
    goes as ever.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


def main() -> None:
    """Reads from standard input and writes findings to standard output."""
    os.nice(NICE)
    child.answer(guardrails.load)


if __name__ == "__main__":
    main()
