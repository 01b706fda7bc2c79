"""Fixtures of the engine tests, on both stores."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from genlock.domain.money import EntryKind
from genlock.engine.engine import Engine
from genlock.sandbox.postgres import Postgres
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore
from tests.databases import new_sqlite
from tests.engine.world import FUNDS, HandClock, Recorder, World, die

TABLES = ("attempts", "breakers", "task_slots",
    "ledger", "jobs", "accounts", "inbox", "instances", "roles", "limits", "updates", "update_queues", "kv", "payments",
    "figure_changes", "figure_blocks", "block_figures", "job_figures", "block_durations", "job_durations",
    "topup_figures", "account_sets", "figure_positions",
    "audit", "profiles", "bulk_actions", "bulk_failures",
)  # fmt: skip


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
async def recorder() -> Recorder:
    return Recorder()


@pytest.fixture(scope="session")
def one_postgres_url(postgres_server: Postgres) -> Iterator[str]:
    """One database for all tests of a process: emptying it is faster than creating one."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


async def open_postgres(url: str, clock: HandClock, recorder: Recorder) -> PostgresStore:
    connection = await asyncpg.connect(url)
    if await connection.fetchval("SELECT to_regclass('accounts')") is not None:
        await connection.execute("; ".join(f"DELETE FROM {table}" for table in TABLES))  # noqa: S608 - our own names
    await connection.close()
    return await PostgresStore.open(url, clock=clock, observer=recorder)


@pytest.fixture(params=["sqlite", "postgres"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock, recorder: Recorder
) -> AsyncIterator[SqlDatabase]:
    """Each store in turn."""
    store: SqlDatabase
    if request.param == "sqlite":
        store = await SqliteStore.open(new_sqlite(tmp_path), clock=clock, observer=recorder)
    else:
        store = await open_postgres(request.getfixturevalue("one_postgres_url"), clock, recorder)
    yield store
    await store.close()


@pytest.fixture
def live_store(store: SqlDatabase, clock: HandClock) -> SqlDatabase:
    """Each store in turn, on a clock that runs."""
    clock.run()
    return store


@pytest.fixture
async def world(store: SqlDatabase, clock: HandClock, recorder: Recorder) -> AsyncIterator[World]:
    """Everything outside the engine, and an account with a balance. The store's invariants hold after every test."""
    account = await store.ensure_account("chat", "bot", "42")
    assert await store.transfer(account, EntryKind.TOPUP, FUNDS, "funds")
    world = World(store=store, clock=clock, recorder=recorder, account=account)
    yield world
    for engine in world.engines:
        await die(engine)
    assert await store.violations(settled=False) == []


@pytest.fixture
def engine(world: World) -> Engine:
    """An instance that does nothing by itself."""
    return world.engine()
