"""From Start to the first picture, counted in taps, in a real browser: by typing, by the menu, by an example."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser import chromium
from tests.journeys.test_sandbox import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

TIMEOUT_MS = 40_000
WORDS = {
    "en": {"draw": "🖼 Draw", "example": "Cat astronaut", "go": "✅ Generate", "done": "Generation complete"},
    "ru": {"draw": "🖼 Нарисовать", "example": "Кот-космонавт", "go": "✅ Создать", "done": "Готово"},
}
SIZES = {"en": {"width": 1200, "height": 900}, "ru": {"width": 390, "height": 844}}


class Journey:
    """A new user's way to the first picture. Sending a message counts as a tap."""

    def __init__(self, page: Page, language: str) -> None:
        self.page = page
        self.words = WORDS[language]
        self.taps = 0

    async def start(self) -> None:
        self.taps += 1
        await self.page.get_by_role("button", name="Start", exact=True).click()
        await expect(key(self.page, self.words["draw"])).to_be_visible()
        await expect(self.page.locator("article.row img")).to_have_count(1)  # the picture of the first screen

    async def tap(self, text: str) -> None:
        self.taps += 1
        await key(self.page, text).click()

    async def send(self, text: str) -> None:
        self.taps += 1
        await say(self.page, text)

    async def order(self) -> None:
        """Confirm, and wait for the picture."""
        await self.tap(self.words["go"])
        await expect(bubbles(self.page, self.words["done"])).to_have_count(1)
        await expect(self.page.locator("article.row img")).to_have_count(2)

    async def by_typing(self) -> int:
        await self.start()
        await self.send("кот в космосе")
        await self.order()
        return self.taps

    async def by_menu(self) -> int:
        await self.start()
        await self.tap(self.words["draw"])
        await expect(key(self.page, "Nano Banana")).to_be_visible()
        await self.send("кот в космосе")
        await self.order()
        return self.taps

    async def by_example(self) -> int:
        await self.start()
        await self.tap(self.words["example"])
        await self.order()
        return self.taps


@pytest.mark.timeout(240)
async def test_the_first_picture_takes_three_taps_by_typing_and_four_by_the_menu(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, "--fresh", "--speed", "30")
    try:
        await asyncio.to_thread(sandbox.ready)
        async with chromium() as browser:
            for language in WORDS:
                taps = {}
                for way in (Journey.by_typing, Journey.by_menu, Journey.by_example):
                    journey = Journey(await _open_as_new_user(browser, sandbox, language), language)
                    taps[way.__name__] = await way(journey)
                    await journey.page.close()
                assert taps == {"by_typing": 3, "by_menu": 4, "by_example": 3}
        assert await asyncio.to_thread(sandbox.end) == 0
    finally:
        sandbox.process.kill()
        sandbox.process.wait()


async def _open_as_new_user(browser: Browser, sandbox: Sandbox, language: str) -> Page:
    user = sandbox.post("/sim/people", {"name": "Аня", "language": language, "started": False})["id"]
    page = await browser.new_page(locale="en-GB", viewport=SIZES[language])  # type: ignore[arg-type]
    page.set_default_timeout(TIMEOUT_MS)
    expect.set_options(timeout=TIMEOUT_MS)
    await page.goto(f"http://127.0.0.1:{sandbox.port}/#{user}/{user}")
    return page
