from collections.abc import AsyncIterator

import pytest

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.sandbox.client_libraries import LIBRARIES, Client, connect


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramSimulator]:
    """A simulator whose time-outs are ten times as fast."""
    async with running_telegram(speed=10) as running:
        yield running


@pytest.fixture(autouse=True)
def _time_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opt in to timedelta values, which python-telegram-bot will use by default and warns about until then."""
    monkeypatch.setenv("PTB_TIMEDELTA", "true")


@pytest.fixture(params=LIBRARIES)
async def client(request: pytest.FixtureRequest, telegram: TelegramSimulator) -> AsyncIterator[Client]:
    connected = connect(request.param, telegram)
    yield connected
    await connected.close()


@pytest.fixture
def ann(telegram: TelegramSimulator) -> SimulatedUser:
    return telegram.add_user("Ann", language="ru")
