"""Fixtures of the engine tests, on both stores."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from genlock.domain.money import EntryKind
from genlock.engine.engine import Engine
from genlock.stores.database import SqlDatabase
from tests.databases import emptied_sqlite
from tests.engine.manual_clock import ManualClock
from tests.engine.recorder import Recorder
from tests.engine.update_instance import Instance, make_instance
from tests.engine.world import FUNDS, World, die
from tests.loop_clock import LoopClock
from tests.shared_postgres import SharedPostgres


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def loop_clock() -> LoopClock:
    """One for the loop that all tests share."""
    return LoopClock()


@pytest_asyncio.fixture(loop_scope="session")
async def recorder() -> Recorder:
    return Recorder()


@pytest_asyncio.fixture(loop_scope="session")
async def sqlite(clock: ManualClock, recorder: Recorder) -> SqlDatabase:
    """In memory: its file, its thread and its second connection are tested with the stores."""
    return await emptied_sqlite(clock, recorder)


@pytest_asyncio.fixture(loop_scope="session")
async def postgres(shared_postgres: SharedPostgres, clock: ManualClock, recorder: Recorder) -> SqlDatabase:
    return await shared_postgres.new_store(clock, recorder)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> SqlDatabase:
    """Each store in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, SqlDatabase)
    return found


@pytest.fixture
def live_store(store: SqlDatabase, clock: ManualClock) -> SqlDatabase:
    """Each store in turn, on a clock that runs."""
    clock.run()
    return store


@pytest_asyncio.fixture(loop_scope="session")
async def world(store: SqlDatabase, clock: ManualClock, recorder: Recorder) -> AsyncIterator[World]:
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


@pytest_asyncio.fixture(loop_scope="session")
async def instance(live_store: SqlDatabase, recorder: Recorder) -> AsyncIterator[Instance]:
    """A running instance that handles updates."""
    instance = make_instance(live_store, recorder)
    await instance.engine.start()
    yield instance
    await instance.engine.stop()
