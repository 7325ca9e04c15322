"""What the description of the API says of an answer, held against the answers that tests get."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import httpx2
import jsonschema_rs
from starlette.testclient import TestClient

from gateway.operations.openapi import describe
from gateway.operations.registry import OPERATIONS, OWN
from gateway.web.routing import Router

ROUTER = Router((*OWN, *OPERATIONS))
#: A fault of ours is described nowhere.
FAULT = 500


class DescribedClient(TestClient):
    """A client of the application that fails where an answer is not one that is described."""

    def request(self, *args: Any, **kw: Any) -> httpx2.Response:
        made = super().request(*args, **kw)
        check_described(made)
        return made


def check_described(made: httpx2.Response) -> None:
    """Fails where an answer is not one that is described; of a path or a method that is not there, nothing is."""
    method, path = made.request.method, made.request.url.raw_path.partition(b"?")[0]
    routes = ROUTER.find(path)
    if routes is None or method not in routes[0] or made.status_code == FAULT:
        return
    place = f"{method} {routes[0][method].path} {made.status_code}"
    media, validator = _answer(routes[0][method].path, method, made.status_code)
    assert made.headers.get("content-type") == media, place
    if validator is not None:
        for error in validator.iter_errors(json.loads(made.content)):
            raise AssertionError(f"{place}: /{'/'.join(map(str, error.instance_path))}: {error.message}")


@cache
def _described() -> dict[str, Any]:
    return describe((*OWN, *OPERATIONS))


@cache
def _answer(path: str, method: str, status: int) -> tuple[str | None, jsonschema_rs.Draft202012Validator | None]:
    """The type of an answer, and what checks it where it is JSON; nothing for one without a body."""
    found = _described()["paths"][path][method.lower()]["responses"]
    assert str(status) in found, f"{method} {path} does not say that it answers {status}"
    response = closed(found[str(status)])
    if "content" not in response:
        return None, None
    [(media, content)] = response["content"].items()
    if media != "application/json":
        return media, None
    return media, jsonschema_rs.Draft202012Validator(content["schema"], validate_formats=True)


def closed(part: Any) -> Any:
    """A part of the description without references, in which an object has the members that it names and no others."""
    match part:
        case {"$ref": str(reference)}:
            found: Any = _described()
            for name in reference.removeprefix("#/").split("/"):
                found = found[name]
            return closed(found)
        case {"properties": dict()}:
            return {"additionalProperties": False, **{name: closed(member) for name, member in part.items()}}
        case dict():
            return {name: closed(member) for name, member in part.items()}
        case list():
            return [closed(member) for member in part]
    return part
