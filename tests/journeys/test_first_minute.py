"""A new user's first order as README and docs describe it, on the chat page of the sandbox in a real browser."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser import chromium
from tests.journeys.test_sandbox import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

TIMEOUT_MS = 40_000
#: pages that describe the buttons of the first order
PAGES = (Path("README.md"), Path("docs/get-started.md"))


def documented_buttons(page: Path) -> tuple[str, ...]:
    """The button texts that a page names, in order."""
    order = re.search(r"[Pp]ress \*Start\*.*?\*✅ \w+\*", page.read_text(encoding="utf-8"), re.DOTALL)
    assert order, f"{page} does not name the buttons"
    return tuple(re.findall(r"\*([^*]+)\*", order[0]))


@pytest.mark.timeout(180)
async def test_the_documented_button_order_delivers_one_image_in_both_languages(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, "--fresh", "--speed", "30")
    try:
        await asyncio.to_thread(sandbox.ready)
        async with chromium() as browser:
            for name, language, buttons, done in (
                ("Ann", "en", documented_buttons(PAGES[0]), "Generation complete"),
                ("Аня", "ru", ("Start", "🖼 Нарисовать", "Z-Image", "✅ Создать"), "Готово"),
            ):
                user = sandbox.post("/sim/people", {"name": name, "language": language, "started": False})["id"]
                page = await browser.new_page(locale="en-GB")
                page.set_default_timeout(TIMEOUT_MS)
                expect.set_options(timeout=TIMEOUT_MS)
                await page.goto(f"http://127.0.0.1:{sandbox.port}/#{user}/{user}")
                start, *presses = buttons
                await page.get_by_role("button", name=start, exact=True).click()
                await choose_by_buttons(page, presses, done)
                await order_in_one_line(page, done)
        assert await asyncio.to_thread(sandbox.end) == 0
    finally:
        sandbox.process.kill()
        sandbox.process.wait()


def test_readme_docs_and_terminal_name_the_same_buttons(tmp_path: Path) -> None:
    assert documented_buttons(PAGES[0]) == documented_buttons(PAGES[1])
    sandbox = Sandbox(tmp_path, "--fresh")
    try:
        output = sandbox.ready().output
    finally:
        sandbox.process.kill()
        sandbox.process.wait()
    wish, model, generate = documented_buttons(PAGES[0])[1:]
    assert f"Start, {wish}, {model}, “cat astronaut”, {generate}" in output


async def choose_by_buttons(page: Page, presses: list[str], done: str) -> None:
    wish, model, generate = presses
    await key(page, wish).click()
    await key(page, model).click()
    await expect(key(page, "💡")).to_be_visible()  # the bot has asked for the prompt
    await say(page, "cat astronaut")
    await key(page, generate).click()
    await expect(bubbles(page, done)).to_have_count(1)
    await expect(page.locator("article.row img")).to_have_count(2)  # the first screen has a picture, too


async def order_in_one_line(page: Page, done: str) -> None:
    await say(page, "/gen z-image cat astronaut")
    await expect(bubbles(page, done)).to_have_count(2)
    await expect(page.locator("article.row img")).to_have_count(3)
