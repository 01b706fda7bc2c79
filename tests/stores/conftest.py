"""Both databases for the tests of this folder: empty, with a manual clock."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from genlock.domain.events import Event
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore
from tests.databases import new_sqlite
from tests.shared_postgres import SharedPostgres
from tests.stores.builders import ManualClock

Raw = Callable[[str], Awaitable[list[tuple[Any, ...]]]]


class RecordingObserver:
    """An observer that records events and counts."""

    def __init__(self) -> None:
        self.events: list[tuple[Event, dict[str, Any]]] = []
        self._counts: Counter[tuple[str, frozenset[tuple[str, str]]]] = Counter()

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        self.events.append((event, {"correlation_id": correlation_id, **fields}))

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self._counts[name, frozenset(labels.items())] += int(amount)

    def total(self, name: str, **labels: str) -> int:
        """The total of a counter over all entries with at least these labels."""
        return sum(
            amount for (counted, with_), amount in self._counts.items() if counted == name and labels.items() <= with_
        )


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def observer() -> RecordingObserver:
    return RecordingObserver()


@pytest_asyncio.fixture(loop_scope="session")
async def sqlite(tmp_path: Path, clock: ManualClock, observer: RecordingObserver) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(new_sqlite(tmp_path), clock=clock, observer=observer)
    yield store
    await store.close()


@pytest_asyncio.fixture(loop_scope="session")
async def postgres(
    shared_postgres: SharedPostgres, clock: ManualClock, observer: RecordingObserver
) -> AsyncIterator[PostgresStore]:
    yield await shared_postgres.new_store(clock, observer)
    shared_postgres.assert_free()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> SqlDatabase:
    """Each database in turn: a test that uses this fixture runs on both."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, SqlDatabase)
    return found


@pytest.fixture
def raw(store: SqlDatabase) -> Raw:
    """Run a statement on the database directly."""

    async def run(statement: str) -> list[tuple[Any, ...]]:
        if isinstance(store, SqliteStore):
            return await store.session.call(lambda connection: list(map(tuple, connection.execute(statement))))
        assert isinstance(store, PostgresStore)
        return [tuple(row) for row in await store.session.pool.fetch(statement)]

    return run
