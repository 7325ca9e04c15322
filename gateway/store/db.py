"""Database: the one DuckDB file of this process, with its lock, its mark, its writer and its readers."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Self, TypedDict, TypeVar, Unpack

import duckdb

from gateway.model.caller import OPERATOR
from gateway.model.entity import EntityUid
from gateway.model.evidence import LogRow, audit_row
from gateway.store.faults import StoreFailed, StoreRefused
from gateway.store.files import Files
from gateway.store.lock import Lock
from gateway.store.log import PREPARE, Head, Log
from gateway.store.mark import Mark, check, compare
from gateway.store.migrate import MIGRATIONS, applied, load, migrate
from gateway.store.readers import PROBE, Readers
from gateway.store.rows import Rows
from gateway.store.state import State
from gateway.store.writer import Instance, Unit, Writer

T = TypeVar("T")


class Options(TypedDict, total=False):
    """How to open a database: where the SQL files and the time come from, and what DuckDB may use of the machine."""

    migrations: Traversable
    clock: Callable[[], datetime]
    memory_limit: str
    threads: int
    accept_missing_mark: bool
    read_only: bool


class Database:
    """Made by `create` or `open`. Changes go through one writer thread, reads through two reader threads."""

    failure: str | None = None
    """Why the database does not serve, for people who run it; None while it does."""

    lost: bool = False
    """Whether it could not be opened again: nothing is answered or kept any more, and the process has to end."""

    @classmethod
    def create(cls, data: Path, **options: Unpack[Options]) -> Self:
        """Make a database in `data`, which is made too, for its owner only; raise StoreRefused when there is one."""
        data.mkdir(mode=stat.S_IRWXU, parents=True, exist_ok=True)
        cls.refuse_existing(data)
        data.chmod(stat.S_IRWXU)
        return cls(data, **options)

    @staticmethod
    def refuse_existing(data: Path) -> None:
        """Make sure that `create` will not find a database; raise StoreRefused when there is one."""
        if Files(data).database.exists():
            raise StoreRefused(f"there is a database in `{data}` already: serve it with `peergate serve --data {data}`")

    @classmethod
    def open(cls, data: Path, **options: Unpack[Options]) -> Self:
        """Open the database in `data` and bring its schema up to date.

        Raises:
            StoreRefused: there is none, other users can reach it, another process holds it, it is newer than the code, it
                cannot be read, or its log is not the one that the mark beside it knows.
        """
        refuse_unfit(data)
        return cls(data, **options)

    def __init__(self, data: Path, **options: Unpack[Options]) -> None:
        self.files = Files(data.resolve())
        self._options = options
        self._clock = options.get("clock", _now)
        self.state = State()
        self._reloads: list[Callable[[Rows], None]] = []
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._closed = False
        os.umask(stat.S_IRWXG | stat.S_IRWXO)  # for good: DuckDB makes its write-ahead log and spill files whenever it likes
        with ExitStack() as opened:
            self._lock = Lock(self.files.lock)
            opened.callback(self._lock.release)
            self.files.clean()
            self._mark = Mark(self.files.mark)
            opened.callback(self._mark.close)
            self._writer = Writer(self._revive, self.state)
            self._readers = Readers(self._writer.report)
            try:
                self.attach(accept_missing_mark=options.get("accept_missing_mark", False))
            except duckdb.Error as error:
                raise StoreRefused(f"the database in `{data}` cannot be opened: {_first_line(error)}") from error
            opened.pop_all()
        self._writer.start()
        self._readers.start()

    @property
    def healthy(self) -> bool:
        return self.failure is None

    @property
    def writer(self) -> Writer:
        """What has been written, how long it took, and how much waits."""
        return self._writer

    @property
    def reads_waiting(self) -> int:
        """How many reads wait for a thread."""
        return self._readers.waiting

    async def probe(self) -> bool:
        """Say whether the database serves, after a query."""
        await self.read(lambda rows: rows.value(PROBE))
        return self.healthy

    async def read(self, ask: Callable[[Rows], T], *, snapshot: bool = False) -> T:
        """Run `ask` on a reader thread; with `snapshot`, all its statements see one state of the database."""
        return await asyncio.wrap_future(self._readers.submit(ask, snapshot=snapshot))

    def read_sync(self, ask: Callable[[Rows], T], *, snapshot: bool = False) -> T:
        """As `read`, for callers without an event loop; never from a thread of the store."""
        return self._readers.submit(ask, snapshot=snapshot).result()

    def write(self, unit: Unit[T]) -> Future[T]:
        """Queue a change; the future is done when it is durable and published, or has failed.

        A failure leaves no trace, but for `StoreFailed`: then the change may have happened.
        """
        return self._writer.submit(unit)

    async def awrite(self, unit: Unit[T]) -> T:
        """As `write`. The change happens also when its caller is cancelled."""
        return await asyncio.shield(asyncio.wrap_future(self._writer.submit(unit)))

    def note(self, rows: Sequence[LogRow]) -> None:
        """Add rows to the log within 50 ms, without waiting; raise StoreBusy when that cannot be."""
        self._writer.note(rows)

    def exclusive(self, run: Callable[[duckdb.DuckDBPyConnection], T]) -> Future[T]:
        """Queue a function that has the writer's connection to itself, outside a transaction."""
        return self._writer.exclusive(lambda: run(self.connection))

    def checkpoint(self) -> Future[None]:
        """Queue moving the write-ahead log into the file, as after a sweep."""
        return self.exclusive(lambda connection: _checkpoint(connection))

    def on_reopen(self, reload: Callable[[Rows], None]) -> None:
        """Call `reload` when the instance had to be opened again: what is held in memory may have missed a commit."""
        self._reloads.append(reload)

    def close(self) -> None:
        """Commit what is queued, checkpoint, and let go of the directory; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        self._readers.close("the store is closed")
        if self._connection is not None:
            with suppress(duckdb.Error):  # what is not in the file is in its write-ahead log
                _checkpoint(self._connection)
        self.detach()
        self._mark.close()
        self._lock.release()

    # -- for the writer's thread, or while it does not run -----------------------------------------------------------

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The writer's connection."""
        if self._connection is None:
            raise StoreFailed("the database is closed")
        return self._connection

    def attach(self, *, accept_missing_mark: bool = False) -> None:
        """Open the file, migrate it, compare it with the mark, and serve it."""
        connection = connect(self.files, **self._options)
        try:
            migrate(connection, self._options.get("migrations", MIGRATIONS), self._clock)
            head = check(self._mark, Rows(connection), accept_missing=accept_missing_mark)
            connection.execute(PREPARE)
            self._writer.attach(Instance(connection, Log(head), self._mark))
            self._readers.attach(connection)
        except BaseException:  # whatever it is, and it goes on: the file must not stay open
            connection.close()
            raise
        self._connection = connection

    def detach(self) -> None:
        """Close the file; reads wait for the next `attach`."""
        self._writer.attach(None)
        self._readers.detach()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _revive(self, error: BaseException) -> None:
        """Open the file again after the instance has died, and prove that the log can be written; there is no second try."""
        self.failure = f"the database has failed: {_first_line(error)}"
        try:
            self.detach()
            if not self.files.database.exists():
                raise StoreFailed("its file is gone")  # opening would make an empty one
            self.attach()
            details = {"error": type(error).__name__, "relaxed_rows_lost": self._writer.salvage()}
            self._writer.write_now(_reopened(self._clock(), details))
            for reload in self._reloads:
                reload(Rows(self.connection))
        except BaseException as again:  # whatever it is, and it goes on: those who wait to read must hear of it
            self.failure = f"{self.failure}; it could not be opened again: {_first_line(again)}"
            self.lost = True
            self._readers.close(self.failure)
            raise
        self.failure = None


