"""Bodies on their way: how many requests of one sender may hold a place while their bodies arrive."""

from __future__ import annotations

from collections import Counter

from gateway import limits
from gateway.authn.throttle import network
from gateway.errors import TooManyRequests


class Arriving:
    """Counts them by credential, or by address where none was shown, so that nobody alone takes all places by sending slowly.

    There is no share while there is room: many clients send the head and the body of a request in two packets.

    Only the event loop uses it. `len` of it is how many senders have one on its way.
    """

    def __init__(self) -> None:
        self._bodies: Counter[tuple[str, str]] = Counter()

    def __len__(self) -> int:
        return len(self._bodies)

    def begin(self, credential: str, source: str | None, *, under_way: int) -> tuple[str, str]:
        """Count a body, and return what to end it with; `under_way` are all requests.

        Raises:
            TooManyRequests: there are many, and as many bodies of this sender as may be are on their way.
        """
        sender = (credential, "" if credential else network(source))
        if under_way >= limits.CROWDED_REQUESTS and self._bodies.get(sender, 0) >= limits.BODIES_ARRIVING:
            raise TooManyRequests(
                f"{limits.BODIES_ARRIVING} bodies that you send are still on their way; send the rest of them first",
                retry_after=1,
                by="credential" if credential else "address",
            )
        self._bodies[sender] += 1
        return sender

    def end(self, sender: tuple[str, str]) -> None:
        """It has arrived, or is not waited for any more."""
        self._bodies[sender] -= 1
        if not self._bodies[sender]:
            del self._bodies[sender]
