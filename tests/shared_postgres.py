"""One PostgreSQL database with its connections, shared by all tests of a process that need an empty database.

A test that opens a store of its own pays for three connections, for each of which the server starts a process, and
every statement is planned again. Here, each test gets a new store over the same pool, and only the rows are deleted.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

import pytest
import pytest_asyncio

from genlock.log import Silent
from genlock.ports import Clock, Observer
from genlock.sandbox.postgres import Postgres
from genlock.stores.postgres import PostgresSession, PostgresStore

#: folders whose tests share the database, and therefore the event loop of its connections
FOLDERS = ("tests/engine/", "tests/stores/")
#: what the leader counts
FIGURE_TABLES = (
    "figure_changes", "figure_blocks", "block_figures", "job_figures", "quarter_figures", "block_durations",
    "job_durations", "topup_figures", "account_sets", "figure_positions",
)  # fmt: skip
#: every table of the schema, so that a new one leaks no rows from test to test
TABLES = tuple(
    re.findall(r"^CREATE TABLE (\w+)", (files("genlock.stores") / "sql/postgres/schema.sql").read_text(), re.MULTILINE)
)
#: one statement, which the server plans once
EMPTY = f"WITH {', '.join(f'of_{table} AS (DELETE FROM {table})' for table in TABLES)} SELECT"  # noqa: S608


class SharedPostgres:
    """The database, and the pool that every store of it uses."""

    def __init__(self, url: str, pool: Any) -> None:
        self.url = url
        self._pool = pool

    async def new_store(self, clock: Clock, observer: Observer) -> PostgresStore:
        """Empty the database; return a store that must not be closed."""
        await self._pool.fetch(EMPTY)
        session = PostgresSession(
            self._pool, url=self.url, pooled=False, clock=clock, observer=observer, retry_seconds=30.0,
            statement_seconds=10.0, rng=random.Random(),
        )  # fmt: skip
        return PostgresStore(session)

    def assert_free(self) -> None:
        assert self._pool.get_idle_size() == self._pool.get_size(), "a connection was not given back"


@pytest.fixture(scope="session")
def shared_postgres_url(postgres_server: Postgres) -> Iterator[str]:
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_postgres(shared_postgres_url: str) -> AsyncIterator[SharedPostgres]:
    store = await PostgresStore.open(shared_postgres_url, observer=Silent())
    yield SharedPostgres(shared_postgres_url, store.session.pool)
    await store.close()


@asynccontextmanager
async def cancelling_new_tasks() -> AsyncIterator[None]:
    """Cancel at the end what was started inside. What ran before stays: the browser's driver reads in such a task."""
    before = asyncio.all_tasks()
    yield
    started = asyncio.all_tasks() - before - {asyncio.current_task()}
    for task in started:
        task.cancel()
    await asyncio.gather(*started, return_exceptions=True)


@pytest_asyncio.fixture(loop_scope="session")
async def no_tasks_left() -> AsyncIterator[None]:
    """Cancel what a test leaves running, as the end of a loop of its own would."""
    async with cancelling_new_tasks():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FOLDERS) and item.get_closest_marker("asyncio"):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.fixturenames.insert(0, "no_tasks_left")  # type: ignore[attr-defined]
