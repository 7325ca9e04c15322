"""An OpenAI-compatible endpoint, a real one on this machine: what it is sent, and what of it is believed."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.embedding import http
from gateway.embedding.embedder import NUMBERS
from gateway.embedding.http import BATCH, TEXT_BYTES, http_embedder
from gateway.errors import Unavailable
from tests.embedding.endpoint import Answer, Endpoint, serving, vectors


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as made:
        yield made


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BACK_OFF_SECONDS", 0.0)


def failing(times: int, status: int) -> Answer:
    left = [status] * times

    def answer(asked: dict[str, Any]) -> tuple[int, object]:
        return (left.pop(), {"error": "told you so"}) if left else vectors(4)(asked)

    return answer


def test_texts_are_sent_with_the_model_and_the_key_and_come_back_in_order(endpoint: Endpoint) -> None:
    made = asyncio.run(endpoint.embedder("a key").embed(["one", "two"]))
    each = {"model": "a-model", "encoding_format": "float"}
    # The first text goes alone first, to see what the model gives.
    assert endpoint.asked == [{**each, "input": ["one"]}, {**each, "input": ["one", "two"]}]
    assert endpoint.shown == ["Bearer a key"] * 2
    assert [each[0].numbers[0] for each in made] == [1 / 2, 2 / 7**0.5]
    assert {len(each[0].numbers) for each in made} == {NUMBERS}


def test_without_a_key_none_is_shown(endpoint: Endpoint) -> None:
    asyncio.run(endpoint.embedder().embed_query("one"))
    assert set(endpoint.shown) == {None}


def test_many_texts_go_in_batches(endpoint: Endpoint) -> None:
    asyncio.run(endpoint.embedder().embed([str(n) for n in range(BATCH + 1)]))
    assert [len(asked["input"]) for asked in endpoint.asked] == [1, BATCH, 1]


def test_a_larger_model_is_asked_down_once_and_for_all(endpoint: Endpoint) -> None:
    endpoint.answer = vectors(1_536)
    embedder = endpoint.embedder()
    for _ in range(2):
        asyncio.run(embedder.embed_query("one"))
    assert [asked.get("dimensions") for asked in endpoint.asked] == [None, NUMBERS, NUMBERS]


@pytest.mark.parametrize("shortened", [1_536, 256 + NUMBERS])
def test_one_that_does_not_go_down_is_refused(endpoint: Endpoint, shortened: int) -> None:
    endpoint.answer = vectors(1_536, shortened)
    with pytest.raises(Unavailable, match="cannot be used"):
        asyncio.run(endpoint.embedder().embed_query("one"))


def test_a_model_that_changes_its_size_is_refused(endpoint: Endpoint) -> None:
    embedder = endpoint.embedder()
    asyncio.run(embedder.embed_query("one"))
    endpoint.answer = vectors(5)
    with pytest.raises(Unavailable, match="cannot be used"):
        asyncio.run(embedder.embed_query("one"))


@pytest.mark.parametrize("wrong", [1, 5, 1_536])
def test_one_answer_of_another_size_fails_one_request(endpoint: Endpoint, wrong: int) -> None:
    embedder = endpoint.embedder()
    for _ in range(2):
        sizes = iter([wrong, 4, 4, 4])
        endpoint.answer = lambda asked, sizes=sizes: vectors(next(sizes), 4)(asked)  # type: ignore[misc]  # a default binds it
        with pytest.raises(Unavailable, match="cannot be used"):
            asyncio.run(embedder.embed_query("one"))
        asyncio.run(embedder.embed_query("one"))


def test_a_model_that_has_changed_its_size_for_good_is_believed_when_it_says_so_twice(endpoint: Endpoint) -> None:
    embedder = endpoint.embedder()
    endpoint.answer = vectors(1)
    asyncio.run(embedder.embed_query("one"))
    endpoint.answer = vectors(4)
    with pytest.raises(Unavailable, match="cannot be used"):
        asyncio.run(embedder.embed_query("one"))
    asyncio.run(embedder.embed_query("one"))


def test_an_answer_that_trickles_is_not_waited_for(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BATCH_SECONDS", 0.2)
    endpoint.more = 100_000
    with pytest.raises(Unavailable, match="does not answer"):
        asyncio.run(endpoint.embedder().embed_query("one"))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_asked_again(endpoint: Endpoint, status: int) -> None:
    endpoint.answer = failing(2, status)
    asyncio.run(endpoint.embedder().embed_query("one"))
    assert len(endpoint.asked) == 2 + 2


@pytest.mark.parametrize(("times", "status", "asked"), [(9, 503, 3), (9, 401, 1), (9, 400, 1), (9, 302, 1)])
def test_what_does_not_pass_is_an_error_that_says_nothing_of_the_endpoint(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture, times: int, status: int, asked: int
) -> None:
    endpoint.answer = failing(times, status)
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as refused:
        asyncio.run(endpoint.embedder("a-secret").embed_query("a private text"))
    assert str(refused.value) == "the embedding endpoint does not answer; try again"
    assert len(endpoint.asked) == asked
    assert all(secret not in caplog.text for secret in ("a-secret", "a private text", "told you so"))


@pytest.mark.parametrize(
    "answer",
    [
        b"no json",
        b"[" * 200_000,
        b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"data": [{"index": 0, "embedding": [1]}]}' + b" " * 2 * TEXT_BYTES,
        gzip.compress(b'{"data": [{"index": 0, "embedding": [1]}]}', mtime=0),
        [],
        {"data": []},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [None]}]},
        {"data": [{"index": 0, "embedding": "1234"}]},
        {"data": [{"index": 0, "embedding": ["1", "2", "3", "4"]}]},
        {"data": [{"index": 0, "embedding": [True] * 4}]},
        {"data": [{"index": 0, "embedding": {"1": 2}}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [0.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [10**400]}]},
        b'{"data": [{"index": 0, "embedding": [NaN]}]}',
    ],
)
def test_an_answer_that_is_no_vector_is_refused(endpoint: Endpoint, answer: object) -> None:
    embedder = endpoint.embedder()
    good, endpoint.answer = endpoint.answer, lambda _: (200, answer)
    with pytest.raises(Unavailable, match="cannot be used"):
        asyncio.run(embedder.embed_query("one"))
    endpoint.answer = good
    asyncio.run(embedder.embed_query("one"))


def test_nobody_there_is_the_same_error(endpoint: Endpoint) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        asyncio.run(http_embedder("http://127.0.0.1:1/v1", "a-model", None).embed_query("one"))
