"""One request from its bytes to a reply: authenticate, limit, read, dispatch."""

from __future__ import annotations

import asyncio
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
#: Who calls, the credential to look at again later, and the time and the version of the state when they were looked at.
Identified = tuple[Caller, str | None, datetime, int]


async def respond(
    services: Services, route: Route, parameters: tuple[str, ...], exchange: Exchange, scope: Scope, receive: Receive
) -> Reply:
    """Answer a request for a route.

    Who calls is settled before anything they sent is read; what they sent is read whole before the operation starts. A body
    may take its time to arrive: who calls and what time it is are settled again behind it, so that nothing that ended
    meanwhile counts.

    Raises:
        GatewayError: what the caller is to be told.
        Gone: the client left before it had sent its request, or one that takes long was answered.
    """
    operation = route.operation
    headers = Headers(scope["headers"])
    client = scope.get("client")
    source = client[0] if client else None
    with span("authenticate"):
        caller, shown, now, version = await _caller(services, operation, headers, source)
    query = _NO_BODY if operation.unread else _query(operation, scope["query_string"])
    body = _NO_BODY
    if (operation.method in _WITH_BODY or operation.fields) and not operation.unread:
        body = await _body(operation, headers, receive)
        before, now, version = version, services.clock(), services.state.version
        if shown is not None and not (version == before and caller.lives(now)):
            caller = services.authenticator.authenticate(shown, now)
    session = exchange.session = Session(caller, exchange.request_id, now, source, shown, version)
    call = Call(
        services=services,
        session=session,
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
    return ANONYMOUS, None, now, services.state.version


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
        if scraper is None:
            await authenticator.prepare(shown, services.clock())
        now, version = services.clock(), services.state.version
        caller = scraper or authenticator.authenticate(shown, now)
    except Unauthenticated:
        authenticator.count_stranger(source, "", services.clock())
        raise
    authenticator.limiter.take(caller.credential_id, now)
    return caller, shown if scraper is None else None, now, version


def _query(operation: Operation, query: bytes) -> Fields:
    if not query:
        return Fields(_NOTHING)
    return Fields(query_members(query, operation.query, repeated=operation.repeated, strict=operation.strict))


async def _body(operation: Operation, headers: Headers, receive: Receive) -> Fields:
    """The members of the body; none for an empty one, which clients send with a content type all the same."""
    body = await read_body(receive, headers, operation.body_bytes)
    if not body:
        return _NO_BODY
    check_content_type(headers)
    fields = Fields(parse_object(body))
    if operation.strict:
        fields.refuse_others(operation.fields)
    return fields
