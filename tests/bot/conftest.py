"""A running bot for each test, on either store."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bot.test_money import OPEN
from tests.bot.world import Customer, Town, sqlite_url, town

BOSS = 1000001  # the first user of the simulator
Office = tuple[Town, Customer, Customer]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    async with town(sqlite_url(tmp_path)) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return sqlite_url(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """A bot with an operator and a user."""
    async with town(sqlite_url(tmp_path), rules=replace(OPEN, admin_ids=frozenset({BOSS}))) as here:
        boss, ann = await here.person("Boss"), await here.person("Ann", having=10)
        assert boss.hands.id == BOSS
        await boss.say("/start")
        await ann.say("/start")
        yield here, boss, ann
