from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.channels.telegram.house import House, running_house


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSimulator]:
    async with running_telegram() as running:
        yield running


@pytest.fixture
async def house(telegram: TelegramSimulator, tmp_path: Path) -> AsyncIterator[House]:
    """Telegram reaches the files as we do."""
    async with running_house(telegram, tmp_path) as running:
        yield running


@pytest.fixture
async def far_house(telegram: TelegramSimulator, tmp_path: Path) -> AsyncIterator[House]:
    """Telegram is out on the internet and reaches nothing here, as in real life."""
    async with running_house(telegram, tmp_path, near=False) as running:
        yield running
