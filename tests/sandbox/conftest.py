from collections.abc import AsyncIterator

import pytest

from genlock.sandbox.telegram import TelegramSimulator, running_telegram


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSimulator]:
    """One whose own time-outs pass ten times as fast."""
    async with running_telegram(speed=10) as running:
        yield running
