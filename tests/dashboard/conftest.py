"""A dashboard on an SQLite file, for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.changes import PATIENCE_SECONDS
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that the machine makes slowly are shown."""
    monkeypatch.setattr("genlock.engine.stats.TIMEOUT_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
async def dashboard(tmp_path: Path) -> AsyncIterator[DashboardWorld]:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as world:
        yield world


@pytest_asyncio.fixture(loop_scope="session")
async def browsed_dashboard(tmp_path: Path) -> AsyncIterator[DashboardWorld]:
    """A dashboard in the event loop of the browser."""
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}") as world:
        yield world
