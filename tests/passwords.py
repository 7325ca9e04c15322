"""Passwords that cost next to nothing, because a test run hashes and checks thousands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from argon2 import PasswordHasher

from gateway.authn import passwords


@contextmanager
def cheap() -> Iterator[None]:
    """Argon2id of this process takes one pass over 8 KiB until the end; what a password costs is in its hash."""
    real = passwords._HASHER
    passwords._HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    passwords._nobodys.cache_clear()
    yield
    passwords._HASHER = real
    passwords._nobodys.cache_clear()
