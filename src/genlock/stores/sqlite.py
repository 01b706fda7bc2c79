"""SQLite: one file, one process, one thread that owns the connection, and a second connection that only reads."""

import asyncio
import json
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import IO, Any, Generic, TypeVar

from genlock.domain.errors import StoreError, StoreUnavailable
from genlock.ports import Clock, Observer
from genlock.stores.batch import Answer, Item, Params, Value
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import REGISTER, Migration, pending, shipped
from genlock.stores.queries import load, statements
from genlock.stores.rows import Row
from genlock.stores.session import Read, Runner, Session
from genlock.stores.sqlite_file import (
    OWNER_ONLY,
    empty_journal,
    main_file,
    must_exist,
    must_not_be_other_file,
    naming_the_file,
    take_file,
)

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
GROUP_COMMIT_MAX = 64
_ANY_AGE_SECONDS = 1e9
#: more statements than we have, so that none is compiled twice
_CACHED_MAX = 1000
#: ensure_ascii would write half a surrogate pair as an escape that cannot be read back; like this, binding refuses it
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class Request(Generic[T]):
    """A piece of work for the thread, and where its result goes."""

    def __init__(self, work: Work[T], future: asyncio.Future[T]) -> None:
        self._work = work
        self.future = future
        self._result: tuple[T] | None = None
        self._error: Exception | None = None

    def run(self, connection: sqlite3.Connection) -> None:
        try:
            self._result = (in_savepoint(connection, self._work),)
        except Exception as error:  # noqa: BLE001 - the caller of this piece of work gets it
            self._error = error

    def run_alone(self, connection: sqlite3.Connection) -> bool:
        """Run in a transaction without other work. False if the transaction is to be undone."""
        try:
            self._result = (self._work(connection),)
        except Exception as error:  # noqa: BLE001 - the caller of this piece of work gets it
            self._error = _named(error)
        return self._error is None

    def fail(self, error: Exception) -> None:
        self._error = error

    def answer(self) -> None:
        """Resolve the future, in its own event loop."""
        if self.future.done():
            return
        if self._error is not None:
            self.future.set_exception(self._error)
        elif self._result is not None:
            self.future.set_result(self._result[0])


