"""The keys of an issuer as they are held: fetched on a thread of their own, seldom, and not kept for ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.authn.jwks import KeySetUnusable, PublicKey, read_key_set
from gateway.authn.key_source import FETCH_SECONDS, Load
from gateway.errors import Unavailable

#: Older ones serve while new ones are fetched.
FRESH = timedelta(minutes=10)
#: Keys that could not be fetched again serve this long: then a key that the issuer has withdrawn is refused for certain.
KEPT = timedelta(hours=1)
#: Between two fetches, whoever asks for them and whether they succeed.
COOL_DOWN = timedelta(seconds=30)
#: Requests that wait for a fetch at once; a slow issuer must not hold all there are.
WAITING = 64

NO_KEYS = "the keys of the token issuer cannot be had now; try again"

_log = logging.getLogger("gateway.authn")


@dataclass(frozen=True, slots=True)
class _Held:
    keys: Mapping[str, PublicKey]
    since: datetime


class IssuerKeys:
    """Keys by `kid`.

    INVARIANT: nothing that a request holds says where keys come from; it can make a fetch happen, once in `COOL_DOWN`.
    """

    def __init__(self, load: Load) -> None:
        self._load = load
        self._held: _Held | None = None
        self._lock = threading.Lock()
        self._tried: datetime | None = None
        self._under_way: Future[None] | None = None
        self._waiting = 0

    def load(self, now: datetime) -> None:
        """Read the keys here and now.

        Raises:
            KeySetUnusable: there are none to be had.
        """
        self._held = _Held(read_key_set(self._load()), now)

    def key(self, kid: str, now: datetime) -> PublicKey | None:
        """A key that may verify now."""
        held = self._held
        return held.keys.get(kid) if held is not None and _within(held.since, now, KEPT) else None

    async def prepare(self, kid: str, now: datetime) -> None:
        """Have new keys fetched when this one is not among them or they are old, and wait only for one that is not there.

        Raises:
            Unavailable: there are no keys at all, or too many requests wait for them.
        """
        known, held = self.key(kid, now) is not None, self._held
        if known and held is not None and _within(held.since, now, FRESH):
            return
        under_way = self._start(now)
        if known:
            return
        if under_way is not None:
            await self._wait(under_way)
        held = self._held
        if held is None or not _within(held.since, now, KEPT):
            raise Unavailable(NO_KEYS, retry_after=int(COOL_DOWN.total_seconds()))

    def _start(self, now: datetime) -> Future[None] | None:
        """The fetch that is under way, begun if one may begin; else None."""
        with self._lock:
            if self._under_way is not None and not self._under_way.done():
                return self._under_way
            if self._tried is not None and _within(self._tried, now, COOL_DOWN):
                return None
            self._tried, self._under_way = now, Future()
            # A request that goes away must not take the fetch of the others with it.
            self._under_way.set_running_or_notify_cancel()
            # A daemon: it holds nothing that an end of the process could harm, and must not hold that up.
            threading.Thread(target=self._run, args=(self._under_way, now), name="issuer-keys", daemon=True).start()
            return self._under_way

    def _run(self, done: Future[None], now: datetime) -> None:
        try:
            self.load(now)
        except KeySetUnusable as wrong:
            _log.warning("the key set of the token issuer: %s", wrong)
        finally:
            done.set_result(None)

    async def _wait(self, under_way: Future[None]) -> None:
        if self._waiting >= WAITING:
            raise Unavailable(NO_KEYS)
        self._waiting += 1
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.wrap_future(under_way), FETCH_SECONDS)
        finally:
            self._waiting -= 1


def _within(since: datetime, now: datetime, most: timedelta) -> bool:
    """Whether no more than this has passed; a clock that was set back counts as one that moved on."""
    return abs(now - since) < most
