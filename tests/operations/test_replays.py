"""Replays under way: bounded in number and in time, and ended with whoever asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from contextlib import ExitStack
from typing import Any

import pytest

from gateway.errors import Conflict
from gateway.operations import replays
from gateway.operations.replays import AT_ONCE, Ended, Replays
from tests.builders import Gateway, done
from tests.operations.test_replay import OPENED, PATH
from tests.real.process import PATIENCE_SECONDS, ROOT

UNENDING = """
import asyncio, threading
from gateway.operations.replays import Replays

async def main():
    with Replays().turn("org") as turn:
        begun = threading.Event()
        waiting = asyncio.create_task(turn.run(lambda: (begun.set(), threading.Event().wait())))
        await asyncio.to_thread(begun.wait)
        waiting.cancel()

asyncio.run(main())
print("ended")
"""


def org_of(gateway: Gateway) -> str:
    return gateway.services.state.humans[gateway.owner.id].org_id


def test_an_organisation_has_one_replay_at_a_time(gateway: Gateway) -> None:
    with gateway.services.replays.turn(org_of(gateway)):
        refused = gateway.auditor.post(PATH, {"cedar_text": OPENED})
        assert (refused.status_code, refused.json()["detail"]) == (409, "a replay of the organisation is under way already")
        done(gateway.other_owner.post(PATH, {"cedar_text": OPENED}), 200)
    for _ in range(2):
        done(gateway.auditor.post(PATH, {"cedar_text": OPENED}), 200)


def test_so_many_organisations_have_one_at_once_and_the_next_is_told_to_come_back(gateway: Gateway) -> None:
    with ExitStack() as others:
        for number in range(AT_ONCE):
            others.enter_context(gateway.services.replays.turn(f"org {number}"))
        refused = gateway.auditor.post(PATH, {"cedar_text": OPENED})
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, str(replays.RETRY_SECONDS))
    done(gateway.auditor.post(PATH, {"cedar_text": OPENED}), 200)


def test_a_replay_that_takes_too_long_says_what_it_decided_and_that_it_stopped(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = done(gateway.auditor.post(PATH, {"cedar_text": OPENED}), 200)
    assert (whole["decided"] > 0, whole["stopped"]) == (True, False)
    monkeypatch.setattr(replays, "SECONDS", -1.0)
    cut = done(gateway.auditor.post(PATH, {"cedar_text": OPENED}), 200)
    assert (cut["decided"], cut["stopped"]) == (0, True)


def test_what_it_takes_is_counted_over_all_of_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "SECONDS", 0.02)
    ran = []

    async def work() -> None:
        with Replays().turn("org") as turn:
            while await turn.run(lambda: ran.append(sum(range(100_000)))):
                assert len(ran) < 1_000

    asyncio.run(work())
    assert len(ran) > 0


def test_work_that_nobody_waits_for_ends_and_keeps_its_place_until_then() -> None:
    kept, begun, left = Replays(), threading.Event(), threading.Event()
    ended = []

    async def leave() -> None:
        with kept.turn("org") as turn:

            def work() -> None:
                begun.set()
                left.wait()
                try:
                    turn.between()
                except Ended:
                    ended.append(True)

            waiting = asyncio.create_task(turn.run(work))
            await asyncio.to_thread(begun.wait)
            waiting.cancel()
        with pytest.raises(Conflict), kept.turn("org"):
            pass
        left.set()
        with kept.turn("another") as after:
            await after.run(lambda: None)
        with kept.turn("org") as again:
            assert await again.run(lambda: None)

    asyncio.run(leave())
    assert ended == [True]


def test_what_goes_wrong_in_it_is_told_to_whoever_waits() -> None:
    async def fail() -> None:
        with Replays().turn("org") as turn:
            await turn.run(lambda: [][0])

    with pytest.raises(IndexError):
        asyncio.run(fail())


def test_a_replay_ends_when_its_client_leaves(gateway: Gateway) -> None:
    """The thread is busy with another, so that it waits for as long as its client does."""
    kept, release = gateway.services.replays, threading.Event()
    body = json.dumps({"cedar_text": OPENED}).encode()
    headers = {"authorization": f"Bearer {gateway.auditor.key}", "content-type": "application/json"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def ask() -> None:
        with kept.turn("another") as turn:
            busy = asyncio.create_task(turn.run(lambda: release.wait() and None))
            await gateway.http.app(scope, receive, send)  # type: ignore[arg-type]
            release.set()
            await busy

    watchdog = threading.Timer(PATIENCE_SECONDS, release.set)
    watchdog.start()
    asyncio.run(ask())
    assert (watchdog.is_alive(), sent) == (True, [])
    watchdog.cancel()
    done(gateway.auditor.post(PATH, {"cedar_text": OPENED}), 200)


def test_a_replay_does_not_hold_up_the_end_of_the_process() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", UNENDING], capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_SECONDS, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr
