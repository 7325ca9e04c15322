"""A finding: what is wrong with a policy, and where it stands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is wrong; `line` counts from 1 and is 0 for a whole file, `policy_id` is empty when unknown."""

    file: str
    line: int
    policy_id: str
    message: str

    def __str__(self) -> str:
        named = f"`{self.policy_id}`: " if self.policy_id else ""
        return f"{self.file}:{self.line}: {named}{self.message}"


class PolicyError(Exception):
    """A policy set is refused; `findings` hold everything that is wrong with it, in the order of the files."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(sorted(findings))
        super().__init__("\n".join(map(str, self.findings)))
