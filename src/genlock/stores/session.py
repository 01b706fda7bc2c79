"""A session runs named statements on one database. Everything else in this package is the same for all databases."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from genlock.ports import Observer
from genlock.stores.batch import Answer, Batch, Item, Params, Value
from genlock.stores.queries import Query
from genlock.stores.rows import Row

Runner = Callable[[list[Item[Value]]], Awaitable[Sequence[Answer | Exception]]]
Read = Callable[[Item[Value]], Awaitable[Answer]]

_KEY, _SHARED = itemgetter(0), itemgetter(1)


class Session(ABC):
    """The connection to a database: its statements, its clock, its types."""

    queries: Mapping[str, Query]
    #: what the driver raises when a unique key exists already
    unique_violation: type[Exception]
    #: grows when a statement was retried after a lost connection: it may have been committed twice
    uncertain_commits: int = 0
    #: whether an index keeps the entries of rows that changed while another transaction may still see the old ones
    keeps_dead_entries = False
    #: whether a clock of the caller replaces the database's: how long a statement takes says nothing then
    has_own_clock = False

    def __init__(self, observer: Observer) -> None:
        self.observer = observer

    @abstractmethod
    async def one(self, name: str, /, **params: Any) -> list[Row]:
        """Run a statement once, in a transaction of its own."""

    @abstractmethod
    async def many(self, name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        """Run a statement over many items, in one transaction."""

    @staticmethod
    @abstractmethod
    def time(value: Any) -> datetime | None:
        """Return a time column as an aware datetime."""

    @abstractmethod
    def array(self, values: Sequence[Any]) -> Any:
        """Return a list as the database takes it for a parameter."""

    @abstractmethod
    async def migrate(self) -> list[str]:
        """Apply the pending migrations. Returns their names."""

    @abstractmethod
    async def close(self) -> None: ...

    async def scrub(self) -> bool:
        """Remove deleted rows from the files that this process can change; False while others use them."""
        return True

    def batch(self, name: str, run: "Runner[Value, Answer]", *, joins: bool = False) -> Batch[Item[Value], Answer]:
        """Return a batch of a statement's calls, whose size is counted under the statement's name."""

        async def counted(items: list[Item[Value]]) -> Sequence[Answer | Exception]:
            self.observer.count("store_batches", 1, operation=name)
            self.observer.count("store_batch_items", len(items), operation=name)
            return await run(items)

        return Batch(counted, key=_KEY, group=_SHARED, joins=joins)

    def reads(self, name: str, run: "Runner[Value, Answer]") -> "Read[Value, Answer]":
        """Return a function that reads by key. Reads at the same time share a statement, of one key also a row."""
        return self.batch(name, run, joins=True)

    async def rows(self, name: str, items: list[Item[Value]]) -> list[Row]:
        """Run a statement over the items of a batch: all of them take effect, or none.

        The items are sorted by the rows they lock, so that two batches cannot deadlock.
        """
        return await self.many(name, items[0].shared, [item.params for item in sorted(items, key=_KEY)])


class Subject:
    """Base class for the statements about one subject. Subjects share a session and do not use each other."""

    def __init__(self, session: Session) -> None:
        self.session = session
