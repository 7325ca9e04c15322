"""One request from its bytes to a reply: authenticate, limit, read, dispatch."""

from __future__ import annotations

from datetime import datetime

from starlette.types import Receive, Scope

from gateway.errors import Unauthenticated
from gateway.model.caller import ANONYMOUS, SCRAPER, Caller
from gateway.model.grant import Session
from gateway.operations.call import Call, Services
from gateway.operations.dispatch import dispatch
from gateway.operations.fields import Fields
from gateway.operations.operation import Operation, Reply
from gateway.spans import span
from gateway.web.exchange import Exchange
from gateway.web.json_body import parse_object
from gateway.web.request import Headers, bearer, check_content_type, query_members, read_body
from gateway.web.routing import Route

_NOTHING: dict[str, object] = {}
_NO_BODY = Fields(_NOTHING)
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


async def respond(
    services: Services, route: Route, parameters: tuple[str, ...], exchange: Exchange, scope: Scope, receive: Receive
) -> Reply:
    """Answer a request for a route.

    Who calls is settled before anything they sent is read; what they sent is read whole before the operation starts. A body
    may take its time to arrive: who calls and what time it is are settled again behind it, so that nothing that ended
    meanwhile counts.

    Raises:
        GatewayError: what the caller is to be told.
        Gone: the client left before it had sent its request.
    """
    operation = route.operation
    headers = Headers(scope["headers"])
    now, version = services.clock(), services.state.version
    client = scope.get("client")
    source = client[0] if client else None
    with span("authenticate"):
        caller, shown = _caller(services, operation, headers, source, now)
    query = _NO_BODY if operation.unread else _query(operation, scope["query_string"])
    body = _NO_BODY
    if (operation.method in _WITH_BODY or operation.fields) and not operation.unread:
        body = await _body(operation, headers, receive)
        now, version = services.clock(), services.state.version
        if shown is not None:
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
    return await dispatch(operation, call)


def _caller(
    services: Services, operation: Operation, headers: Headers, source: str | None, now: datetime
) -> tuple[Caller, str | None]:
    """Who calls, counted by what they showed, and the credential to look at again later; by address who shows none that is
    good. The token of the metrics stands as long as the process does."""
    authenticator = services.authenticator
    if operation.public is not None and not (operation.knows_callers and "authorization" in headers):
        authenticator.count_stranger(source, operation.name, now)
        return ANONYMOUS, None
    try:
        shown = bearer(headers)
        scraper = authenticator.scraper(shown) if operation.scraped else None
        caller = scraper or authenticator.authenticate(shown, now)
    except Unauthenticated:
        authenticator.count_stranger(source, "", now)
        raise
    authenticator.limiter.take(caller.credential_id, now)
    return caller, None if caller is SCRAPER else shown


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
