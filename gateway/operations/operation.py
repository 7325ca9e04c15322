"""An operation: one row of the table that feeds every surface."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from gateway import limits
from gateway.operations.call import Call
from gateway.operations.schema import Members, Schema
from gateway.operations.wire.problems import PROBLEM


@dataclass(frozen=True, slots=True)
class Reply:
    """What an operation answers: a status, a JSON body (None with 204) and extra headers.

    `text` is what is sent in place of the body: its content type, and what it says, for what is not JSON, or is written already.
    """

    body: Mapping[str, object] | None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    text: tuple[str, str] | None = None


NO_CONTENT = Reply(None, 204)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing the gateway does.

    `actions` are the Cedar actions it may ask for; a public operation asks none and says why in `public`; with
    `knows_callers`, whoever shows a credential to it is authenticated and limited all the same.
    `fields` and `query` are the members it reads, with what each may be. With `strict`, any other member is refused; without,
    it is ignored, because published clients of this wire send extras. `repeated` are those of `query` that may be given several
    times: each is read as a list. `body_bytes` is how large a body may be. `unread` looks at nothing that is sent but the
    credential, so that its answer depends on nothing else. `answers` says by status what is answered: None is no body, and
    `media` the type of every other. `problems` are statuses of refusals that do not follow from the rest, and `refusal` what
    each refusal looks like. One that is `confirmed` may ask who calls to confirm who they are. A `long` one ends when whoever
    asked has left. `scraped` takes the token of the metrics beside every other credential. `vital` is answered also while too
    many requests are under way. `unhurried` work takes what it takes: the deadline is not for it.
    """

    name: str
    method: str
    path: str
    summary: str
    run: Callable[[Call], Awaitable[Reply]]
    actions: tuple[str, ...] = ()
    fields: Members = field(default_factory=dict, hash=False)
    query: Members = field(default_factory=dict, hash=False)
    answers: Mapping[int, Schema | None] = field(default_factory=dict, hash=False)
    media: str = "application/json"
    problems: tuple[int, ...] = ()
    refusal: Schema = field(default_factory=lambda: PROBLEM, hash=False)
    confirmed: bool = False
    repeated: tuple[str, ...] = ()
    strict: bool = False
    unread: bool = False
    long: bool = False
    public: str | None = None
    knows_callers: bool = False
    scraped: bool = False
    vital: bool = False
    unhurried: bool = False
    body_bytes: int = limits.BODY_BYTES
