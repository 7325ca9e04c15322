"""Ids: those that the gateway gives out, random UUIDs (version 4) made some hundred at a time, and the network's form."""

from __future__ import annotations

import os
import re
from collections import deque
from typing import Final

#: The form of a remote connection's id, which the network gives out.
REMOTE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{3,63}")
MADE_AT_ONCE = 256

# Asking the system for randomness lets go of the interpreter, and a request then waits for the writer's thread to give it
# back: 70 us for a call of 0.7. A deque is safe between threads; a process never forks once it serves.
_ready: deque[str] = deque()


def new_id() -> str:
    """A fresh id: a lower-case UUID of version 4, from the system's randomness."""
    while True:
        try:
            return _ready.popleft()
        except IndexError:
            _ready.extend(_made())


def _made() -> list[str]:
    drawn = os.urandom(16 * MADE_AT_ONCE).hex()
    return [_spelled(drawn[start : start + 32]) for start in range(0, len(drawn), 32)]


def _spelled(digits: str) -> str:
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
