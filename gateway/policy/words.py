"""The declarations of a schema and their words: what is not expected is refused, and the refusal says where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.policy.text import tokens

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
#: How Cedar writes the characters of a string that it does not write as they are.
ESCAPED = re.compile(r"\\(?:u\{([0-9a-f]{1,6})\}|(.))", re.DOTALL)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\", "'": "'", '"': '"'}


class SchemaRefused(ValueError):
    """A schema is not understood in full; the message names the declaration, and the words in it."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One declaration: its name is that of a type, qualified, or the id of an action; `words` follow, to the semicolon."""

    kind: str
    namespace: str
    name: str
    words: list[str]


def declarations(text: str) -> Iterator[Declaration]:
    """Yields what Cedar's text of a schema declares; raises `SchemaRefused`."""
    if text.startswith("<"):  # as one with a common type and an entity type of one name in a namespace
        raise SchemaRefused(f"schema: Cedar does not write it: {text}")
    words = Words("schema", [token[0] for token in tokens(text)])
    namespace = ""
    while words.next():
        if namespace and words.maybe("}"):
            namespace = ""
            continue
        words.annotations()
        if not namespace and words.maybe("namespace"):
            namespace = words.path()
            words.take("{")
        elif words.maybe("action"):
            yield Declaration("action", namespace, words.string(), words.statement())
        elif (kind := words.next()) in ("type", "entity"):
            words.take(kind)
            yield Declaration(kind, namespace, qualified(namespace, words.name()), words.statement())
        else:
            raise words.refused("a declaration is expected")
    if namespace:
        raise words.refused("`}` is expected")


def qualified(namespace: str, name: str) -> str:
    """Returns the name of something in a namespace, which is empty for none."""
    return f"{namespace}::{name}" if namespace else name


class Words:
    """Takes words from the front of a part of a schema; `place` is what a refusal calls the part."""

    def __init__(self, place: str, words: list[str]) -> None:
        self._place = place
        self._words = words
        self._at = 0

    def next(self) -> str:
        """The word that would be taken; nothing at the end."""
        return self._words[self._at] if self._at < len(self._words) else ""

    def maybe(self, word: str) -> bool:
        found = self.next() == word
        self._at += found
        return found

    def take(self, *expected: str) -> None:
        for word in expected:
            if not self.maybe(word):
                raise self.refused(f"`{word}` is expected")

    def name(self) -> str:
        if not NAME.fullmatch(self.next()):
            raise self.refused("a name is expected")
        self._at += 1
        return self._words[self._at - 1]

    def string(self) -> str:
        """A string as Cedar means it."""
        word = self.next()
        if not word.startswith('"'):
            raise self.refused("a string is expected")
        self._at += 1
        return ESCAPED.sub(self._character, word[1:-1])

    def path(self) -> str:
        path = self.name()
        while self.maybe("::"):
            path += "::" + self.name()
        return path

    def annotations(self) -> None:
        while self.maybe("@"):
            self.name()
            self.take("(")
            self.string()
            self.take(")")

    def statement(self) -> list[str]:
        """The words up to a semicolon, which is one of them and is nowhere else."""
        start = self._at
        while self.next() not in ("", ";"):
            self._at += 1
        self.take(";")
        return self._words[start : self._at]

    def refused(self, why: str) -> SchemaRefused:
        before = " ".join(self._words[max(0, self._at - 3) : self._at])
        return SchemaRefused(f"{self._place}: {why} after `{before}`, not `{self.next()}`")

    def _character(self, escaped: re.Match[str]) -> str:
        number, letter = escaped.groups()
        if number is None and letter not in ESCAPES:
            raise self.refused(f"a character other than `{escaped[0]}` is expected")
        return ESCAPES[letter] if number is None else chr(int(number, 16))
