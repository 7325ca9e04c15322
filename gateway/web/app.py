"""The application: a list of routes you can see, made of the table of operations."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.errors import GatewayError, NotFound, Unavailable
from gateway.model.ids import new_id
from gateway.operations.call import Services
from gateway.operations.operation import Operation
from gateway.web.answer import Answer, answer, send_answer
from gateway.web.endpoint import respond
from gateway.web.health import HEALTH
from gateway.web.problems import Broken, WrongMethod, problem
from gateway.web.request import Gone
from gateway.web.routing import Route, Router, raw_path

#: The operations that are about the process and not about what it holds; every other comes from the table.
OWN: tuple[Operation, ...] = (HEALTH,)
#: Requests under way at once; one more is told to come back, before anything of it is read.
CONCURRENT_REQUESTS = 512
#: Where any request id is echoed; elsewhere only one that is safe to show and to log.
ECHO_ANY = b"/access/v1/"

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_log = logging.getLogger("gateway.web")


@dataclass(frozen=True, slots=True)
class Surface:
    """Another application that answers everything under a prefix, such as `/mcp`; it reaches only operations."""

    prefix: str
    app: ASGIApp

    def holds(self, path: str) -> bool:
        return path == self.prefix or path.startswith(self.prefix + "/")


class Application:
    """An ASGI application. `routes` is everything it answers itself, `surfaces` everything it hands on."""

    def __init__(self, services: Services, operations: Sequence[Operation], surfaces: Sequence[Surface] = ()) -> None:
        self.services = services
        self.surfaces = tuple(surfaces)
        self._router = Router((*OWN, *operations))
        self._under_way = 0

    @property
    def routes(self) -> tuple[Route, ...]:
        return self._router.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match scope["type"]:
            case "http":
                await self._http(scope, receive, send)
            case "lifespan":
                await _lifespan(receive, send)
            case _:
                await send({"type": "websocket.close", "code": 1000})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        for surface in self.surfaces:
            if surface.holds(scope["path"]):
                await surface.app(scope, receive, send)
                return
        request_id, echoed = _request_id(scope)
        self._under_way += 1
        try:
            made = await self._answer(request_id, scope, receive)
        except Gone:
            return
        finally:
            self._under_way -= 1
        await send_answer(send, made, echoed)

    async def _answer(self, request_id: str, scope: Scope, receive: Receive) -> Answer:
        try:
            if self._under_way > CONCURRENT_REQUESTS:
                raise Unavailable("too many requests are under way; try again")
            route, parameters = self._route(scope)
            reply = await respond(self.services, route, parameters, request_id, scope, receive)
            return answer(reply.status, reply.body, reply.headers)
        except GatewayError as refused:
            return problem(refused)
        except Gone:
            raise
        except Exception as fault:  # the last place where a fault of ours can become an answer instead of a broken connection
            report_fault(request_id, fault)
            return problem(Broken())

    def _route(self, scope: Scope) -> tuple[Route, tuple[str, ...]]:
        found = self._router.find(raw_path(scope))
        if found is None:
            raise NotFound
        methods, parameters = found
        route = methods.get(scope["method"])
        if route is None:
            raise WrongMethod(scope["method"], tuple(sorted(methods)))
        return route, parameters


def create_app(services: Services, operations: Sequence[Operation], surfaces: Sequence[Surface] = ()) -> Application:
    """The application over wired services.

    Raises:
        ValueError: two operations answer the same method and path.
    """
    return Application(services, operations, surfaces)


def report_fault(request_id: str, fault: Exception) -> None:
    """One record in the server's own log: where it happened and what kind it is, without a message, which may hold content."""
    frames = "".join(traceback.format_tb(fault.__traceback__))
    _log.error("request %s failed with %s\n%s", request_id, type(fault).__name__, frames)


def _request_id(scope: Scope) -> tuple[str, bytes]:
    """The request's id, and the header to send back."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            if _REQUEST_ID.fullmatch(value):
                return value.decode("ascii"), value
            if raw_path(scope).startswith(ECHO_ANY):
                return new_id(), value
            break
    made = new_id()
    return made, made.encode("ascii")


async def _lifespan(receive: Receive, send: Send) -> None:
    """Nothing is opened or closed here: whoever made the services owns them."""
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})
