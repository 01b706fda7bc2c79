"""From Start to the first picture, counted in taps, in a real browser: by typing, by the menu, by an example."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.journeys.chat_pages import DESKTOP, PHONE, open_as_new_user
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]
WORDS = {
    "en": {"draw": "🖼 Draw", "example": "Cat astronaut", "go": "✅ Generate", "done": "Generation complete"},
    "ru": {"draw": "🖼 Нарисовать", "example": "Кот-космонавт", "go": "✅ Создать", "done": "Готово"},
}
SIZES = {"en": DESKTOP, "ru": PHONE}


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


async def test_the_first_picture_takes_three_taps_by_typing_and_four_by_the_menu(
    shared_sandbox: Sandbox, browser: Browser
) -> None:
    for language, size in SIZES.items():
        taps = {}
        for way in (Journey.by_typing, Journey.by_menu, Journey.by_example):
            journey = Journey(await open_as_new_user(browser, shared_sandbox, language, size), language)
            taps[way.__name__] = await way(journey)
            await journey.page.context.close()
        assert taps == {"by_typing": 3, "by_menu": 4, "by_example": 3}
