"""A client command: one request to the API, and the arguments that fill it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Place = Literal["path", "query", "body", "json", "confirm"]

#: What a placeholder of a path stands for. Every placeholder is a positional argument.
PATH = {
    "agent_id": "the agent",
    "approval_id": "the approval",
    "connection_id": "the connection",
    "decision_id": "the decision",
    "event_id": "the event",
    "fact_key": "the fact's key",
    "key_id": "the key",
    "member_id": "the member",
    "peer_id": "the peer",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; `place` says which part of the request it fills.

    A `json` argument is parsed as JSON (`@file` reads a file) and goes into the body; `confirm` is sent as `X-Auth-Confirm`.
    """

    name: str
    help: str
    place: Place = "body"
    required: bool = False
    positional: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    kind: type = str
    flagged: str | None = None
    default: int | None = None

    @property
    def flag(self) -> str:
        return self.flagged or "--" + self.name.replace("_", "-")

    def add_to(self, parser: Any) -> None:
        more: dict[str, Any] = {"help": self.help, "type": self.kind}
        if self.default is not None:
            more["default"] = self.default
        if self.choices:
            more["choices"] = self.choices
        if self.many:
            more["nargs"] = "*"
        if self.positional:
            parser.add_argument(self.name, **more)
        else:
            parser.add_argument(self.flag, dest=self.name, required=self.required, **more)


@dataclass(frozen=True, slots=True)
class Command:
    """`peergate NOUN VERB`; `rows` is the member that holds a list and `columns` what a table of it shows.

    `always` goes into every body.
    """

    noun: str
    verb: str
    method: str
    path: str
    help: str
    arguments: tuple[Argument, ...] = ()
    rows: str | None = None
    columns: tuple[str, ...] = ()
    always: Mapping[str, str] = field(default_factory=dict)


def command(
    name: str, request: str, help: str, *arguments: Argument, rows: str | None = None, columns: str = "", **always: str
) -> Command:
    """A command from `"noun verb"` and `"METHOD /path"`; `columns` are words."""
    noun, verb = name.split()
    method, path = request.split()
    places = tuple(Argument(word, PATH[word], "path", positional=True) for word in re.findall(r"{(\w+)}", path))
    return Command(noun, verb, method, path, help, (*places, *arguments), rows, tuple(columns.split()), always)
