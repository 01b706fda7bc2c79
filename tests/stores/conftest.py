"""Both databases for the tests of this folder: empty, with a manual clock."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from genlock.domain.events import Event
from genlock.sandbox.postgres import Postgres
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore
from tests.databases import new_sqlite
from tests.stores.builders import ManualClock

#: what the leader counts
FIGURE_TABLES = (
    "figure_changes", "figure_blocks", "block_figures", "job_figures", "block_durations", "job_durations",
    "topup_figures", "account_sets", "figure_positions",
)  # fmt: skip
TABLES = (
    "ledger", "ledger_checkpoints", "jobs", "accounts", "inbox", "instances", "roles", "limits", "updates",
    "update_queues", "kv", "attempts", "breakers", "task_slots",
    "profiles", "drafts", "uploads", "payments", "free_runs", "promos", "promo_uses", "broadcasts", "audit",
    "bulk_actions", "bulk_failures",
    "job_events", "job_anomalies",
    "operators", "login_links", "dashboard_sessions",
    *FIGURE_TABLES,
    "catalog_changes",
    "api_keys",
    "webhooks",
    "webhook_deliveries",
)  # fmt: skip
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


async def empty(store: PostgresStore) -> None:
    await store.session.pool.execute("; ".join(f"DELETE FROM {table}" for table in TABLES))  # noqa: S608


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def observer() -> RecordingObserver:
    return RecordingObserver()


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: Postgres) -> Iterator[str]:
    """One database for all tests of a process that need an empty one: emptying is faster than creating."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
async def sqlite(tmp_path: Path, clock: ManualClock, observer: RecordingObserver) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(new_sqlite(tmp_path), clock=clock, observer=observer)
    yield store
    await store.close()


@pytest.fixture
async def postgres(
    shared_postgres_url: str, clock: ManualClock, observer: RecordingObserver
) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(shared_postgres_url, clock=clock, observer=observer)
    await empty(store)
    yield store
    assert store.session.pool.get_idle_size() == store.session.pool.get_size(), "a connection was not given back"
    await store.close()


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
