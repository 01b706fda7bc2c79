from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.channels.telegram.harness import Harness, running_harness


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSimulator]:
    async with running_telegram() as running:
        yield running


@pytest.fixture
async def harness(telegram: TelegramSimulator, tmp_path: Path) -> AsyncIterator[Harness]:
    """The Bot API server can reach the file server."""
    async with running_harness(telegram, tmp_path) as running:
        yield running


@pytest.fixture
async def remote_harness(telegram: TelegramSimulator, tmp_path: Path) -> AsyncIterator[Harness]:
    """The Bot API server cannot reach the file server, like the public one."""
    async with running_harness(telegram, tmp_path, local_bot_api=False) as running:
        yield running
