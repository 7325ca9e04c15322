"""A client command: one request to the API, and the arguments that fill it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Place = Literal["path", "query", "body", "json", "file", "confirm", "local"]

#: What a placeholder of a path stands for. Every placeholder is a positional argument, unless one of the arguments fills it.
PATH = {
    "policy_id": "the policy",
    "agent_id": "the agent",
    "approval_id": "the approval",
    "connection_id": "the connection",
    "decision_id": "the decision",
    "event_id": "the event",
    "fact_key": "the fact's key",
    "grant_id": "the grant",
    "key_id": "the key",
    "member_id": "the member",
    "memory_id": "the row",
    "peer_id": "the peer",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; `place` says which part of the request it fills.

    A `json` argument is parsed as JSON (`@file` reads a file) and goes into the body, a `file` argument names a file whose text
    does; a `local` one is not sent; `confirm` is sent as `X-Auth-Confirm`; a
    `path` argument without a placeholder is put at the end of the path. With `repeated` the flag is given once a value. With
    `always` the flag takes no value and stands for that one. `choices` are checked here, `words` only
    shown: the gateway checks them.
    """

    name: str
    help: str
    place: Place = "body"
    required: bool = False
    positional: bool = False
    many: bool = False
    repeated: bool = False
    choices: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    kind: type = str
    flagged: str | None = None
    default: int | None = None
    always: str | None = None

    @property
    def flag(self) -> str:
        return self.flagged or "--" + self.name.replace("_", "-")

    @property
    def shown(self) -> str:
        """What usage and errors call it."""
        return ("FILE" if self.place == "file" else self.name) if self.positional else self.flag

    @property
    def dest(self) -> str:
        """Where the parser puts it: two flags may fill one member."""
        return self.name if self.positional else self.flag.removeprefix("--").replace("-", "_")

    def add_to(self, parser: Any) -> None:
        if self.always is not None:
            parser.add_argument(self.flag, dest=self.dest, help=self.help, action="store_const", const=self.always)
            return
        more: dict[str, Any] = {"help": self.help, "type": self.kind}
        if self.default is not None:
            more["default"] = self.default
        if self.place == "file":
            more["metavar"] = "FILE"
        if self.choices:
            more["choices"] = self.choices
        if self.words:
            more["metavar"] = f"{{{','.join(self.words)}}}"
        if self.many:
            more["nargs"] = "*"
        if self.repeated:
            more["action"] = "append"
        if self.positional:
            parser.add_argument(self.name, **more)
        else:
            parser.add_argument(self.flag, dest=self.dest, required=self.required, **more)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was answered: what the command line gave, and `get(path, **query)`, which asks for something beside it
    and is None where that is refused."""

    given: Mapping[str, Any]
    get: Callable[..., Any]


#: Prints an answer, or a note on it, for people.
Show = Callable[[Any, Asked], None]
#: Looks at what the command line gave and at the body that would be sent, and may fill what was left out of it; raises what
#: ends the command.
Check = Callable[[Mapping[str, Any], dict[str, object]], None]
#: The exit code of an answer; may raise what ends the command instead.
End = Callable[[Any, Asked], int]


@dataclass(frozen=True, slots=True)
class Command:
    """`peergate NOUN VERB`, or `peergate NOUN` where the verb is empty; `rows` is the member that holds a list and `columns`
    what a table of it shows. Where that is not enough, `shows` prints the answer, and `notes` what is worth knowing beside it.

    `always` goes into every body. With `until`, it is asked again until that member of the answer is 0. `checks` looks at what
    the command line gave and at the body before it is sent, and raises. `ends` gives the exit code, which is 0 without it.
    `about` goes into the help, as it is.
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
    until: str | None = None
    shows: Show | None = None
    notes: Show | None = None
    checks: Check | None = None
    ends: End | None = None
    about: str = ""

    @property
    def name(self) -> str:
        return f"{self.noun} {self.verb}".strip()


def command(
    name: str,
    request: str,
    help: str,
    *arguments: Argument,
    rows: str | None = None,
    columns: str = "",
    until: str | None = None,
    shows: Show | None = None,
    notes: Show | None = None,
    checks: Check | None = None,
    ends: End | None = None,
    about: str = "",
    **always: str,
) -> Command:
    """A command from `"noun verb"` and `"METHOD /path"`; `columns` are words."""
    noun, _, verb = name.partition(" ")
    method, path = request.split()
    filled = {argument.name for argument in arguments if argument.place == "path"}
    words = [word for word in re.findall(r"{(\w+)}", path) if word not in filled]
    places = tuple(Argument(word, PATH[word], "path", positional=True) for word in words)
    return Command(
        noun=noun,
        verb=verb,
        method=method,
        path=path,
        help=help,
        arguments=(*places, *arguments),
        rows=rows,
        columns=tuple(columns.split()),
        always=always,
        until=until,
        shows=shows,
        notes=notes,
        checks=checks,
        ends=ends,
        about=about,
    )
