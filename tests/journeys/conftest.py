"""Fixtures of the tests with real processes."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from genlock.domain.money import EntryKind
from genlock.sandbox.telegram import methods
from genlock.stores.postgres import PostgresStore
from tests.fork_server import ForkServer
from tests.journeys.engine_fleet import FUNDS, Fleet
from tests.journeys.engine_process import SCHEMA, Lines
from tests.journeys.sandbox_process import Sandbox


@pytest.fixture(autouse=True)
def forked(forked_services: None) -> None:
    """Fork the services that a test starts."""


@pytest.fixture(scope="session")
def shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One sandbox, started as users start it, for the journeys in a browser: each is that of a new user."""
    running = Sandbox(tmp_path_factory.mktemp("sandbox"), "--fresh", "--speed", "60")
    try:
        yield running.ready()
        assert running.end() == 0, running.output
    finally:
        running.process.kill()
        running.process.wait()


@pytest.fixture
def sends_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the simulator execute every sendMessage twice, as if the channel retried it blindly."""
    name, send = methods.METHODS["sendmessage"]

    async def twice(state: Any, arguments: Any) -> Any:
        await send(state, arguments)
        return await send(state, arguments)

    monkeypatch.setitem(methods.METHODS, "sendmessage", (name, twice))


@pytest.fixture
async def fleet(postgres_url: str, tmp_path: Path, fork_server: ForkServer) -> AsyncIterator[Fleet]:
    store = await PostgresStore.open(postgres_url, observer=Lines())
    database = await asyncpg.create_pool(postgres_url, min_size=1, max_size=2)
    await database.execute(SCHEMA)
    account = await store.ensure_account("chat", "bot", "42")
    await store.transfer(account, EntryKind.TOPUP, FUNDS, "funds")
    fleet = Fleet(postgres_url, tmp_path, store, database, account, fork_server)
    yield fleet
    for process in fleet.processes:
        process.end()
    await database.close()
    await store.close()
