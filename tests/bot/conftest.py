"""A whole town for each test, on either store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.bot.world import Town, sqlite_url, town


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(sqlite_url(tmp_path)) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return sqlite_url(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
