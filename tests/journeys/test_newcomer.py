"""A newcomer's first minute: the sandbox as it is started, its chat page in a real browser, the product in between."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser import chromium
from tests.journeys.test_sandbox import Sandbox
from tests.sandbox.page.tabs import bubbles, key, say

PATIENCE_MS = 40_000


@pytest.mark.timeout(180)
async def test_from_start_to_one_picture_and_the_notice_in_both_languages(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, "--fresh", "--speed", "30")
    try:
        await asyncio.to_thread(sandbox.ready)
        async with chromium() as browser:
            for name, language, done in (("Ann", "en", "Generation complete"), ("Аня", "ru", "Готово")):
                person = sandbox.post("/sim/people", {"name": name, "language": language, "started": False})["id"]
                page = await browser.new_page(locale="en-GB")
                page.set_default_timeout(PATIENCE_MS)
                expect.set_options(timeout=PATIENCE_MS)
                await page.goto(f"http://127.0.0.1:{sandbox.port}/#{person}/{person}")
                await page.get_by_role("button", name="Start").click()
                await choose_by_buttons(page, done)
                await order_in_one_line(page, done)
        assert await asyncio.to_thread(sandbox.end) == 0
    finally:
        sandbox.process.kill()
        sandbox.process.wait()


async def choose_by_buttons(page: Page, done: str) -> None:
    await key(page, "🖼").click()
    await key(page, "Z-Image").click()
    await expect(key(page, "💡")).to_be_visible()  # the question has come
    await say(page, "cat astronaut")
    await key(page, "1:1").click()
    await key(page, "✅").click()
    await expect(bubbles(page, done)).to_have_count(1)
    await expect(page.locator("article.row img")).to_have_count(1)


async def order_in_one_line(page: Page, done: str) -> None:
    await say(page, "/gen z-image cat astronaut")
    await expect(bubbles(page, done)).to_have_count(2)
    await expect(page.locator("article.row img")).to_have_count(2)
