"""Errors as problem details: the same bytes for an object of another organisation as for none."""

from __future__ import annotations

from gateway.errors import GatewayError, Invalid, TooManyRequests, Unauthenticated, Unavailable
from gateway.web.answer import Answer, answer
from gateway.web.challenge import challenge

#: A namespace of our own, because published clients act on two bare words in `type`.
TYPE = "urn:peergate:problem:"


class WrongMethod(GatewayError):
    """The path is known and the method is not; `allow` lists what is."""

    status = 405
    title = "method not allowed"

    def __init__(self, method: str, allow: tuple[str, ...]) -> None:
        super().__init__(f"the method must be one of {', '.join(allow)}, got `{method}`")
        self.allow = allow


class TooSlow(GatewayError):
    """The body did not arrive in time."""

    status = 408
    title = "too slow"


class Broken(GatewayError):
    """A fault of ours, of which the caller learns nothing but that it is ours."""

    status = 500
    title = "internal error"

    def __init__(self) -> None:
        super().__init__("the gateway failed on this request; the request id finds it in the server's own log")


def problem(error: GatewayError, metadata: str | None = None) -> Answer:
    """The answer that an error is; `metadata` is where a client that lacks a token reads who issues them."""
    return answer(error.status, problem_details(error), problem_headers(error, metadata))


def problem_details(error: GatewayError) -> dict[str, object]:
    """What the caller is told of an error.

    INVARIANT: nothing in it depends on the request id or on the clock, so that two refusals for one reason are equal.
    """
    body: dict[str, object] = {
        "type": TYPE + error.title.replace(" ", "-"),
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
    }
    if error.field is not None and isinstance(error, Invalid):
        body["fields"] = {error.field: error.detail}
    decision_id = getattr(error, "decision_id", None)
    if decision_id is not None:
        body["decision_id"] = decision_id
    if error.next_step is not None:
        body["next"] = error.next_step
    return body


def problem_headers(error: GatewayError, metadata: str | None = None) -> dict[str, str]:
    """The headers an error wants, whatever the shape of its body."""
    match error:
        case Unauthenticated():
            return {"WWW-Authenticate": challenge(error, metadata)}
        case TooManyRequests() | Unavailable():
            return {"Retry-After": str(max(1, error.retry_after))}
        case WrongMethod():
            return {"Allow": ", ".join(error.allow)}
    return {}
