"""Databases to back up and to restore into."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from genlock.app.databases import open_store
from genlock.stores.database import SqlDatabase
from genlock.stores.sqlite import SqliteStore
from tests.stores.builders import ManualClock
from tests.stores.conftest import RecordingObserver


@pytest.fixture
def url(store: SqlDatabase, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of the database that is backed up."""
    if isinstance(store, SqliteStore):
        return f"sqlite:///{tmp_path}/genlock.db"
    return str(request.getfixturevalue("shared_postgres_url"))


def empty_database(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/restored/genlock.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def new_url(store: SqlDatabase, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """An empty database of the same kind, to restore into."""
    return empty_database("sqlite" if isinstance(store, SqliteStore) else "postgres", tmp_path, request)


@pytest.fixture(params=["sqlite", "postgres"])
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind, to restore into."""
    return empty_database(request.param, tmp_path, request)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "genlock.backup"


@pytest_asyncio.fixture(loop_scope="session")
async def opened(new_url: str) -> AsyncIterator[Callable[[], Awaitable[SqlDatabase]]]:
    """Open the restored database, and close it at the end."""
    stores: list[SqlDatabase] = []

    async def open_it() -> SqlDatabase:
        stores.append(await open_store(new_url, observer=RecordingObserver(), clock=ManualClock()))
        return stores[-1]

    yield open_it
    for store in stores:
        await store.close()
