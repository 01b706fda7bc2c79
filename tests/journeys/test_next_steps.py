"""A picture is animated, edited by a reply and started from a captioned photo, on the chat page in a real browser."""

import asyncio
import io
from pathlib import Path

import pytest
from PIL import Image
from playwright.async_api import FilePayload, Locator, Page, expect

from tests.browser import chromium
from tests.journeys.test_sandbox import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

TIMEOUT_MS = 40_000
WORDS = {
    "en": {
        "animate": "Animate",
        "more": "More",
        "next": "What's next?",
        "go": "✅",
    },
    "ru": {
        "animate": "Оживить",
        "more": "Ещё",
        "next": "Что дальше?",
        "go": "✅",
    },
}


class Journey:
    def __init__(self, page: Page, language: str) -> None:
        self.page = page
        self.language = language
        self.words = WORDS[language]
        self.taps = 0

    async def tap(self, text: str) -> None:
        self.taps += 1
        await key(self.page, text).click()

    def results(self) -> Locator:
        """Pictures with buttons; that of the first screen has none."""
        pictures = self.page.locator("article.row", has=self.page.locator("img"))
        return pictures.filter(has=self.page.locator(".key"))

    async def animate_in_two_taps(self) -> None:
        await say(self.page, "/gen z-image cat astronaut")
        await expect(self.page.locator("article.row img")).to_have_count(2)  # the first screen has a picture, too
        await expect(bubbles(self.page, "Z-Image").last).to_contain_text(self.words["next"])  # its notice
        self.taps = 0
        picture = self.results().first
        self.taps += 1
        await picture.locator(".key", has_text=self.words["animate"]).click()
        await expect(key(self.page, self.words["go"])).to_be_visible()
        await self.tap(self.words["go"])
        await expect(self.page.locator("article.row video")).to_have_count(1)
        assert self.taps == 2

    async def show_all_steps(self) -> None:
        picture = self.results().first
        await picture.locator(".key", has_text=self.words["more"]).click()
        await expect(self.page.locator("article.row b", has_text=self.words["next"])).to_have_count(1)

    async def edit_by_reply(self) -> None:
        picture = self.results().first
        await picture.locator("img").click(button="right")
        await self.page.get_by_role("menuitem", name="Reply").click()
        await say(self.page, "make it winter")
        await expect(bubbles(self.page, "Nano Banana")).to_have_count(1)
        await self.tap(self.words["go"])
        await expect(self.page.locator("article.row img")).to_have_count(3)

    async def edit_a_captioned_photo(self) -> None:
        file = io.BytesIO()
        Image.new("RGB", (320, 200), "teal").save(file, "PNG")
        async with self.page.expect_file_chooser() as chooser:
            await self.page.get_by_role("button", name="Attach photos and files").click()
        payload = FilePayload(name="photo.png", mimeType="image/png", buffer=file.getvalue())
        await (await chooser.value).set_files(payload)
        self.taps = 1
        await self.page.locator(".sending textarea").fill("add snow")
        await self.page.locator(".sending").get_by_role("button", name="Send").click()
        await expect(bubbles(self.page, "add snow").last).to_contain_text("Nano Banana")
        await self.tap(self.words["go"])
        await expect(self.page.locator("article.row img")).to_have_count(5)
        assert self.taps <= 3


@pytest.mark.timeout(240)
async def test_every_result_is_a_beginning_in_both_languages(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, "--fresh", "--speed", "30")
    try:
        await asyncio.to_thread(sandbox.ready)
        async with chromium() as browser:
            for name, language, size in (("Ann", "en", (1200, 900)), ("Аня", "ru", (390, 844))):
                user = sandbox.post("/sim/people", {"name": name, "language": language, "started": False})["id"]
                page = await browser.new_page(locale="en-GB", viewport={"width": size[0], "height": size[1]})
                page.set_default_timeout(TIMEOUT_MS)
                expect.set_options(timeout=TIMEOUT_MS)
                await page.goto(f"http://127.0.0.1:{sandbox.port}/#{user}/{user}")
                await page.get_by_role("button", name="Start", exact=True).click()
                journey = Journey(page, language)
                await journey.animate_in_two_taps()
                await journey.show_all_steps()
                await journey.edit_by_reply()
                await journey.edit_a_captioned_photo()
        assert await asyncio.to_thread(sandbox.end) == 0
    finally:
        sandbox.process.kill()
        sandbox.process.wait()
