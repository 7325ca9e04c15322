"""Recent: what was made lately, by its key, so many of it and no more."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Keeps at most `most` values, those that were asked for last. Not for more than one thread at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __contains__(self, key: K) -> bool:
        return key in self._kept

    def __getitem__(self, key: K) -> V:
        self._kept.move_to_end(key)
        return self._kept[key]

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """Returns the value of a key, None when it is not kept."""
        try:
            return self[key]
        except KeyError:
            return None

    def of(self, key: K, make: Callable[[], V]) -> V:
        """Returns the value of a key, made when it is not kept; what `make` raises is raised, and kept is nothing."""
        try:
            return self[key]
        except KeyError:
            pass
        value = make()
        self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Keeps a value, and drops the one that was asked for longest ago when there are too many."""
        self._kept[key] = value
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
