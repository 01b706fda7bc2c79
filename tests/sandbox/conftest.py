from collections.abc import AsyncIterator

import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.sandbox.clients import LIBRARIES, Client, connect


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSimulator]:
    """One whose own time-outs pass ten times as fast."""
    async with running_telegram(speed=10) as running:
        yield running


@pytest.fixture(autouse=True)
def _time_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """What python-telegram-bot will do by itself one day, and warns about until then."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")


@pytest.fixture(params=LIBRARIES)
async def client(request: pytest.FixtureRequest, telegram: TelegramSimulator) -> AsyncIterator[Client]:
    connected = connect(request.param, telegram)
    yield connected
    await connected.close()


@pytest.fixture
def ann(telegram: TelegramSimulator) -> SimulatedUser:
    return telegram.add_user("Ann", language="ru")
