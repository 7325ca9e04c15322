"""A tool: one operation under the name and with the words that a model is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.mcp.argument import Argument, Schema
from gateway.model.caller import Caller, PrincipalType
from gateway.operations.fields import Fields

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model and its program get: texts, and the same as data."""

    texts: tuple[str, ...]
    data: Body


@dataclass(frozen=True, slots=True)
class Request:
    """The input of an operation."""

    path: dict[str, str]
    query: dict[str, object]
    body: dict[str, object]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `kinds` are whose sessions have it: for any other it is not there, as a path without a route is not.

    `shows` makes an answer readable; `nothing` is what is shown when there is no such thing and that is no error.
    `reads` says that it changes nothing.
    """

    name: str
    operation: str
    description: str
    arguments: tuple[Argument, ...]
    shows: Callable[[Body], Shown]
    kinds: tuple[PrincipalType, ...] = ("Agent",)
    output: Schema | None = None
    nothing: Shown | None = None
    reads: bool = False
    repeatable: bool = False

    @property
    def input(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {argument.name: dict(argument.schema) for argument in self.arguments},
            "required": [argument.name for argument in self.arguments if argument.required],
            "additionalProperties": False,
        }

    def request(self, given: Fields, caller: Caller) -> Request:
        """The request that arguments are.

        Raises:
            Invalid: an argument that it does not have, or one that cannot be sent.
        """
        given.refuse_others([argument.name for argument in self.arguments])
        made = Request({}, {}, {})
        for argument in self.arguments:
            value = argument.read(given, caller.id)
            if value is None:
                continue
            match argument.place:
                case "path":
                    made.path[argument.target] = str(value)
                case "query":
                    made.query[argument.target] = value
                case "body":
                    made.body[argument.target] = value
        return made
