"""Errors as a client sees them."""

from __future__ import annotations

import json

import pytest

from gateway.errors import (
    Conflict,
    Forbidden,
    GatewayError,
    Invalid,
    InvalidToken,
    NotFound,
    StepUpRequired,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
)
from gateway.web.problems import Broken, WrongMethod, problem


@pytest.mark.parametrize(
    ("error", "body", "headers"),
    [
        (
            Invalid("`a.b` must be an id, got `x`", field="a.b"),
            {
                "type": "urn:peergate:problem:invalid-request",
                "title": "invalid request",
                "status": 400,
                "detail": "`a.b` must be an id, got `x`",
                "fields": {"a.b": "`a.b` must be an id, got `x`"},
            },
            (),
        ),
        (
            Unauthenticated(),
            {
                "type": "urn:peergate:problem:unauthenticated",
                "title": "unauthenticated",
                "status": 401,
                "detail": "the credential is missing, unknown, expired or revoked",
            },
            ((b"www-authenticate", b"Bearer"),),
        ),
        (
            InvalidToken("the token has expired"),
            {
                "type": "urn:peergate:problem:unauthenticated",
                "title": "unauthenticated",
                "status": 401,
                "detail": "the credential is missing, unknown, expired or revoked",
            },
            ((b"www-authenticate", b'Bearer error="invalid_token", error_description="the token has expired"'),),
        ),
        (
            Forbidden("no policy permits this", decision_id="d", next_step="ask a human"),
            {
                "type": "urn:peergate:problem:forbidden",
                "title": "forbidden",
                "status": 403,
                "detail": "no policy permits this",
                "decision_id": "d",
                "next": "ask a human",
            },
            (),
        ),
        (
            StepUpRequired("confirm who you are"),
            {
                "type": "urn:peergate:problem:step-up-required",
                "title": "step-up required",
                "status": 403,
                "detail": "confirm who you are",
            },
            (),
        ),
        (
            NotFound(),
            {
                "type": "urn:peergate:problem:not-found",
                "title": "not found",
                "status": 404,
                "detail": "there is no such resource",
            },
            (),
        ),
        (
            WrongMethod("PUT", ("GET", "POST")),
            {
                "type": "urn:peergate:problem:method-not-allowed",
                "title": "method not allowed",
                "status": 405,
                "detail": "the method must be one of GET, POST, got `PUT`",
            },
            ((b"allow", b"GET, POST"),),
        ),
        (
            Conflict("not pending"),
            {"type": "urn:peergate:problem:conflict", "title": "conflict", "status": 409, "detail": "not pending"},
            (),
        ),
        (
            TooLarge("the body is over the limit of 256 KiB"),
            {
                "type": "urn:peergate:problem:too-large",
                "title": "too large",
                "status": 413,
                "detail": "the body is over the limit of 256 KiB",
            },
            (),
        ),
        (
            TooManyRequests("slower", retry_after=7, by="grant"),
            {
                "type": "urn:peergate:problem:too-many-requests",
                "title": "too many requests",
                "status": 429,
                "detail": "slower",
            },
            ((b"retry-after", b"7"),),
        ),
        (
            Unavailable("later", retry_after=0),
            {"type": "urn:peergate:problem:unavailable", "title": "unavailable", "status": 503, "detail": "later"},
            ((b"retry-after", b"1"),),
        ),
        (
            Broken(),
            {
                "type": "urn:peergate:problem:internal-error",
                "title": "internal error",
                "status": 500,
                "detail": "the gateway failed on this request; the request id finds it in the server's own log",
            },
            (),
        ),
    ],
)
def test_an_error_is_a_problem_with_the_headers_its_status_wants(
    error: GatewayError, body: dict[str, object], headers: tuple[tuple[bytes, bytes], ...]
) -> None:
    made = problem(error)
    assert made.body is not None
    assert (made.status, json.loads(made.body), made.headers) == (error.status, body, headers)
