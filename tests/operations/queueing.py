"""Requests that are decided and then wait in the queue of changes, one behind the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.builders import Gateway, Response


@contextmanager
def queue_blocked(gateway: Gateway) -> Iterator[Callable[..., Future[Response]]]:
    """Send requests with what is yielded: each returns once its change is queued, and none is made before the end."""
    entered, release = threading.Event(), threading.Event()
    writer: Any = gateway.services.database._writer
    inner, submitted = writer.submit, threading.Semaphore(0)

    def block(_: object) -> None:
        entered.set()
        release.wait()

    def submit(*args: Any, **kw: Any) -> Any:
        made = inner(*args, **kw)
        submitted.release()
        return made

    blocked = gateway.services.database.exclusive(block)
    entered.wait()
    writer.submit = submit
    with ThreadPoolExecutor(4) as pool:

        def queued(send: Callable[..., Response], *args: object) -> Future[Response]:
            answer = pool.submit(send, *args)
            submitted.acquire()
            return answer

        try:
            yield queued
        finally:
            del writer.submit
            release.set()
            blocked.result()
