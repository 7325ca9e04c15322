"""One request from its bytes to a reply: authenticate, limit, read, dispatch."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime

from starlette.types import Receive, Scope

from gateway.errors import Unauthenticated
from gateway.model.caller import ANONYMOUS, Caller
from gateway.model.grant import Session
from gateway.operations.call import Call, Services
from gateway.operations.dispatch import dispatch
from gateway.operations.fields import Fields
from gateway.operations.operation import Operation, Reply
from gateway.spans import span
from gateway.web.exchange import Exchange
from gateway.web.json_body import parse_object
from gateway.web.request import Gone, Headers, bearer, check_content_type, query_members, read_body
from gateway.web.routing import Route

_NOTHING: dict[str, object] = {}
_NO_BODY = Fields(_NOTHING)
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class Identified:
    """Who calls and from where, the credential to look at again later (None for one that stands), and the time and the version
    of the state when they were looked at."""

    caller: Caller
    source: str | None
    shown: str | None
    now: datetime
    version: int

    async def body(self, services: Services, receive: Receive, headers: Headers, most: int) -> bytes:
        """The whole body that they send.

        Raises:
            TooManyRequests: too many bodies of theirs are on their way.
            GatewayError: what `read_body` raises.
            Gone: they have left.
        """
        sender = services.arriving.begin(self.caller.credential_id, self.source, under_way=services.traffic.under_way)
        try:
            return await read_body(receive, headers, most)
        finally:
            services.arriving.end(sender)

    def again(self, services: Services) -> Identified:
        """Who calls now, behind a body that took its time to arrive: nothing that ended meanwhile counts.

        Raises:
            Unauthenticated: the credential has ended.
        """
        caller, now, version = self.caller, services.clock(), services.state.version
        if self.shown is not None and not (version == self.version and caller.lives(now)):
            caller = services.authenticator.authenticate(self.shown, now)
        return Identified(caller, self.source, self.shown, now, version)

    def begin(self, exchange: Exchange) -> Session:
        """The session of the exchange."""
        exchange.session = Session(self.caller, exchange.request_id, self.now, self.source, self.shown, self.version)
        return exchange.session


async def respond(
    services: Services, route: Route, parameters: tuple[str, ...], exchange: Exchange, scope: Scope, receive: Receive
) -> Reply:
    """Answer a request for a route.

    Who calls is settled before anything they sent is read, and again behind it; what they sent is read whole before the
    operation starts.

    Raises:
        GatewayError: what the caller is to be told.
        Gone: the client left before it had sent its request, or one that takes long was answered.
    """
    operation = route.operation
    headers = Headers(scope["headers"])
    with span("authenticate"):
        who = await _caller(services, operation, headers, source_of(scope))
    query = _NO_BODY if operation.unread else _query(operation, scope["query_string"])
    body = _NO_BODY
    if (operation.method in _WITH_BODY or operation.fields) and not operation.unread:
        body = _members(operation, headers, await who.body(services, receive, headers, operation.body_bytes))
        who = who.again(services)
    call = Call(
        services=services,
        session=who.begin(exchange),
        path=dict(zip(route.parameters, parameters, strict=True)),
        query=query,
        body=body,
        headers=headers,
    )
    return await (_unless_gone(operation, call, receive) if operation.long else dispatch(operation, call))


async def _unless_gone(operation: Operation, call: Call, receive: Receive) -> Reply:
    """Run an operation that takes long, and end it when the client leaves.

    Raises:
        Gone: it has left.
    """
    answered, gone = asyncio.create_task(dispatch(operation, call)), asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait((answered, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise Gone
        return answered.result()
    finally:
        answered.cancel()
        gone.cancel()
        await asyncio.gather(answered, gone, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    """Wait until the client leaves; its request has been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _caller(services: Services, operation: Operation, headers: Headers, source: str | None) -> Identified:
    """Who calls; by address who shows no credential where none is asked for."""
    if operation.public is None or (operation.knows_callers and "authorization" in headers):
        return await identify(services, headers, source, scraped=operation.scraped)
    now = services.clock()
    services.authenticator.count_stranger(source, operation.name, now)
    return Identified(ANONYMOUS, source, None, now, services.state.version)


async def identify(services: Services, headers: Headers, source: str | None, *, scraped: bool = False) -> Identified:
    """Who calls, counted by what they showed, or by address when it is not good; the token of the metrics is where requests
    are `scraped`, and stands as long as the process does.

    Raises:
        Unauthenticated: nothing good was shown.
        TooManyRequests: there were too many of this credential, or of this address without a good one.
        Unavailable: it is a token of the issuer, whose keys are not to be had.
    """
    authenticator = services.authenticator
    try:
        shown = bearer(headers)
        scraper = authenticator.scraper(shown) if scraped else None
        if scraper is None and not authenticator.knows(shown):
            await authenticator.prepare(shown, services.clock())
        now, version = services.clock(), services.state.version
        caller = scraper or authenticator.authenticate(shown, now)
    except Unauthenticated:
        authenticator.count_stranger(source, "", services.clock())
        raise
    authenticator.limiter.take(caller.credential_id, now)
    return Identified(caller, source, shown if scraper is None else None, now, version)


def source_of(scope: Scope) -> str | None:
    """The address that a request came from."""
    client = scope.get("client")
    return client[0] if client else None


def _query(operation: Operation, query: bytes) -> Fields:
    if not query:
        return Fields(_NOTHING)
    return Fields(query_members(query, operation.query, repeated=operation.repeated, strict=operation.strict))


def _members(operation: Operation, headers: Headers, body: bytes) -> Fields:
    """The members of a body; none for an empty one, which clients send with a content type all the same."""
    if not body:
        return _NO_BODY
    check_content_type(headers)
    fields = Fields(parse_object(body))
    if operation.strict:
        fields.refuse_others(operation.fields)
    return fields
