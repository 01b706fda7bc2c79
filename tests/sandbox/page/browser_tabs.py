"""Chat pages in a real browser, and helpers to use them."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Error, Locator, Page, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser

BLANK = "about:blank"
#: records every notification that was shown
WATCH = """
window.noticed = [];
addEventListener("DOMContentLoaded", () => new MutationObserver((changes) => {
  for (const change of changes) for (const added of change.addedNodes)
    if (added.classList?.contains("notice")) noticed.push(added.querySelector(".said").textContent);
}).observe(document.getElementById("notices"), { childList: true }));
"""


async def new_profile(browser: Browser, **more: Any) -> BrowserContext:
    """Make a browser profile without animations: drawing them costs more CPU than the tests."""
    context = await browser.new_context(**{"locale": "en-GB", "reduced_motion": "reduce"} | more)
    context.set_default_timeout(10_000)
    await context.add_init_script(WATCH)
    return context


@dataclass
class Tabs:
    """Opened pages; errors of all of them are collected and checked at the end."""

    browser: Browser
    url: str
    #: a page that is opened first, if any: a new profile with its page costs a second of CPU
    reused: Page | None = None
    contexts: list[BrowserContext] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: console error that a test provokes on purpose
    provoked: str = "nothing"

    def _record_exception(self, error: Error) -> None:
        self.errors.append(str(error))

    def _record_console(self, said: ConsoleMessage) -> None:
        if said.type == "error" and self.provoked not in said.text:
            self.errors.append(said.text)

    async def profile(self, **more: Any) -> BrowserContext:
        context = await new_profile(self.browser, **more)
        self.contexts.append(context)
        return context

    async def _new_page(self, at: BrowserContext | None) -> Page:
        if at is None and self.reused is not None and self.reused.url == BLANK:
            return self.reused
        return await (at or await self.profile()).new_page()

    async def open(self, person: SimulatedUser, chat: int | None = None, *, at: BrowserContext | None = None) -> Page:
        page = await self._new_page(at)
        page.on("pageerror", self._record_exception)
        page.on("console", self._record_console)
        await page.goto(f"{self.url}#{person.id}/{chat or person.id}")
        await expect(page.locator(".user-entry").first).to_be_attached()
        return page

    async def close(self) -> None:
        """Close the pages, and leave the reused one as it was found."""
        for context in self.contexts:
            await context.close()
        if self.reused is None or self.reused.url == BLANK:
            return
        self.reused.remove_listener("pageerror", self._record_exception)
        self.reused.remove_listener("console", self._record_console)
        await self.reused.evaluate("localStorage.clear()")
        await self.reused.goto(BLANK)


def bubbles(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.locator("article.row", has_text=text)


def key(page: Page, text: str) -> Locator:
    return page.locator(".key", has_text=text).last


async def say(page: Page, text: str) -> None:
    await page.locator(".write textarea").fill(text)
    await page.keyboard.press("Enter")


async def wait_in_page(page: Page, condition: str) -> None:
    """Wait in the page until the condition holds. Playwright's own way is forbidden by the content security policy."""
    async with asyncio.timeout(10):
        await page.evaluate(
            f"new Promise((end) => {{ const look = () => {condition} ? end() : requestAnimationFrame(look); look(); }})"
        )