class SqliteSession(Session):
    """Statements that wait at the same time are committed together, durably, outside the event loop."""

    unique_violation = sqlite3.IntegrityError

    def __init__(
        self, connection: sqlite3.Connection, *, clock: Clock, observer: Observer, lock: IO[str] | None
    ) -> None:
        super().__init__(observer)
        self.queries = load("sqlite")
        self.statements = {name: list(texts) for name, texts in _all_statements().items()}
        self.connection = connection
        self._clock = clock
        self._lock = lock
        #: reads by key run on it, in the event loop: the way to the thread and back takes longer than they do
        self.reader: sqlite3.Connection | None = None
        self._requests: queue.SimpleQueue[Request[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start_thread(self) -> None:
        """Move the work to a thread of its own. Without it, statements run in the event loop."""
        self._thread = threading.Thread(target=self._serve, name="genlock-sqlite", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        if self._thread:
            self._requests.put(None)
            await asyncio.to_thread(self._thread.join)
        if self.reader:
            self.reader.close()
        self.connection.close()
        if self._lock:
            self._lock.close()

    async def scrub(self) -> bool:
        """Empty the write-ahead log, which holds the pages as they were; False while another connection reads it."""
        return await empty_journal(await self.call(main_file))

    async def migrate(self) -> list[str]:
        return await self.call(self._migrate)

    def _migrate(self, connection: sqlite3.Connection) -> list[str]:
        connection.execute(REGISTER)
        applied = [
            Migration(number=number, name=name, checksum=checksum)
            for number, name, checksum in connection.execute("SELECT number, name, checksum FROM migrations")
        ]
        todo = pending(shipped("sqlite"), applied)
        apply_migrations(connection, todo, self._clock)
        return [migration.label for migration in todo]

    @staticmethod
    def time(value: Any) -> datetime | None:
        return None if value is None else _EPOCH + value * _MICROSECOND

    def array(self, values: Sequence[Any]) -> Any:
        return json.dumps(list(values))

    def reads(self, name: str, run: Runner[Value, Answer]) -> Read[Value, Answer]:
        """Read at once: there is no statement on its way that a read could share."""
        share = super().reads(name, run)

        async def read(item: Item[Value]) -> Answer:
            if self.reader is None:
                return await share(item)
            [answer] = await run([item])
            if isinstance(answer, Exception):
                raise answer
            return answer

        return read

    async def one(self, name: str, /, **params: Any) -> list[Row]:
        self.observer.count("store_statements", 1, operation=name)
        return await self._run(name, [params])

    async def many(self, name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        self.observer.count("store_statements", 1, operation=name)
        if ":items" in self.queries[name].text:
            text = _encode(items)
            if "\\u0000" in text and any("\0" in str(value) for item in items for value in item.values()):
                raise ValueError("a text with a NUL character cannot be stored")  # SQLite's JSON would cut it there
            return await self._run(name, [{**shared, "items": text}])
        # Items that JSON cannot carry, or reads in the event loop, where there is one at a time.
        return await self._run(name, [{**shared, **item} for item in items])

    async def _run(self, name: str, items: Sequence[Params]) -> list[Row]:
        if self.reader is not None and self.queries[name].by_key:
            try:
                return self._execute_each(self.reader, name, items)
            except sqlite3.OperationalError:
                pass  # another process holds the file: the thread waits for it, and names what is wrong otherwise
        return await self.call(lambda connection: self._execute_each(connection, name, items))

    def _execute_each(self, connection: sqlite3.Connection, name: str, items: Sequence[Params]) -> list[Row]:
        if len(items) == 1 and "ord" not in items[0]:
            return self._execute(connection, name, items[0])
        return [{**row, "ord": item.get("ord")} for item in items for row in self._execute(connection, name, item)]

    def _execute(self, connection: sqlite3.Connection, name: str, params: Params) -> list[Row]:
        params["now"] = (self._clock.now() - _EPOCH) // _MICROSECOND
        rows: list[Row] = []
        for statement in self.statements[name]:
            cursor = connection.execute(statement, params)
            if cursor.description:
                names = [column[0] for column in cursor.description]
                rows += [dict(zip(names, row, strict=True)) for row in cursor]
        return rows

    async def call(self, work: Work[T]) -> T:
        """Run a function on the connection, in a transaction that may have other work in it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        request = Request(work, future)
        if self._thread is None:
            _commit(self.connection, [request])
            request.answer()
        else:
            self._requests.put(request)
        return await future

    def _serve(self) -> None:
        """The thread: commit all waiting requests in one transaction, then answer them together."""
        while (first := self._requests.get()) is not None:
            group: list[Request[Any]] = [first]
            stop = False
            while len(group) < GROUP_COMMIT_MAX and not self._requests.empty():
                request = self._requests.get()
                if request is None:
                    stop = True
                    break
                group.append(request)
            try:
                _commit(self.connection, group)
            except Exception as error:  # noqa: BLE001 - if this thread ended, no later caller would get an answer
                for request in group:
                    request.fail(StoreError(f"SQLite could not roll back: {error!r}"))
            loop = first.future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_answer, group)
            if stop:
                return


class SqliteStore(SqlDatabase):
    """The database on SQLite."""

    session: SqliteSession

    @classmethod
    async def open(cls, path: str, *, clock: Clock, observer: Observer, without_lock: bool = False) -> "SqliteStore":
        """Open or create the file, lock it for this process, and apply pending migrations.

        With `without_lock`, open it while another process has the lock, to read or to do single operations: nothing is
        migrated, and each commit waits for the other process. A process that works on jobs must have the lock.
        """
        if without_lock:
            must_exist(path)
        else:
            must_not_be_other_file(path)
        lock = take_file(path) if path != ":memory:" and not without_lock else None
        try:
            session = SqliteSession(connect(path), clock=clock, observer=observer, lock=lock)
        except StoreUnavailable:
            if lock:
                lock.close()
            raise
        if path != ":memory:":
            session.start_thread()
            session.reader = connect_reader(path)
        store = cls(session)
        try:
            store.applied = [] if without_lock else await session.migrate()
            if lock:  # only one process can have the file, so all instances in it have ended
                store.orphaned = await store.live_instances(_ANY_AGE_SECONDS)
        except BaseException:
            await store.close()
            raise
        return store


def _commit(connection: sqlite3.Connection, requests: Sequence[Request[Any]]) -> None:
    """Run several requests in one durable transaction; one that fails is undone alone."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        if len(requests) == 1:
            if requests[0].run_alone(connection):
                connection.execute("COMMIT")
            elif connection.in_transaction:
                connection.execute("ROLLBACK")
            return
        for request in requests:
            request.run(connection)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        for request in requests:
            request.fail(StoreError(f"SQLite could not commit: {error}"))


def in_savepoint(connection: sqlite3.Connection, work: Work[T]) -> T:
    """Run one piece of work in the current transaction and undo it if it fails."""
    connection.execute("SAVEPOINT work")
    try:
        return work(connection)
    except Exception as error:
        connection.execute("ROLLBACK TO work")
        if (named := _named(error)) is error:
            raise
        raise named from error
    finally:
        connection.execute("RELEASE work")


def _named(error: Exception) -> Exception:
    """Return what the caller gets: if the disk is full or broken, the request is not to blame."""
    if isinstance(error, sqlite3.OperationalError):
        named = StoreError(f"SQLite could not run the statement: {error}")
        named.__cause__ = error
        return named
    return error


def apply_migrations(connection: sqlite3.Connection, todo: Sequence[Migration], clock: Clock) -> None:
    """Apply migrations in the current transaction, and record them."""
    for migration in todo:
        for statement in statements(migration.text):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO migrations VALUES (?, ?, ?, ?)",
            (migration.number, migration.name, migration.checksum, clock.now().isoformat()),
        )


def _answer(requests: Sequence[Request[Any]]) -> None:
    for request in requests:
        request.answer()


@cache
def _all_statements() -> dict[str, tuple[str, ...]]:
    """Return the statements of every query."""
    return {name: tuple(statements(query.text)) for name, query in load("sqlite").items()}


def connect(path: str) -> sqlite3.Connection:
    """Open a connection with our settings and the temporary tables of the batches. Raises StoreUnavailable."""
    with naming_the_file(path):
        if path != ":memory:" and not Path(path).exists():
            Path(path).touch(OWNER_ONLY)  # SQLite gives the files beside it the same mode
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=_CACHED_MAX)
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",  # money: a commit that was answered survives a power cut
            "foreign_keys = ON",
            "secure_delete = ON",  # erased texts do not stay in free pages; the default depends on the build
            "temp_store = MEMORY",
            "busy_timeout = 30000",
        ):
            connection.execute(f"PRAGMA {pragma}")
    for statement in statements(load("sqlite")["temporary"].text):
        connection.execute(statement)
    return connection


def connect_reader(path: str) -> sqlite3.Connection:
    """Open a connection that cannot write, and that does not wait for another process."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
    connection.execute("PRAGMA query_only = ON")
    return connection
