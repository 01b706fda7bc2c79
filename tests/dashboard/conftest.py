"""A dashboard on an SQLite file, for each test."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.dashboard.world import DashboardWorld, running_dashboard


@pytest.fixture
async def dashboard(tmp_path: Path) -> AsyncIterator[DashboardWorld]:
    async with running_dashboard(f"sqlite:///{tmp_path}/genlock.db") as world:
        yield world
