"""SQLite: one file, one process, one thread that owns the connection."""

import asyncio
import fcntl
import json
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, TypeVar

from genlock.domain.errors import StoreError, StoreInUse, StoreUnavailable
from genlock.ports import Clock, Observer
from genlock.stores.batch import Params
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import REGISTER, Migration, pending, shipped
from genlock.stores.queries import load, statements
from genlock.stores.rows import Row

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
GROUP_COMMIT_MAX = 64
_EVER_SECONDS = 1e9
#: people's texts and money: nobody else on the machine reads them
_OURS = 0o600
#: Not in ASCII: half a character would be written as one that nobody can read again; so it is refused when bound.
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class SqliteStore(SqlDatabase):
    """The Store port on SQLite. Everything that waits is committed together, durably, off the event loop."""

    not_unique = sqlite3.IntegrityError

    def __init__(
        self, connection: sqlite3.Connection, *, clock: Clock, observer: Observer, lock: IO[str] | None
    ) -> None:
        super().__init__(observer)
        self.queries = load("sqlite")
        self._statements = {name: statements(query.text) for name, query in self.queries.items()}
        self._connection = connection
        self._clock = clock
        self._lock = lock
        self._work: queue.SimpleQueue[tuple[Work, asyncio.Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    @classmethod
    async def open(cls, path: str, *, clock: Clock, observer: Observer, beside: bool = False) -> "SqliteStore":
        """Open (or make) the file, take it for this process, bring its schema up to date.

        One who comes for a moment may do so beside the process that has it: the schema is taken as it is, and each
        commit waits for its turn. Only to work on jobs, one must have the file.
        """
        if beside:
            must_exist(path)
        lock = _take_file(path) if path != ":memory:" and not beside else None
        store = cls(_connect(path), clock=clock, observer=observer, lock=lock)
        if path != ":memory:":
            store._thread = threading.Thread(target=store._serve, name="genlock-sqlite", daemon=True)
            store._thread.start()
        try:
            store.applied = [] if beside else await store.migrate()
            if lock:  # whoever is known here had the file before us, and has it no more
                store._orphaned_instances = await store.live_instances(_EVER_SECONDS)
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        if self._thread:
            self._work.put(None)
            await asyncio.to_thread(self._thread.join)
        self._connection.close()
        if self._lock:
            self._lock.close()

    async def migrate(self) -> list[str]:
        """Apply what is pending and say what it was."""
        return await self._call(self._migrate)

    def _migrate(self, connection: sqlite3.Connection) -> list[str]:
        connection.execute(REGISTER)
        applied = [
            Migration(number=number, name=name, checksum=checksum)
            for number, name, checksum in connection.execute("SELECT number, name, checksum FROM migrations")
        ]
        todo = pending(shipped("sqlite"), applied)
        for migration in todo:
            for statement in statements(migration.text):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO migrations VALUES (?, ?, ?, ?)",
                (migration.number, migration.name, migration.checksum, self._clock.now().isoformat()),
            )
        return [f"{migration.number:04d}_{migration.name}" for migration in todo]

    @staticmethod
    def time(value: Any) -> datetime | None:
        return None if value is None else _EPOCH + value * _MICROSECOND

    async def one(self, name: str, /, **params: Any) -> list[Row]:
        return await self._call(lambda connection: self._execute(connection, name, params))

    async def many(self, name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        if ":items" in self.queries[name].text:
            text = _encode(items)
            if "\\u0000" in text and any("\0" in str(value) for item in items for value in item.values()):
                raise ValueError("a text with a NUL character cannot be stored")  # SQLite's JSON would cut it off there
            return await self._call(lambda connection: self._execute(connection, name, {**shared, "items": text}))

        def work(connection: sqlite3.Connection) -> list[Row]:
            """What JSON cannot carry goes one by one."""
            return [
                {**row, "ord": item["ord"]}
                for item in items
                for row in self._execute(connection, name, {**shared, **item})
            ]

        return await self._call(work)

    def _execute(self, connection: sqlite3.Connection, name: str, params: Params) -> list[Row]:
        params["now"] = (self._clock.now() - _EPOCH) // _MICROSECOND
        rows: list[Row] = []
        for statement in self._statements[name]:
            cursor = connection.execute(statement, params)
            if cursor.description:
                names = [column[0] for column in cursor.description]
                rows += [dict(zip(names, row, strict=True)) for row in cursor]
        return rows

    async def _call(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._thread is None:
            answer = _together(self._connection, [work])[0]
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[no-any-return]
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._work.put((work, future))
        return await future

    def _serve(self) -> None:
        """The thread: everything that is waiting goes into one transaction, then all are answered at once."""
        while (first := self._work.get()) is not None:
            group = [first]
            stop = False
            while len(group) < GROUP_COMMIT_MAX and not self._work.empty():
                entry = self._work.get()
                if entry is None:
                    stop = True
                    break
                group.append(entry)
            try:
                answers = _together(self._connection, [work for work, _ in group])
            except Exception as error:  # noqa: BLE001 - a thread that ends leaves everybody waiting for ever
                answers = [StoreError(f"SQLite could not roll back: {error!r}")] * len(group)
            loop = group[0][1].get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_tell, [future for _, future in group], answers)
            if stop:
                return


def _together(connection: sqlite3.Connection, works: list[Work]) -> list[Any]:
    """Run several pieces of work in one durable transaction; one that fails is undone alone."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        answers = [_alone(connection, work) for work in works]
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return [StoreError(f"SQLite could not commit: {error}")] * len(works)
    return answers


def _alone(connection: sqlite3.Connection, work: Work) -> Any:
    connection.execute("SAVEPOINT work")
    try:
        return work(connection)
    except sqlite3.OperationalError as error:  # the disk is full or broken: not the fault of what was asked
        connection.execute("ROLLBACK TO work")
        return StoreError(f"SQLite could not do it: {error}")
    except Exception as error:  # noqa: BLE001 - the caller of this piece gets it
        connection.execute("ROLLBACK TO work")
        return error
    finally:
        connection.execute("RELEASE work")


def _tell(futures: list[asyncio.Future[Any]], answers: list[Any]) -> None:
    for future, answer in zip(futures, answers, strict=True):
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def _connect(path: str) -> sqlite3.Connection:
    if path != ":memory:" and not Path(path).exists():
        Path(path).touch(_OURS)  # what SQLite puts beside it may be read by as many
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",  # money: a commit that was answered survives a power cut
        "foreign_keys = ON",
        "temp_store = MEMORY",
        "busy_timeout = 30000",
    ):
        connection.execute(f"PRAGMA {pragma}")
    for statement in statements(load("sqlite")["temporary"].text):
        connection.execute(statement)
    return connection


def must_exist(path: str) -> None:
    """Refuse to look into a file that is not there: an empty one would say that all is well."""
    if path != ":memory:" and not Path(path).exists():
        raise StoreUnavailable(
            f"{Path(path).absolute()} does not exist: set GENLOCK_DATABASE_URL as the service has it, "
            "or make a new database with `genlock migrate`"
        )


def file_holder(path: str) -> str | None:
    """The id of the process that has this file, if one has."""
    lock = Path(f"{path}.lock")
    if not lock.exists():
        return None
    with lock.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return file.read().strip() or "unknown"
    return None


def _take_file(path: str) -> IO[str]:
    """Refuse a second process. The lock goes with the process, however it ends."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    lock = os.fdopen(os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, _OURS), "r+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StoreInUse(
            f"{path} is in use by another genlock process (pid {holder}). SQLite serves one process: stop that one, "
            "or set GENLOCK_DATABASE_URL to a postgresql:// address to run several."
        ) from None
    lock.seek(0)
    lock.truncate()
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
