"""Backups of SQLite: the online backup API copies the file while the service writes to it."""

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

from genlock.domain.errors import BackupFailed, StoreError
from genlock.ports import Clock, Observer
from genlock.stores.backups.database import MIGRATIONS, Snapshot, Tables, Target, to_rows
from genlock.stores.backups.file import to_line
from genlock.stores.backups.private_folder import private_folder
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import REGISTER, Migration
from genlock.stores.sqlite import apply_migrations, connect
from genlock.stores.sqlite_file import must_exist, take_file
from genlock.stores.transaction import SqliteTransaction

_ROWS_AT_ONCE = 500
_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? ORDER BY rowid"
_FROM_BACKUP: Mapping[str, Callable[[Any], Any]] = {"BLOB": bytes.fromhex}


class SqliteSnapshot(Snapshot):
    dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.tables = _tables(connection)
        self.migrations = _applied(connection)

    async def dump(self, table: str, write: Callable[[bytes], None]) -> None:
        columns = ", ".join(_expression(name, kind) for name, kind in self.tables[table].items())
        cursor = self._connection.execute(f'SELECT {columns} FROM "{table}"')  # noqa: S608 - names of our own tables
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            write(b"".join(map(to_line, rows)))


@asynccontextmanager
async def sqlite_snapshot(path: str, folder: Path) -> AsyncIterator[SqliteSnapshot]:
    """Copy the database into `folder`, check the copy, and read from it. The copy is removed at the end.

    So the live file is read for as long as a copy takes, and a damaged one is noticed before it is backed up.
    """
    must_exist(path)
    with private_folder(folder) as private, closing(sqlite3.connect(private / "copy.db", isolation_level=None)) as copy:
        try:
            with closing(sqlite3.connect(path, timeout=30.0)) as live:
                live.backup(copy)
            [(verdict,)] = copy.execute("PRAGMA integrity_check(1)")
        except sqlite3.Error as error:
            raise StoreError(f"SQLite could not copy {path}: {error}") from error
        if verdict != "ok":
            raise BackupFailed(f"{path} is damaged ({verdict}): keep the backups you have, and restore the last one")
        yield SqliteSnapshot(copy)


class SqliteTarget(Target):
    dialect = "sqlite"

    def __init__(self, connection: sqlite3.Connection, *, clock: Clock, observer: Observer) -> None:
        self._connection = connection
        self._clock = clock
        self.database = SqlDatabase(SqliteTransaction(connection, clock=clock, observer=observer, lock=None))

    async def tables(self) -> Tables:
        return _tables(self._connection)

    async def applied(self) -> list[Migration]:
        return _applied(self._connection)

    async def drop(self, tables: Sequence[str]) -> None:
        for table in tables:
            self._connection.execute(f'DROP TABLE "{table}"')

    async def migrate(self, migrations: Sequence[Migration]) -> None:
        self._connection.execute(REGISTER)
        apply_migrations(self._connection, migrations, self._clock)

    async def load(self, table: str, columns: Mapping[str, str], rows: Iterator[list[Any]]) -> None:
        names = ", ".join(f'"{name}"' for name in columns)
        places = ", ".join("?" for _ in columns)
        statement = f'INSERT INTO "{table}" ({names}) VALUES ({places})'  # noqa: S608 - names of our own tables
        triggers = self._connection.execute(_TRIGGERS, [table]).fetchall()
        for name, _ in triggers:
            self._connection.execute(f'DROP TRIGGER "{name}"')
        self._connection.executemany(statement, to_rows(rows, columns, _FROM_BACKUP))
        for _, definition in triggers:
            self._connection.execute(definition)

    async def count(self, table: str) -> int:
        [(count,)] = self._connection.execute(f'SELECT count(*) FROM "{table}"')  # noqa: S608 - as above
        return int(count)

    async def finish(self, id_gap: int) -> None:
        """Nothing to do: SQLite gives a new row the id after the highest one, and can leave no gap."""


@asynccontextmanager
async def sqlite_target(path: str, *, clock: Clock, observer: Observer) -> AsyncIterator[SqliteTarget]:
    """Open or create the file for this process alone, and commit at the end of the block, or change nothing."""
    with take_file(path):
        created = _is_new(path)
        complete = False
        try:
            with closing(connect(path)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield SqliteTarget(connection, clock=clock, observer=observer)
                connection.execute("COMMIT")
                complete = True
        except sqlite3.Error as error:
            raise StoreError(f"SQLite could not restore: {error}") from error
        finally:
            if created and not complete:
                _remove(path)


def _is_new(path: str) -> bool:
    return not Path(path).exists()


def _remove(path: str) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _tables(connection: sqlite3.Connection) -> Tables:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        name: {column[1]: column[2].upper() for column in connection.execute(f'PRAGMA table_info("{name}")')}
        for (name,) in names
        if name != MIGRATIONS and not name.startswith("sqlite_")
    }


def _expression(column: str, kind: str) -> str:
    """Return the SQL for a column's value in the backup."""
    return f'iif("{column}" IS NULL, NULL, lower(hex("{column}")))' if kind == "BLOB" else f'"{column}"'


def _applied(connection: sqlite3.Connection) -> list[Migration]:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").fetchone():
        return []
    rows = connection.execute("SELECT number, name, checksum FROM migrations ORDER BY number")
    return [Migration(number=number, name=name, checksum=checksum) for number, name, checksum in rows]
