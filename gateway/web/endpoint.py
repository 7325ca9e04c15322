"""One request from its bytes to a reply: authenticate, limit, read, dispatch."""

from __future__ import annotations

import asyncio
from datetime import datetime

from starlette.types import Receive, Scope

from gateway.model.caller import ANONYMOUS, Caller
from gateway.model.grant import Session
from gateway.operations.call import Call, Services
from gateway.operations.dispatch import dispatch
from gateway.operations.fields import Fields
from gateway.operations.operation import Operation, Reply
from gateway.web.json_body import parse_object
from gateway.web.request import Gone, Headers, bearer, check_content_type, query_members, read_body
from gateway.web.routing import Route

_NOTHING: dict[str, object] = {}
_NO_BODY = Fields(_NOTHING)
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


async def respond(
    services: Services, route: Route, parameters: tuple[str, ...], request_id: str, scope: Scope, receive: Receive
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
    named = operation.public is None or (operation.knows_callers and "authorization" in headers)
    shown = bearer(headers) if named else None
    if shown is not None:
        await services.authenticator.prepare(shown, services.clock())
    now, version = services.clock(), services.state.version
    caller = _caller(services, shown, now)
    if shown is not None:
        services.authenticator.limiter.take(caller.credential_id, now)
    query = _NO_BODY if operation.unread else _query(operation, scope["query_string"])
    body = _NO_BODY
    if (operation.method in _WITH_BODY or operation.fields) and not operation.unread:
        body = await _body(operation, headers, receive)
        now, version = services.clock(), services.state.version
        caller = _caller(services, shown, now)
    client = scope.get("client")
    call = Call(
        services=services,
        session=Session(caller, request_id, now, client[0] if client else None, shown, version),
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


def _caller(services: Services, shown: str | None, now: datetime) -> Caller:
    return ANONYMOUS if shown is None else services.authenticator.authenticate(shown, now)


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
