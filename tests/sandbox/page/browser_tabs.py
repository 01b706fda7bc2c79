"""Chat pages in a real browser, and helpers to use them."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser

#: records every notification that was shown
WATCH = """
window.noticed = [];
addEventListener("DOMContentLoaded", () => new MutationObserver((changes) => {
  for (const change of changes) for (const added of change.addedNodes)
    if (added.classList?.contains("notice")) noticed.push(added.querySelector(".said").textContent);
}).observe(document.getElementById("notices"), { childList: true }));
"""


@dataclass
class Tabs:
    """Opened pages; errors of all of them are collected and checked at the end."""

    browser: Browser
    url: str
    contexts: list[BrowserContext] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    #: console error that a test provokes on purpose
    provoked: str = "nothing"

    def _record_error(self, error: str) -> None:
        if self.provoked not in error:
            self.errors.append(error)

    async def profile(self, **more: Any) -> BrowserContext:
        context = await self.browser.new_context(**{"locale": "en-GB"} | more)
        context.set_default_timeout(10_000)
        await context.add_init_script(WATCH)
        self.contexts.append(context)
        return context

    async def open(self, person: SimulatedUser, chat: int | None = None, *, at: BrowserContext | None = None) -> Page:
        page = await (at or await self.profile()).new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self._record_error(said.text) if said.type == "error" else None)
        await page.goto(f"{self.url}#{person.id}/{chat or person.id}")
        await expect(page.locator(".user-entry").first).to_be_attached()
        return page


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
