"""One page for all files, a simulator and a bot for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.sandbox.page.browser_tabs import Tabs, new_profile
from tests.sandbox.page.example_bot import ExampleBot, running_bot


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def reused_page(browser: Browser) -> AsyncIterator[Page]:
    """A page that the tests open one after the other."""
    profile = await new_profile(browser)
    yield await profile.new_page()
    await profile.close()


@pytest_asyncio.fixture(loop_scope="session")
async def telegram() -> AsyncIterator[TelegramSimulator]:
    async with running_telegram() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def example(telegram: TelegramSimulator) -> AsyncIterator[ExampleBot]:
    async with running_bot(telegram) as bot:
        yield bot


@pytest_asyncio.fixture(loop_scope="session")
async def tabs(
    browser: Browser, reused_page: Page, example: ExampleBot, telegram: TelegramSimulator
) -> AsyncIterator[Tabs]:
    assert example.bot.token == telegram.token
    opened = Tabs(browser, telegram.page_url, reused_page)
    yield opened
    await opened.close()
    assert opened.errors == []


@pytest.fixture
def ann(telegram: TelegramSimulator) -> SimulatedUser:
    return telegram.add_user("Ann", language="en", stars=500)


@pytest.fixture
def ben(telegram: TelegramSimulator) -> SimulatedUser:
    return telegram.add_user("Ben", language="ru")
