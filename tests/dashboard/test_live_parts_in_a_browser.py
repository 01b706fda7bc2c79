"""What moves on the pages of models and campaigns, in a real browser."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from genlock.domain.broadcast import BroadcastOutcome, BroadcastState
from genlock.domain.errors import ProviderError
from tests.dashboard.browser_pages import Look, open_context
from tests.dashboard.world import DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import ensure_profile

LOOK: Look = (390, "light", "en")


class SlowProvider:
    """A provider whose lists arrive when the test says so."""

    def __init__(self) -> None:
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def fetch(self) -> dict[str, object]:
        self.asked.set()
        await self.answer.wait()
        raise ProviderError("the provider refused its list: 503")


@pytest.fixture
def provider() -> SlowProvider:
    return SlowProvider()


@pytest_asyncio.fixture(loop_scope="session")
async def slow(tmp_path: Path, provider: SlowProvider) -> AsyncIterator[DashboardWorld]:
    url = f"sqlite:///{new_sqlite(tmp_path)}"
    async with running_dashboard(url, fetch_lists=provider.fetch) as world:
        yield world


@pytest.mark.asyncio(loop_scope="session")
async def test_progress_is_live_and_reading_a_list_says_that_it_goes_on(
    slow: DashboardWorld, provider: SlowProvider, browser: Browser
) -> None:
    context = await open_context(browser, slow, LOOK)
    page = await context.new_page()
    await _watch_a_broadcast(page, slow)
    await _read_the_list(page, slow, provider)
    await _edit_by_keyboard(page, slow)
    await context.close()


async def _watch_a_broadcast(page: Page, world: DashboardWorld) -> None:
    account = await world.store.ensure_account("chat", "42", "100")
    await ensure_profile(world.store, account, language="en", name="Ann", username="", referred_by=None)
    broadcast = await world.store.begin_broadcast("<b>Hi</b>", bot="42", author="7", request_key="k")
    await page.goto(f"{world.url}/dashboard/campaigns/broadcasts/{broadcast.id}")
    await expect(page.locator("#broadcast-progress")).to_contain_text("0 of 1 sent")
    found = await world.store.next_recipient(broadcast.id)
    assert found is not None
    await world.store.count_broadcast_message(broadcast.id, found, BroadcastOutcome.SENT)
    await expect(page.locator("#broadcast-progress")).to_contain_text("1 of 1 sent")
    await world.store.end_broadcast(broadcast.id, BroadcastState.DONE)
    await expect(page.locator("#broadcast-progress .badge")).to_have_text("done")
    assert await page.locator("#broadcast-progress[hx-trigger]").count() == 0, "it does not ask any more"


async def _read_the_list(page: Page, world: DashboardWorld, provider: SlowProvider) -> None:
    await page.goto(f"{world.url}/dashboard/models/provider")
    await expect(page.locator("#reading")).to_be_hidden()
    await page.get_by_role("button", name="Read the list now").click()
    await provider.asked.wait()
    await expect(page.locator("#reading")).to_be_visible()
    provider.answer.set()
    await expect(page.get_by_role("alert")).to_contain_text("couldn't be read. Nothing was changed")


async def _edit_by_keyboard(page: Page, world: DashboardWorld) -> None:
    await page.goto(f"{world.url}/dashboard/models/z-image")
    await page.get_by_label("Title").focus()
    await page.keyboard.type("Typed title")
    await page.keyboard.press("Enter")
    await expect(page.locator("#preview ins")).to_have_text("Typed title")
    await page.keyboard.press("Enter")  # the button that saves has the focus
    await expect(page.get_by_role("status")).to_contain_text("Saved.")
    assert world.parts.editor.current.model("z-image").title == "Typed title"
