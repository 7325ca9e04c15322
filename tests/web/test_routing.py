"""Finding the route of a path as it was sent."""

from __future__ import annotations

import pytest

from gateway.operations.call import Call
from gateway.operations.operation import NO_CONTENT, Operation, Reply
from gateway.web.routing import Router, raw_path


async def nothing(call: Call) -> Reply:
    return NO_CONTENT


def an_operation(method: str, path: str) -> Operation:
    return Operation(name=f"{method} {path}", method=method, path=path, summary="", run=nothing)


ROUTER = Router(
    (
        an_operation("GET", "/v1/peers"),
        an_operation("POST", "/v1/peers"),
        an_operation("GET", "/v1/peers/{id}"),
        an_operation("GET", "/v1/peers/by-connection/{connection_id}"),
        an_operation("DELETE", "/v1/peers/{id}/facts/{key}"),
        an_operation("POST", "/v1/peers/{id}/facts/{key}/dispute"),
        an_operation("GET", "/health"),
    )
)


def found(path: bytes) -> tuple[dict[str, str], tuple[str, ...]] | None:
    got = ROUTER.find(path)
    return ({method: route.path for method, route in got[0].items()}, got[1]) if got is not None else None


def test_a_fixed_path_and_a_path_with_parameters_are_found() -> None:
    assert found(b"/v1/peers") == ({"GET": "/v1/peers", "POST": "/v1/peers"}, ())
    assert found(b"/v1/peers/7") == ({"GET": "/v1/peers/{id}"}, ("7",))
    assert found(b"/v1/peers/7/facts/k/dispute") == ({"POST": "/v1/peers/{id}/facts/{key}/dispute"}, ("7", "k"))


def test_a_fixed_segment_wins_over_a_parameter() -> None:
    assert found(b"/v1/peers/by-connection/c") == ({"GET": "/v1/peers/by-connection/{connection_id}"}, ("c",))
    assert found(b"/v1/peers/by-connection") == ({"GET": "/v1/peers/{id}"}, ("by-connection",))
    assert found(b"/v1/peers/by-connection/facts/k") == ({"DELETE": "/v1/peers/{id}/facts/{key}"}, ("by-connection", "k"))


@pytest.mark.parametrize(
    ("segment", "key"),
    [
        (b"approval_tendency%3Arefund.create%7C0-10%7Cknown%7Ca%40b.co", "approval_tendency:refund.create|0-10|known|a@b.co"),
        (b"a%2Fb", "a/b"),
        (b"a%252Fb%257C", "a%2Fb%7C"),
        (b"%2F", "/"),
        (b"%2F..%2F", "/../"),
        (b"a+b", "a+b"),
        (b"a%20b;c=d", "a b;c=d"),
        (b"%E6%88%91", "我"),
        (b"...", "..."),
    ],
)
def test_an_encoded_key_arrives_intact_as_one_segment(segment: bytes, key: str) -> None:
    assert found(b"/v1/peers/7/facts/" + segment) == ({"DELETE": "/v1/peers/{id}/facts/{key}"}, ("7", key))


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"*",
        b"/",
        b"//",
        b"/v1/peers/",
        b"//v1/peers",
        b"/v1//peers",
        b"/v1/./peers",
        b"/v1/x/../peers",
        b"/v1/peers/..",
        b"/v1/peers/%2e%2E",
        b"/v1/peers/%2e",
        b"/v1/peers/%00",
        b"/v1/peers/a%00b",
        b"/v1/peers/%FF",
        b"/v1/peers/%ED%A0%80",
        b"/v1/peers/\xff",
        b"/v1/peers/%",
        b"/v1/peers/%2",
        b"/v1/peers/%zz",
        b"/v1/peers/%u0041",
        b"/v1%2Fpeers",
        b"/V1/peers",
        b"/v1/peers/7/facts/a/b",
        b"http://host/v1/peers",
        b"/" * 10_000,
        b"/a" * 10_000,
    ],
)
def test_a_hostile_path_is_no_path(path: bytes) -> None:
    assert found(path) is None


def test_an_encoded_letter_is_the_letter() -> None:
    assert found(b"/v1/%70eers") == ({"GET": "/v1/peers", "POST": "/v1/peers"}, ())


def test_two_operations_on_one_method_and_path_are_refused() -> None:
    with pytest.raises(ValueError, match=r"two operations answer GET /v1/peers/\{peer_id\}"):
        Router((an_operation("GET", "/v1/peers/{id}"), an_operation("GET", "/v1/peers/{peer_id}")))


def test_without_a_raw_path_the_decoded_one_is_encoded_again() -> None:
    assert raw_path({"path": "/v1/peers/a b"}) == b"/v1/peers/a%20b"
    assert raw_path({"path": "/x", "raw_path": b"/%78"}) == b"/%78"
