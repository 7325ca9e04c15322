"""Every error a caller can be shown: a status, a title, one sentence, and nothing of anybody else's."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

#: What a limit in time is counted by, and what a request was given up for. These are the only labels, for ever.
LimitedBy = Literal["credential", "address", "guesses", "grant"]
ShedFor = Literal["requests", "queue", "passwords", "store", "deadline", "stale", "other"]


class GatewayError(Exception):
    """Base of the errors that a surface renders. `detail` is one lower-case sentence that is safe to show the caller."""

    status = 500
    title = "internal error"

    def __init__(self, detail: str, *, field: str | None = None, next_step: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.next_step = next_step


class Invalid(GatewayError):
    """The request is malformed; `field` names the part that is wrong."""

    status = 400
    title = "invalid request"


class TooLarge(GatewayError):
    """The request is over a named limit of size."""

    status = 413
    title = "too large"


class Unauthenticated(GatewayError):
    """No credential, or one that is not good any more. The sentence is the same for every cause."""

    status = 401
    title = "unauthenticated"

    def __init__(self, detail: str = "the credential is missing, unknown, expired or revoked") -> None:
        super().__init__(detail)


class InvalidToken(Unauthenticated):
    """A bearer credential was shown and is no good. `reason` may be told beside the sentence: it is the sentence itself, unless
    its issuer's signature was right and its own words show what is wrong with it."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__()
        self.reason = reason or self.detail


class Forbidden(GatewayError):
    """A decision said no, or a factor is missing."""

    status = 403
    title = "forbidden"

    def __init__(
        self, detail: str, *, decision_id: str | None = None, next_step: str | None = None, title: str | None = None
    ) -> None:
        super().__init__(detail, next_step=next_step)
        self.decision_id = decision_id
        if title is not None:
            self.title = title


class StepUpRequired(Forbidden):
    """The caller may do this after confirming who they are."""

    title = "step-up required"


class NotFound(GatewayError):
    """There is none, or none that the caller may know of: the two answers are the same bytes."""

    status = 404
    title = "not found"

    def __init__(self, detail: str = "there is no such resource") -> None:
        super().__init__(detail)


class Conflict(GatewayError):
    """The state of the resource does not allow this now."""

    status = 409
    title = "conflict"


class TooManyRequests(GatewayError):
    """Over a rate limit; `retry_after` is in whole seconds, `by` says which limit."""

    status = 429
    title = "too many requests"

    def __init__(self, detail: str, *, retry_after: int, by: LimitedBy) -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.by = by


class Unavailable(GatewayError):
    """The gateway cannot answer now without breaking a promise, so it does not answer; `retry_after` in seconds.

    `cause` is what it is counted under.
    """

    status = 503
    title = "unavailable"

    def __init__(self, detail: str, *, retry_after: int = 1, cause: ShedFor = "other") -> None:
        super().__init__(detail)
        self.retry_after = retry_after
        self.cause = cause


class Stale(Unavailable):
    """What a decision rested on has changed before its answer or its change; the request is run again some times first."""

    def __init__(self) -> None:
        super().__init__("what this was decided on keeps changing; try again", cause="stale")


class Late(Unavailable):
    """The deadline came before the answer; `decision_id` names what had been decided, if anything was."""

    def __init__(self, seconds: int, decision_id: str | None) -> None:
        super().__init__(f"there was no answer within {seconds} s; try again", cause="deadline")
        self.decision_id = decision_id


def echo(value: object) -> str:
    """What was sent, short and harmless, in backticks; only the kind of a list or an object."""
    match value:
        case None:
            return "`null`"
        case bool():
            return f"`{str(value).lower()}`"
        case dict():
            return "an object"
        case list():
            return "a list"
        case int():
            value = Decimal(value)  # str() of an int raises an error of its own above 4300 digits
    shown = "".join(c if c.isprintable() and c != "`" else "?" for c in str(value)[:40])
    return f"`{shown}`"
