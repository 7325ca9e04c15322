"""Passwords of people: argon2id, off the event loop, and the same work whether there is an account or not."""

from __future__ import annotations

import unicodedata
from functools import cache, partial

from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from gateway.threads import Threads

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
        self._threads = Threads("passwords", threads=THREADS, waiting=WAITING, cause="passwords")
        # Made before anybody asks, or the first unknown account would be known by the time it takes.
        self._threads.begin(_nobodys)

    async def hash(self, password: str) -> str:
        """As `hash_password`."""
        return await self._threads.run(partial(hash_password, password))

    async def check(self, stored: str | None, password: str) -> bool:
        """As `check_password`."""
        return await self._threads.run(partial(check_password, stored, password))


@cache
def _nobodys() -> str:
    return _HASHER.hash("the password of nobody")


def _canonical(password: str) -> str:
    """The composed form: keyboards differ in how they spell one letter."""
    return unicodedata.normalize("NFC", password)
