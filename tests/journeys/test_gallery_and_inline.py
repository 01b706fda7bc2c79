"""A user looks through the own results, and shares one by inline mode, on the chat page in a real browser."""

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.journeys.chat_pages import DESKTOP, PHONE, open_as_new_user
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]


async def test_results_are_looked_through_and_shared_in_a_browser(shared_sandbox: Sandbox, browser: Browser) -> None:
    page = await _start(browser, shared_sandbox, "ru", PHONE)
    await _order(page, "лиса", "Готово")
    await _order(page, "сова", "Готово")
    await _look_through(page)
    await page.context.close()
    page = await _start(browser, shared_sandbox, "en", DESKTOP)
    await _order(page, "a fox", "Generation complete")
    await _share(page)
    await page.context.close()


async def _start(browser: Browser, sandbox: Sandbox, language: str, size: ViewportSize) -> Page:
    page = await open_as_new_user(browser, sandbox, language, size)
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(page.locator(".key").first).to_be_visible()
    return page


async def _order(page: Page, prompt: str, done: str) -> None:
    before = await bubbles(page, done).count()
    await say(page, f"/gen z-image {prompt}")
    await expect(bubbles(page, done)).to_have_count(before + 1)


async def _look_through(page: Page) -> None:
    """Open the gallery by a word that is no command's name, go to the older result, filter, remove and undo."""
    await say(page, "/галерея")
    screen = page.locator("article.row").last
    await expect(screen).to_contain_text("сова")
    await expect(screen.locator("img")).to_have_count(1)
    await key(page, "▶").click()
    await expect(screen).to_contain_text("лиса")
    await screen.locator(".key", has_text="🎬").click()
    await expect(screen).to_contain_text("Такого пока нет")
    await screen.locator(".key").first.click()  # results of every kind
    await expect(screen).to_contain_text("сова")
    await key(page, "Убрать").click()
    await key(page, "Да, убрать").click()
    await expect(screen).to_contain_text("лиса")
    await key(page, "Вернуть").click()
    await expect(screen).to_contain_text("сова")


async def _share(page: Page) -> None:
    """Type the bot's name and a wish, share a result, then begin an order with the wish."""
    field = page.locator(".write textarea")
    await field.press_sequentially("@sandbox_bot a red balloon")
    offers = page.get_by_role("group", name="Results to share")
    await expect(offers.locator("img")).to_have_count(1)
    await offers.locator(".inline-result").first.click()
    await expect(bubbles(page, "Made with @sandbox_bot")).to_have_count(1)
    await expect(field).to_have_value("")
    await field.press_sequentially("@sandbox_bot a red balloon")
    await offers.get_by_role("button", name="Create “a red balloon”").click()
    await expect(page.locator("article.row").last).to_contain_text("a red balloon")
    await expect(key(page, "✅")).to_be_visible()
