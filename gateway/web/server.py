"""One process that serves: sockets, signals, sweeps, and a stop with everything acknowledged on disk."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import importlib.util
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Sequence
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from gateway import limits
from gateway.operations.call import Services
from gateway.operations.reload import note_deciding, reload
from gateway.operations.store_reload import reload_store
from gateway.operations.sweeps import Sweep
from gateway.operations.traffic import Traffic
from gateway.web.accepting import Accepting, allow_files
from gateway.web.app import Application, report_fault
from gateway.web.lines import reporting
from gateway.web.protocol import BoundedProtocol
from gateway.web.traces import traced

#: A reader thread beside a busy one gets its turn after this long; at Python's own 5 ms reads fall to a few dozen a second.
SWITCH_SECONDS = 0.0001
#: Requests under way get this long to finish, which leaves a moment of the 5 s for the store.
GRACE_SECONDS = 3
KEEP_ALIVE_SECONDS = 75
HEAD_CHECK_SECONDS = 5.0
LOST_CHECK_SECONDS = 0.5


class ServeError(Exception):
    """The gateway cannot serve, or not any longer; the sentence says why."""


class StoreLost(ServeError):
    """The database has died and could not be opened again."""


class _Server(uvicorn.Server):
    """A server that says when it listens and that it is about to stop, and whose end is a return: the signal that asked for
    it is not raised again."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], traffic: Traffic) -> None:
        super().__init__(config)
        self._ready = ready
        self._traffic = traffic

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup([])
        self._accepting = [Accepting(each, self._connection, self.server_state.connections, self._told) for each in sockets or ()]
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in self._accepting:
            each.close()
        await super().shutdown(sockets)
        if (
            self.force_exit
        ):  # somebody asked twice: what is cut off is no fault, and what is mounted has to be closed all the same
            logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
            await self.lifespan.shutdown()

    def _told(self) -> None:
        self._traffic.shed["queue"] += 1

    def _connection(self) -> BoundedProtocol:
        return BoundedProtocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True
        self._traffic.draining = True


def serve(app: ASGIApp, services: Services, *, ready: Callable[[str], None], sweeps: Sequence[Sweep] = ()) -> None:
    """Serve until SIGTERM or SIGINT, then stop within 5 s and close the database.

    `ready` is called with the address once it answers; with port 0 that is where the port is found.

    Raises:
        ServeError: the address cannot be listened on.
        ConfigError: what the settings ask for is not installed.
        StoreLost: the database died and could not be opened again; whoever runs this may start it anew.
    """
    settings, traffic = services.settings, services.traffic
    sys.setswitchinterval(SWITCH_SECONDS)
    allow_files(limits.CONNECTIONS + limits.TURNED_AWAY + limits.FILES_KEPT)
    listening = listen(settings.host, settings.port)
    server = _Server(_config(app), lambda: ready(address(listening)), traffic)
    # What is loaded by now stays, and need not be gone through whenever garbage is collected.
    gc.collect()
    gc.freeze()
    try:
        note_deciding(services)
        with reporting(settings, traffic) as told, traced(settings):
            if isinstance(app, Application):
                app.told = told
            with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
                runner.run(_run(server, listening, services, sweeps))
    finally:
        listening.close()
        services.database.close()
    if services.database.lost:
        raise StoreLost(f"the server has stopped, because {services.database.failure}")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        ServeError: the address is taken, not ours or no address.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=limits.BACKLOG)
    except OSError as wrong:
        hint = "; --port 0 picks a free one" if wrong.errno == errno.EADDRINUSE else ""
        # Python puts the address into its own words on a failed bind; the system has none for a name that is not found.
        unnamed = isinstance(wrong, socket.gaierror)
        why = os.strerror(wrong.errno) if wrong.errno is not None and not unnamed else wrong.strerror
        raise ServeError(f"cannot listen on {host} port {port}: {why}{hint}") from wrong
    # What is taken from it has that too: without it the body of an answer waits 40 ms for word of its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address(listening: socket.socket) -> str:
    """The URL of a listening socket, with its real port."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _config(app: ASGIApp) -> uvicorn.Config:
    # A line a request is ours to write, and a refused handshake is nobody's.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    return uvicorn.Config(
        app,
        loop="uvloop" if importlib.util.find_spec("uvloop") else "asyncio",
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # An address in a header is the client's own word, and guesses are counted by address.
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


async def _run(server: _Server, listening: socket.socket, services: Services, sweeps: Sequence[Sweep]) -> None:
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, asked.set)
    always = (_close_slow(server), _stop_when_lost(server, services), _reload_when(asked, services))
    background = [asyncio.create_task(each) for each in (*always, *(_repeat(sweep) for sweep in sweeps))]
    try:
        await server.serve(sockets=[listening])
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)


async def _repeat(sweep: Sweep) -> None:
    """Run a sweep at once and then every so often; one that fails is reported and comes round again."""
    while True:
        try:
            await sweep.run()
        except Exception as fault:  # a sweep that ended for good would be a promise quietly broken
            report_fault(f"sweep {sweep.name}", fault)
        await asyncio.sleep(sweep.every.total_seconds())


async def _reload_when(asked: asyncio.Event, services: Services) -> None:
    """Load the store and the policies again whenever it is asked for, once for all that ask meanwhile; whatever fails, the
    process serves on by those that it has."""
    while True:
        await asked.wait()
        asked.clear()
        for load in (reload_store, reload):
            try:
                await load(services)
            except Exception as fault:  # nobody waits for it, so it is said here or nowhere
                report_fault("reload", fault)


async def _stop_when_lost(server: _Server, services: Services) -> None:
    while not services.database.lost:
        await asyncio.sleep(LOST_CHECK_SECONDS)
    server.should_exit = True


async def _close_slow(server: _Server) -> None:
    while True:
        await asyncio.sleep(HEAD_CHECK_SECONDS)
        now = asyncio.get_running_loop().time()
        for connection in list(server.server_state.connections):
            if isinstance(connection, BoundedProtocol):
                connection.close_if_slow(now)
