"""Passwords of people: argon2id, off the event loop, and the same work whether there is an account or not."""

from __future__ import annotations

import asyncio
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from gateway.errors import Unavailable

#: One check takes 64 MiB and some tens of milliseconds; this many run at once and the others wait.
THREADS = 2
WAITING = 64

# argon2id with the library's defaults (RFC 9106, low-memory profile: 3 passes over 64 MiB, 4 lanes).
_HASHER = PasswordHasher()


def hash_password(password: str) -> str:
    """The hash of a password, with its salt and its cost in it."""
    return _HASHER.hash(_canonical(password))


def check_password(stored: str | None, password: str) -> bool:
    """Whether a password is the one; None, for no account or none set, is false after the same work."""
    try:
        _HASHER.verify(stored if stored is not None else _nobodys(), _canonical(password))
    except VerifyMismatchError:
        return False
    return stored is not None


class Passwords:
    """Hashes and checks on a few threads of its own, so that neither the loop nor the readers of the store wait.

    Raises:
        Unavailable: too many are waiting already.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords")
        self._under_way = 0
        # Made before anybody asks, or the first unknown account would be known by the time it takes.
        self._threads.submit(_nobodys)

    async def hash(self, password: str) -> str:
        """As `hash_password`."""
        self._enter()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, hash_password, password)
        finally:
            self._under_way -= 1

    async def check(self, stored: str | None, password: str) -> bool:
        """As `check_password`."""
        self._enter()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, check_password, stored, password)
        finally:
            self._under_way -= 1

    def _enter(self) -> None:
        if self._under_way >= THREADS + WAITING:
            raise Unavailable("too many passwords are being checked right now; try again", cause="passwords")
        self._under_way += 1


@cache
def _nobodys() -> str:
    return _HASHER.hash("the password of nobody")


def _canonical(password: str) -> str:
    """The composed form: keyboards differ in how they spell one letter."""
    return unicodedata.normalize("NFC", password)
