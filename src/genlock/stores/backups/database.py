"""What a backup reads from a database, and what a restore does to one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import Migration

#: the columns of every table by name, each with its declared type
Tables = Mapping[str, Mapping[str, str]]
#: the table of applied migrations, which the first line of a backup holds instead
MIGRATIONS = "migrations"


class Snapshot(ABC):
    """A database at one moment, while instances go on writing to it."""

    dialect: str
    tables: Tables
    migrations: Sequence[Migration]

    @abstractmethod
    async def dump(self, table: str, write: Callable[[bytes], None]) -> None:
        """Write the rows of a table as lines of the backup, a bounded piece at a time."""


class Target(ABC):
    """A database in one transaction, which replaces everything in it or nothing."""

    dialect: str
    #: runs the usual statements in this transaction
    database: SqlDatabase

    @abstractmethod
    async def tables(self) -> Tables: ...

    @abstractmethod
    async def applied(self) -> list[Migration]: ...

    @abstractmethod
    async def drop(self, tables: Sequence[str]) -> None: ...

    @abstractmethod
    async def migrate(self, migrations: Sequence[Migration]) -> None: ...

    @abstractmethod
    async def load(self, table: str, columns: Mapping[str, str], rows: Iterator[list[Any]]) -> None:
        """Add rows, whose values are in the order of `columns`.

        No trigger runs: what it would count or record is in the backup.
        """

    @abstractmethod
    async def count(self, table: str) -> int: ...

    @abstractmethod
    async def finish(self, id_gap: int) -> None:
        """Let new rows get ids above the restored ones, where possible `id_gap` higher, and update statistics."""


def to_rows(
    rows: Iterator[list[Any]], columns: Mapping[str, str], conversions: Mapping[str, Callable[[Any], Any]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a backup with every value as its column takes it."""
    converts = [conversions.get(kind) for kind in columns.values()]
    for row in rows:
        yield tuple(
            value if value is None or convert is None else convert(value)
            for value, convert in zip(row, converts, strict=True)
        )
