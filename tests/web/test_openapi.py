"""The description of the API: a valid one, of every operation, and true of requests that are sent and refused."""

from __future__ import annotations

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from gateway.operations.openapi import describe
from gateway.operations.operation import Operation
from gateway.operations.registry import OPERATIONS, OWN
from gateway.operations.schema import Schema
from tests.builders import Gateway

ALL = (*OWN, *OPERATIONS)
#: What is always refused has no other answer.
REFUSED = {"session.refresh"}


def test_it_is_valid() -> None:
    assert [*OpenAPIV31SpecValidator(describe(ALL)).iter_errors()] == []


def test_it_is_served_to_everybody_and_names_every_operation(gateway: Gateway) -> None:
    made = gateway.http.get("/openapi.json")
    assert (made.status_code, made.headers["content-type"]) == (200, "application/json")
    assert made.headers["cache-control"] == "public, max-age=3600"
    described = {
        (found["operationId"], method.upper(), path)
        for path, methods in made.json()["paths"].items()
        for method, found in methods.items()
    }
    assert described == {(operation.name, operation.method, operation.path) for operation in ALL}


def test_every_operation_says_what_it_answers() -> None:
    assert {operation.name for operation in ALL if not operation.answers} == REFUSED
    assert [name for operation in ALL for name in operation.repeated if name not in operation.query] == []


def test_two_schemas_of_one_title_are_refused() -> None:
    first, second = (Operation("a", "GET", path, "", OWN[0].run, answers={200: answer}) for path, answer in TWO.items())
    with pytest.raises(ValueError, match="two schemas have the title T"):
        describe((first, second))


TWO: dict[str, Schema] = {"/a": {"title": "T", "type": "string"}, "/b": {"title": "T", "type": "null"}}
