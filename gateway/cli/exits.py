"""Exit codes that scripts rely on, and the errors that end a command with one of them."""

from __future__ import annotations

DONE = 0
FINDING = 1
USAGE = 2
DIFFERENCE = 3
REFUSED = 4


class CommandError(Exception):
    """Ends a command: one sentence on standard error and an exit code."""

    def __init__(self, sentence: str, code: int = FINDING) -> None:
        super().__init__(sentence)
        self.code = code
