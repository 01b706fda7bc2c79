"""A picture is animated, edited by a reply and started from a captioned photo, on the chat page in a real browser."""

import io

import pytest
from PIL import Image
from playwright.async_api import Browser, FilePayload, Locator, Page, expect

from genlock.i18n.translator import translator
from tests.journeys.chat_pages import DESKTOP, PHONE, open_as_new_user
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]
#: without the symbol before them
KEYS = {"animate": "button.next_image_animate", "more": "button.next_more", "next": "button.what_next"}
WORDS = {
    language: {name: translator(language).plain(key).partition(" ")[2] for name, key in KEYS.items()} | {"go": "✅"}
    for language in ("en", "ru")
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
        self.taps = 1
        async with self.page.expect_file_chooser() as chooser:
            await self.page.get_by_role("button", name="Attach photos and files").click()
        payload = FilePayload(name="photo.png", mimeType="image/png", buffer=file.getvalue())
        await (await chooser.value).set_files(payload)
        await self.page.locator(".sending textarea").fill("add snow")
        self.taps += 1
        await self.page.locator(".sending").get_by_role("button", name="Send").click()
        await expect(bubbles(self.page, "add snow").last).to_contain_text("Nano Banana")
        await self.tap(self.words["go"])
        await expect(self.page.locator("article.row img")).to_have_count(5)
        assert self.taps == 3


async def test_every_result_is_a_beginning_in_both_languages(shared_sandbox: Sandbox, browser: Browser) -> None:
    for name, language, size in (("Ann", "en", DESKTOP), ("Аня", "ru", PHONE)):
        page = await open_as_new_user(browser, shared_sandbox, language, size, name)
        await page.get_by_role("button", name="Start", exact=True).click()
        journey = Journey(page, language)
        await journey.animate_in_two_taps()
        await journey.show_all_steps()
        await journey.edit_by_reply()
        await journey.edit_a_captioned_photo()
        await page.context.close()
