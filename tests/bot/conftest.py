"""A running bot for each test, on either store."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bot.rules import OPEN
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url

BOSS = 1000001  # the first user of the simulator
Office = tuple[BotWorld, ChatUser, ChatUser]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[BotWorld]:
    async with running_bot(sqlite_url(tmp_path)) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return sqlite_url(tmp_path) if request.param == "sqlite" else str(request.getfixturevalue("migrated_postgres_url"))


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """A bot with an operator and a user."""
    async with running_bot(sqlite_url(tmp_path), rules=replace(OPEN, admin_ids=frozenset({BOSS}))) as world:
        boss, ann = await world.add_user("Boss"), await world.add_user("Ann", having=10)
        assert boss.client.id == BOSS
        await boss.write("/start")
        await ann.write("/start")
        yield world, boss, ann
