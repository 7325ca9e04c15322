"""Exit codes that scripts rely on, and the errors that end a command with one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DONE = 0
FINDING = 1
USAGE = 2
DIFFERENCE = 3
REFUSED = 4


class CommandError(Exception):
    """Ends a command: one sentence on standard error and an exit code.

    `problem` is the same for scripts: what the gateway answered, or the sentence alone.
    """

    def __init__(self, sentence: str, code: int = FINDING, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.problem = problem or {"detail": sentence}
