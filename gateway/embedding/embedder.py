"""An embedder: texts in, vectors out, whatever makes the numbers."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from gateway.embedding.pieces import pieces
from gateway.errors import Unavailable
from gateway.model.memory import Vector

#: Numbers of a stored vector. A model with fewer is padded with zeros, which changes no angle.
NUMBERS = 512
UNUSABLE = "the embedding model gave an answer that cannot be used"

Encode = Callable[[Sequence[str]], Awaitable[list[list[float]]]]


@dataclass(frozen=True, slots=True)
class Embedder:
    """A model by its name, and what turns texts into its numbers: one list a text, of any length but zero.

    `encode_question` is the same where a question does not wait behind texts; None where there is no difference.
    """

    model: str
    encode: Encode
    encode_question: Encode | None = None

    async def embed(self, texts: Sequence[str]) -> list[tuple[Vector, ...]]:
        """The vectors of each text, one a piece, in the order of the pieces.

        Raises:
            Unavailable: the model does not answer, or with something that is no vector.
        """
        cut = [pieces(text) for text in texts]
        flat = [piece for each in cut for piece in each]
        numbers = iter(await self._vectors(self.encode, flat))
        return [tuple(next(numbers) for _ in each) for each in cut]

    async def embed_query(self, text: str) -> Vector:
        """The vector of a question, which is never cut.

        Raises:
            Unavailable: as `embed`.
        """
        [vector] = await self._vectors(self.encode_question or self.encode, [text])
        return vector

    async def _vectors(self, encode: Encode, texts: Sequence[str]) -> list[Vector]:
        encoded = await encode(texts) if texts else []
        if len(encoded) != len(texts):
            raise Unavailable(UNUSABLE)
        return [Vector(self.model, _unit(numbers)) for numbers in encoded]


def _unit(numbers: Sequence[float]) -> tuple[float, ...]:
    """The same direction with the length 1, padded with zeros."""
    length = math.hypot(*numbers)
    if not 0 < length < math.inf or len(numbers) > NUMBERS:
        raise Unavailable(UNUSABLE)
    return (*(number / length for number in numbers), *[0.0] * (NUMBERS - len(numbers)))
