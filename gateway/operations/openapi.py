"""The description of the HTTP surface in OpenAPI 3.1, from the table of operations: `peergate openapi > docs/openapi.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from http import HTTPStatus

from gateway.operations.call import Call
from gateway.operations.operation import Operation, Reply
from gateway.operations.reference import sentence
from gateway.operations.schema import TEXT, Maybe, Schema, either, members
from gateway.operations.wire import records as wire

#: That of the paths, which begin with it.
VERSION = "1"
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
ABOUT = """Who may do what is decided by Cedar policies; `x-cedar-actions` names what an operation asks them.

An unknown path is a 404 and a known one with another method a 405, each as a problem. No text holds a NUL, no object a key
twice, and a body is JSON in UTF-8. An id that has not the form of one is answered as an unknown one. Agents also reach the
gateway as tools of the Model Context Protocol, at `/mcp`, which speaks for itself."""
BEARER = """A key of a person (`1ck_`), of an agent (`ocv_`) or of a platform (`plt_`), the credential of a remote connection, the
token of a bridge, a session token that was exchanged for one of them, or an access token of the issuer that is set."""
STRICT = "A member that is not known is refused."
CONFIRMED = "May ask who calls to confirm who they are."
#: What a refusal of each status says in its headers.
HEADERS = {401: ("WWW-Authenticate",), 429: ("Retry-After",), 503: ("Retry-After",)}

_PARAMETER = re.compile(r"\{([a-z_]+)\}")
Json = dict[str, object]


def describe(operations: Iterable[Operation]) -> Json:
    """The description, in the order of the table.

    Raises:
        ValueError: two different schemas have one title.
    """
    titled = _Titled()
    paths: dict[str, Json] = {}
    tags: dict[str, None] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, titled)
        tags[_tag(operation)] = None
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Peergate",
            "version": VERSION,
            "summary": "The authorization gateway between agents and what they know about people.",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": tag} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(titled.schemas.items())),
            "responses": dict(sorted(titled.responses.items())),
            "parameters": {
                "Confirm": {
                    "name": "X-Auth-Confirm",
                    "in": "header",
                    "description": "The account password, or a `rat_` token of the purpose, which serves once.",
                    "schema": TEXT,
                }
            },
            "headers": {
                "X-Request-Id": _header("The id of the request: the one that was sent, if it is safe to log, or a new one."),
                "WWW-Authenticate": _header("The challenge of RFC 6750."),
                "Retry-After": {**_header("Whole seconds."), "schema": {"type": "string", "pattern": "^[0-9]+$"}},
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": BEARER},
                "metrics": {"type": "http", "scheme": "bearer", "description": "The token of the metrics, from the settings."},
            },
        },
    }


def render(operations: Iterable[Operation]) -> str:
    """The description as JSON text, as it is printed and checked in."""
    return json.dumps(describe(operations), ensure_ascii=False, indent=1) + "\n"


def served(others: Iterable[Operation]) -> Operation:
    """The operation that answers with the description of some others and of itself."""

    @cache
    def text() -> str:
        return json.dumps(describe((*others, own)), ensure_ascii=False, separators=(",", ":"))

    async def read(call: Call) -> Reply:
        return Reply(None, headers={"Cache-Control": "public, max-age=3600"}, text=("application/json", text()))

    own = Operation(
        "openapi.read",
        "GET",
        "/openapi.json",
        "Describe this API, in OpenAPI 3.1.",
        read,
        public="clients are made from it before they have a credential; it is the same for every installation",
        unread=True,
        answers={200: wire.DESCRIPTION},
    )
    return own


class _Titled:
    """Schemas that have a title and refusals, each described once."""

    def __init__(self) -> None:
        self.schemas: Json = {}
        self.responses: Json = {}

    def refuse(self, status: int, schema: Schema) -> Json:
        """The refusal of a status, as a reference."""
        name = f"{schema['title']}{status}"
        self.responses[name] = _response(status, "application/json", self.refer(schema), *HEADERS.get(status, ()))
        return {"$ref": f"#/components/responses/{name}"}

    def refer(self, schema: object) -> object:
        """A schema with every titled one in it, and itself, as a reference."""
        match schema:
            case {"title": str(title), **rest}:
                made = {name: self.refer(member) for name, member in rest.items()}
                if self.schemas.setdefault(title, made) != made:
                    raise ValueError(f"two schemas have the title {title}")
                return {"$ref": f"#/components/schemas/{title}"}
            case Mapping():
                return {name: self.refer(member) for name, member in schema.items()}
            case list():
                return [self.refer(member) for member in schema]
        return schema


def _operation(operation: Operation, titled: _Titled) -> Json:
    body = titled.refer(members(operation.fields, closed=operation.strict)) if operation.fields else None
    needed = any(not isinstance(member, Maybe) for member in operation.fields.values())
    parameters = [*_parameters(operation, titled)]
    return {
        "operationId": operation.name,
        "tags": [_tag(operation)],
        "summary": sentence(operation.summary),
        "description": " ".join(_said(operation)),
        **({"parameters": parameters} if parameters else {}),
        **({} if body is None else {"requestBody": {"content": {"application/json": {"schema": body}}, "required": needed}}),
        "responses": _responses(operation, titled),
        "security": _security(operation),
        **({"x-cedar-actions": list(operation.actions)} if operation.actions else {}),
    }


def _tag(operation: Operation) -> str:
    return operation.name.split(".")[0]


def _said(operation: Operation) -> Iterator[str]:
    if operation.public is not None:
        yield sentence(f"Public: {operation.public}")
    else:
        yield f"Cedar is asked {', '.join(f'`{action}`' for action in operation.actions)}."
    if operation.strict:
        yield STRICT
    if operation.confirmed:
        yield CONFIRMED


def _parameters(operation: Operation, titled: _Titled) -> Iterator[Json]:
    for name in _PARAMETER.findall(operation.path):
        yield {"name": name, "in": "path", "required": True, "schema": {**TEXT, "minLength": 1}}
    for name, member in operation.query.items():
        schema = member.schema if isinstance(member, Maybe) else member
        yield {"name": name, "in": "query", "required": not isinstance(member, Maybe), "schema": titled.refer(schema)}
    if operation.confirmed:
        yield {"$ref": "#/components/parameters/Confirm"}


def _security(operation: Operation) -> list[Json]:
    if operation.public is not None:
        return [{}, {"bearer": []}] if operation.knows_callers else []
    return [{"bearer": []}, {"metrics": []}] if operation.scraped else [{"bearer": []}]


def _responses(operation: Operation, titled: _Titled) -> Json:
    refusals = {status for status, is_one in _refusals(operation) if is_one} | set(operation.problems)
    made: Json = {}
    for status in sorted(refusals | set(operation.answers)):
        if status not in operation.answers:
            made[str(status)] = titled.refuse(status, operation.refusal)
            continue
        answered = operation.answers[status]
        if answered is not None and status in refusals:
            answered = either(answered, operation.refusal)
        made[str(status)] = _response(status, operation.media, None if answered is None else titled.refer(answered))
    return made


def _response(status: int, media: str, schema: object, *headers: str) -> Json:
    return {
        "description": HTTPStatus(status).phrase,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *headers)},
        **({"content": {media: {"schema": schema}}} if schema is not None else {}),
    }


def _refusals(operation: Operation) -> Iterator[tuple[int, bool]]:
    """The statuses of refusals, each with whether this operation has it by what it reads and who may ask it."""
    reads, asks = not operation.unread, operation.public is None
    sends = reads and (operation.method in WITH_BODY or bool(operation.fields))
    yield 400, reads
    yield 401, asks or operation.knows_callers
    yield 403, asks
    yield 404, asks and bool("{" in operation.path or operation.fields or operation.query)
    yield 408, sends
    yield 409, asks and operation.method != "GET"
    yield 413, sends
    yield 429, True
    yield 503, True


def _header(description: str) -> Json:
    return {"description": description, "required": True, "schema": TEXT}
