"""The local model: by meaning, offline, and off the event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from gateway.embedding import local
from gateway.embedding.local import MODEL, local_embedder

pytestmark = pytest.mark.skipif(not local.installed(), reason="the extra `semantic` is not installed")

#: Refuses the network and every file that is opened for writing, then embeds.
OFFLINE = """
import asyncio, os, sys
from gateway.embedding.local import local_embedder

def watch(event, args):
    if event.startswith("socket.connect") or event.startswith("socket.getaddrinfo"):
        raise SystemExit(f"{event} {args}")
    if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise SystemExit(f"writes {args}")

sys.addaudithook(watch)
[[vector]] = asyncio.run(local_embedder().embed(["a text"]))
print(len(vector.numbers))
"""


def closeness(one: str, other: str) -> float:
    async def ask() -> float:
        (mine,), (its,) = await local_embedder().embed([one, other])
        return sum(a * b for a, b in zip(mine.numbers, its.numbers, strict=True))

    return asyncio.run(ask())


def test_what_means_the_same_is_closer_than_what_does_not() -> None:
    assert closeness("the cat sat on the mat", "a feline rests on a rug") > 0.5 > closeness("the cat sat on the mat", "tax law")


def test_it_needs_no_network_and_writes_nothing() -> None:
    done = subprocess.run([sys.executable, "-B", "-c", OFFLINE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "512"), done.stderr


@pytest.mark.parametrize("text", ["x", " ", "😀" * 400, "漢字" * 2_000, "\u202e\u200b", "<s></s>", "C++ AND 89", "a" * 65_536])
def test_any_text_has_vectors(text: str) -> None:
    [vectors] = asyncio.run(local_embedder().embed([text]))
    assert {(vector.model, len(vector.numbers)) for vector in vectors} == {(MODEL, 512)}


def test_a_text_has_the_same_vector_alone_and_among_others() -> None:
    assert closeness("alone", "alone") == pytest.approx(1.0, abs=1e-6)


def test_the_event_loop_goes_on_meanwhile() -> None:
    async def run() -> bool:
        await local_embedder().embed_query("warm")
        work = asyncio.create_task(local_embedder().embed(["a long text. " * 1_000]))
        turns = 0
        while not work.done():
            await asyncio.sleep(0)
            turns += 1
        return turns > 10

    assert asyncio.run(run())
    assert "embedding" in " ".join(thread.name for thread in threading.enumerate())


def test_a_question_and_a_short_text_do_not_wait_for_a_long_one() -> None:
    async def run() -> list[bool]:
        embedder = local_embedder()
        await embedder.embed_query("warm")
        long = asyncio.create_task(embedder.embed(["a long text. " * 1_000]))
        await asyncio.sleep(0)
        waits = []
        for short in (embedder.embed_query("a question"), embedder.embed(["a short text"])):
            await short
            waits.append(long.done())
        await long
        return waits

    assert asyncio.run(run()) == [False, False]
