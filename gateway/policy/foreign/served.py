"""The foreign store that is served: the last that has loaded of what lies in its directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from gateway.policy.aside import uncollected
from gateway.policy.finding import Finding, PolicyError
from gateway.policy.foreign.loading import load
from gateway.policy.foreign.store import ForeignStore


class StoreUnfit(PolicyError):
    """The store of `directory` does not load, with every finding."""

    def __init__(self, directory: Path, findings: Iterable[Finding]) -> None:
        super().__init__(findings)
        self.directory = directory


@dataclass(slots=True)
class Served:
    """Answers by `store`; `failure` says why what lies in the directory by now has not taken its place."""

    directory: Path
    store: ForeignStore = field(repr=False)
    failure: str | None = None

    @classmethod
    def load(cls, directory: Path) -> Served:
        """Returns the store of a directory as it is served from now on; raises `StoreUnfit`."""
        try:
            return cls(directory, _load(directory))
        except PolicyError as refused:
            raise StoreUnfit(directory, refused.findings) from refused

    def load_again(self) -> None:
        """Takes what lies in the directory by now; raises `PolicyError`, and then nothing but `failure` has changed.

        Not twice at a time: collection of garbage is off meanwhile, and then on again.

        INVARIANT: a store is never changed. Who has begun to ask one asks it to the end.
        """
        try:
            self.store, self.failure = _load(self.directory), None
        except PolicyError as refused:
            self.failure = str(refused)
            raise


def _load(directory: Path) -> ForeignStore:
    with uncollected():
        return load(directory)