def inspect(data: Path) -> tuple[int, int, int]:
    """Look at the database of a directory that nobody holds, changing nothing.

    Returns its schema, the newest one this program knows, and how many organisations are in it; raises `StoreRefused` where
    `Database.open` would.
    """
    refuse_unfit(data)
    files, known = Files(data.resolve()), load(MIGRATIONS)
    try:
        with connect(files, read_only=True) as connection:
            rows = Rows(connection)
            schema = applied(rows, known)
            compare(_marked(files), rows, accept_missing=False)
            return schema, len(known), rows.value("SELECT count(*) FROM orgs")
    except duckdb.Error as error:
        raise StoreRefused(f"the database in `{data}` cannot be opened: {_first_line(error)}") from error


def _marked(files: Files) -> Head | None:
    if not files.mark.exists():
        return None  # opening it would make it
    mark = Mark(files.mark)
    try:
        return mark.read()
    finally:
        mark.close()


def refuse_unfit(data: Path) -> None:
    """Raise `StoreRefused` where there is no database, or where others of the machine can reach it."""
    if not Files(data).database.exists():
        raise StoreRefused(f"there is no database in `{data}`: make one with `peergate init --data {data}`")
    if data.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StoreRefused(f"`{data}` is open to other users of this machine: chmod 700 {data}")


def connect(files: Files, **options: Unpack[Options]) -> duckdb.DuckDBPyConnection:
    """Open the file so that no statement reaches outside the data directory, loads an extension or changes a setting."""
    connection = duckdb.connect(
        str(files.database),
        read_only=options.get("read_only", False),
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "memory_limit": options.get("memory_limit", "1GB"),
            "threads": options.get("threads", 2),
        },
    )
    directory = str(files.data).replace("'", "''")
    for setting in (
        "GLOBAL TimeZone = 'UTC'",
        f"allowed_directories = ['{directory}']",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")
    return connection


def _checkpoint(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("FORCE CHECKPOINT")  # without FORCE it is refused while a result is being read


def _reopened(at: datetime, details: Mapping[str, object]) -> LogRow:
    about = EntityUid("Installation", "local")
    return audit_row(at=at, org_id="", principal=OPERATOR.uid, action="store_reopened", resource=about, details=details)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _now() -> datetime:
    return datetime.now(UTC)
