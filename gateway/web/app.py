"""The application: a list of routes you can see, made of the table of operations."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from time import perf_counter
from typing import Protocol

from starlette.types import Message, Receive, Scope, Send

from gateway import limits
from gateway.errors import GatewayError, NotFound, Unavailable
from gateway.model.ids import new_id
from gateway.operations.call import Services
from gateway.operations.operation import Operation
from gateway.operations.registry import OWN as OWN  # which every application answers
from gateway.operations.resource_metadata import metadata_url
from gateway.operations.traffic import Traffic
from gateway.spans import span
from gateway.web import arp
from gateway.web.answer import Answer, answer, send_answer
from gateway.web.endpoint import respond
from gateway.web.exchange import Exchange
from gateway.web.problems import Broken, WrongMethod, problem
from gateway.web.protocol import QUEUED, has_body
from gateway.web.request import Gone
from gateway.web.routing import Route, Router, raw_path

#: The paths of the AuthZEN API.
AUTHZEN = b"/access/v1/"

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_log = logging.getLogger("gateway.web")


class Mount(Protocol):
    """Another surface over the same operations, which has one path of the server to itself and a dialect of its own.

    Its requests are counted under `name`, and limited like all others.
    """

    name: str
    path: bytes

    async def answer(self, exchange: Exchange, scope: Scope, receive: Receive) -> Answer:
        """Answer a request, or raise the `GatewayError` that refuses it."""

    def refusal(self, error: GatewayError) -> Answer:
        """The answer that an error is."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """What has to be entered while it answers."""


class Application:
    """An ASGI application. `routes` and `mounts` are everything it answers; `told` is called with every exchange, its status
    and seconds."""

    def __init__(self, services: Services, operations: Sequence[Operation], mounts: Sequence[Mount] = ()) -> None:
        self.services = services
        self.mounts = {mount.path: mount for mount in mounts}
        self.told: Callable[[Exchange, int, float], None] | None = None
        self._router = Router((*OWN, *operations))

    @property
    def routes(self) -> tuple[Route, ...]:
        """Every route, in the order of the table."""
        return self._router.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; take part in a lifespan; close a websocket."""
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await self._lifespan(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, traffic = perf_counter(), self.services.traffic
        exchange = Exchange(_request_id(scope), scope.get(QUEUED, began), began)
        reading = _Reading(receive)
        traffic.under_way += 1
        try:
            with span("request") as traced:
                made = await self._answer(exchange, scope, reading)
                traced.set(operation=exchange.operation, status=made.status)
        except Gone:
            return
        finally:
            traffic.under_way -= 1
        echoed = _echoed(scope, exchange.request_id)
        await send_answer(send, made, echoed, close=not reading.done and has_body(scope["headers"]))
        seconds = perf_counter() - exchange.queued
        traffic.count(exchange.operation, made.status, seconds)
        if self.told is not None:
            self.told(exchange, made.status, seconds)

    async def _answer(self, exchange: Exchange, scope: Scope, receive: Receive) -> Answer:
        traffic = self.services.traffic
        try:
            mount = self.mounts.get(raw_path(scope))
            if mount is not None:
                exchange.operation = mount.name
                _admit(traffic, exchange)
                return await mount.answer(exchange, scope, receive)
            route, parameters = self._route(scope)
            exchange.operation = route.operation.name
            if not route.operation.vital:
                _admit(traffic, exchange)
            reply = await respond(self.services, route, parameters, exchange, scope, receive)
            return answer(reply.status, reply.body, reply.headers, reply.text)
        except GatewayError as refused:
            traffic.refuse(refused)
            return self._refusal(scope, refused)
        except Gone:
            raise
        except Exception as fault:  # the last place where a fault of ours can become an answer instead of a broken connection
            traffic.faults += 1
            report_fault(exchange.request_id, fault)
            return self._refusal(scope, Broken())

    def _route(self, scope: Scope) -> tuple[Route, tuple[str, ...]]:
        found = self._router.find(raw_path(scope))
        if found is None:
            raise NotFound
        methods, parameters = found
        route = methods.get(scope["method"])
        if route is None:
            raise WrongMethod(scope["method"], tuple(sorted(methods)))
        return route, parameters

    def _refusal(self, scope: Scope, error: GatewayError) -> Answer:
        path = raw_path(scope)
        if (mount := self.mounts.get(path)) is not None:
            return mount.refusal(error)
        metadata = metadata_url(self.services.settings)
        return arp.refusal(error, metadata) if arp.speaks(path) else problem(error, metadata)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Only what is mounted is opened and closed here: whoever made the services owns them."""
        while (await receive())["type"] != "lifespan.startup":
            pass
        async with AsyncExitStack() as running:
            for mount in self.mounts.values():
                await running.enter_async_context(mount.running())
            await send({"type": "lifespan.startup.complete"})
            while (await receive())["type"] != "lifespan.shutdown":
                pass
        await send({"type": "lifespan.shutdown.complete"})


def create_app(services: Services, operations: Sequence[Operation], mounts: Sequence[Mount] = ()) -> Application:
    """The application over wired services.

    Raises:
        ValueError: two operations answer the same method and path.
    """
    return Application(services, operations, mounts)


def report_fault(request_id: str, fault: Exception) -> None:
    """One record in the server's own log: where it happened and what kind it is, without a message, which may hold content."""
    frames = "".join(traceback.format_tb(fault.__traceback__))
    _log.error("request %s failed with %s\n%s", request_id, type(fault).__name__, frames)


def _admit(traffic: Traffic, exchange: Exchange) -> None:
    """Tell a request to come back that would be one too many, or that whoever sent it has most likely given up."""
    if traffic.under_way > limits.CONCURRENT_REQUESTS:
        raise Unavailable("too many requests are under way; try again", cause="requests")
    if exchange.began - exchange.queued > limits.TURN_SECONDS:
        raise Unavailable("too many requests came before this one; try again", cause="queue")


class _Reading:
    """The `receive` of a request; `done` once all of its body has been taken."""

    __slots__ = ("_receive", "done")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.done = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.done = not message.get("more_body", False)
        return message


def _request_id(scope: Scope) -> str:
    """The request's id: the one sent where it is safe to show and to log, else a new one."""
    sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    return sent.decode("ascii") if _REQUEST_ID.fullmatch(sent) else new_id()


def _echoed(scope: Scope, request_id: str) -> bytes:
    """The request's id as it is answered: AuthZEN clients get theirs back, whatever it is; it is shown nowhere else."""
    if raw_path(scope).startswith(AUTHZEN):
        sent = next((value for name, value in scope["headers"] if name == b"x-request-id"), None)
        if sent is not None:
            return bytes(sent)
    return request_id.encode("ascii")
