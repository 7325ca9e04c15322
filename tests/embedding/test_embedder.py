"""An embedder: one unit vector of 512 numbers a piece, whatever the model gives, or an error."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import pytest

from gateway.embedding.embedder import NUMBERS, Embedder
from gateway.errors import Unavailable
from gateway.model.memory import Vector


def giving(*numbers: list[float]) -> Embedder:
    async def encode(texts: Sequence[str]) -> list[list[float]]:
        return list(numbers) if numbers else [[float(len(text)), 0.0] for text in texts]

    return Embedder("a model", encode)


def test_fewer_numbers_are_made_a_unit_and_padded() -> None:
    made = asyncio.run(giving([3.0, 4.0]).embed_query("x"))
    assert made == Vector("a model", (0.6, 0.8, *[0.0] * (NUMBERS - 2)))


def test_each_text_gets_the_vectors_of_its_own_pieces() -> None:
    made = asyncio.run(giving().embed(["a", "b" * 2_500, "c"]))
    assert [len(each) for each in made] == [1, 3, 1]


def test_no_texts_are_no_question() -> None:
    assert asyncio.run(giving([1.0]).embed([])) == []


@pytest.mark.parametrize("numbers", [[], [0.0, 0.0], [math.nan, 1.0], [math.inf], [1.0] * (NUMBERS + 1)])
def test_what_is_no_vector_is_an_error(numbers: list[float]) -> None:
    with pytest.raises(Unavailable, match="cannot be used"):
        asyncio.run(giving(numbers).embed_query("x"))


def test_another_number_of_vectors_than_texts_is_an_error() -> None:
    with pytest.raises(Unavailable, match="cannot be used"):
        asyncio.run(giving([1.0], [1.0]).embed(["a"]))
