"""Reading headers, query strings and bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive

from gateway.errors import Invalid, TooLarge, Unauthenticated
from gateway.web import request
from gateway.web.problems import TooSlow
from gateway.web.request import Gone, Headers, bearer, check_content_type, query_members, read_body


def sent(*headers: tuple[bytes, bytes]) -> Headers:
    return Headers(list(headers))


@pytest.mark.parametrize("value", [b"Bearer abc.def", b"bearer abc.def", b"BEARER  abc.def"])
def test_a_bearer_is_read_whatever_the_case_of_its_scheme(value: bytes) -> None:
    assert bearer(sent((b"authorization", value))) == "abc.def"


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"authorization", b"")],
        [(b"authorization", b"Bearer")],
        [(b"authorization", b"Bearer ")],
        [(b"authorization", b"abc")],
        [(b"authorization", b"Basic abc")],
        [(b"authorization", b"Bearer a b")],
        [(b"authorization", b"Bearer a,Bearer b, Bearer c")],
        [(b"authorization", b"Bearer\ta")],
        [(b"authorization", b" Bearer a")],
        [(b"authorization", b"Bearer \xff")],
        [(b"authorization", "Bearer é".encode())],
        [(b"authorization", b"Bearer " + b"a" * 10_000)],
        [(b"authorization", b"Bearer a"), (b"authorization", b"Bearer a")],
        [(b"x-authorization", b"Bearer a")],
    ],
)
def test_anything_else_is_no_credential(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Unauthenticated):
        bearer(sent(*headers))


def test_a_header_is_read_as_utf8_and_a_repeated_one_is_joined() -> None:
    headers = sent((b"x-auth-confirm", "pässword".encode()), (b"a", b"1"), (b"a", b"2"), (b"b", b"\xff"))
    assert dict(headers) == {"x-auth-confirm": "pässword", "a": "1, 2", "b": "ÿ"}
    assert (headers["X-Auth-Confirm"], headers.get("none"), len(headers)) == ("pässword", None, 3)


def test_known_parameters_are_decoded_and_others_left_out() -> None:
    assert query_members(b"a=1&b=x%20y+z&c=&&d&e=%E6%88%91&=q", ("a", "b", "c", "d", "e"), strict=False) == {
        "a": "1",
        "b": "x y z",
        "c": "",
        "d": "",
        "e": "我",
    }
    assert query_members(b"other=1&other=2", ("a",), strict=False) == {}


def test_parameters_that_may_be_repeated_are_lists_and_the_others_are_still_given_once() -> None:
    known, repeated = ("tag", "layer", "limit"), ("tag", "layer")
    assert query_members(b"tag=b&limit=1&tag=a&tag=b", known, repeated=repeated, strict=True) == {
        "tag": ["b", "a", "b"],
        "limit": "1",
    }
    with pytest.raises(Invalid):
        query_members(b"tag=b&limit=1&limit=1", known, repeated=repeated, strict=True)


@pytest.mark.parametrize(
    ("query", "strict", "detail"),
    [
        (b"a=1&a=1", False, "`a` is given twice"),
        (b"a=1&%61=2", False, "`a` is given twice"),
        (b"a=%", False, "`a` has an incomplete percent escape"),
        (b"a=%FF", False, "`a` must be percent-encoded UTF-8"),
        (b"a=\xff", False, "`a` must be percent-encoded UTF-8"),
        (b"a=%00", False, "`a` holds a NUL"),
        (b"%FF=1", False, "a parameter's name must be percent-encoded UTF-8"),
        (b"b=1", True, "`b` is not a known parameter here; known are a"),
    ],
)
def test_a_query_string_that_can_be_read_two_ways_is_refused(query: bytes, strict: bool, detail: str) -> None:
    with pytest.raises(Invalid) as caught:
        query_members(query, ("a",), strict=strict)
    assert caught.value.detail == detail


@pytest.mark.parametrize(
    "value",
    [b"application/json", b"Application/JSON", b"application/json; charset=utf-8", b'application/json;charset="UTF-8"; x=y'],
)
def test_json_in_utf8_is_the_content_type(value: bytes) -> None:
    check_content_type(sent((b"content-type", value), (b"content-encoding", b"identity")))


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"content-type", b"")],
        [(b"content-type", b"text/plain")],
        [(b"content-type", b"application/jsonp")],
        [(b"content-type", b"application/json, text/plain")],
        [(b"content-type", b"application/json; charset=utf-16")],
        [(b"content-type", b"application/json"), (b"content-type", b"text/plain")],
        [(b"content-type", b"application/json"), (b"content-encoding", b"gzip")],
        [(b"content-type", b"multipart/form-data; boundary=x")],
    ],
)
def test_another_content_type_or_encoding_is_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Invalid):
        check_content_type(sent(*headers))


class Stream:
    """A client that sends these pieces, and the number of them that were asked for."""

    def __init__(self, pieces: Iterable[bytes | None]) -> None:
        self._pieces = list(pieces)
        self.taken = 0

    async def __call__(self) -> Message:
        piece = self._pieces[self.taken]
        self.taken += 1
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": self.taken < len(self._pieces)}


def read(receive: Receive, *headers: tuple[bytes, bytes], most: int = 10) -> bytes:
    return asyncio.run(read_body(receive, sent(*headers), most))


def test_a_body_is_read_to_its_end_whatever_its_announced_length() -> None:
    assert read(Stream([b"1234", b"", b"567890"])) == b"1234567890"
    assert read(Stream([b"1234"]), (b"content-length", b"2")) == b"1234"
    assert read(Stream([b""])) == b""


def test_a_body_announced_too_large_is_not_read() -> None:
    for announced in (b"11", b"9" * 5_000):
        stream = Stream([b"1"])
        with pytest.raises(TooLarge, match="the body is over the limit of 0 KiB"):
            read(stream, (b"content-length", announced))
        assert stream.taken == 0


@pytest.mark.parametrize("headers", [[], [(b"content-length", b"3")]])
def test_a_body_that_grows_too_large_is_read_no_further(headers: list[tuple[bytes, bytes]]) -> None:
    stream = Stream([b"123456", b"123456", b"never"])
    with pytest.raises(TooLarge):
        read(stream, *headers)
    assert stream.taken == 2


def test_a_client_that_leaves_is_gone() -> None:
    with pytest.raises(Gone):
        read(Stream([b"1", None]))


def test_a_body_that_does_not_arrive_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "BODY_SECONDS", 0.001)

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(TooSlow):
        read(never)
