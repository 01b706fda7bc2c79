"""A newcomer's first minute: the sandbox as it is started, its chat page in a real browser, the product in between."""

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser import chromium
from tests.journeys.test_sandbox import Sandbox
from tests.sandbox.page.tabs import bubbles, key, say

PATIENCE_MS = 40_000
#: where people are told what to press, in which words
TOLD = (Path("README.md"), Path("docs/get-started.md"))


def told(page: Path) -> tuple[str, ...]:
    """The words on the buttons as a page has them, in their order."""
    order = re.search(r"[Pp]ress \*Start\*.*?\*✅ \w+\*", page.read_text(encoding="utf-8"), re.DOTALL)
    assert order, f"{page} does not say what to press"
    return tuple(re.findall(r"\*([^*]+)\*", order[0]))


@pytest.mark.timeout(180)
async def test_from_start_to_one_picture_and_the_notice_in_both_languages(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, "--fresh", "--speed", "30")
    try:
        await asyncio.to_thread(sandbox.ready)
        async with chromium() as browser:
            for name, language, words, done in (
                ("Ann", "en", told(TOLD[0]), "Generation complete"),
                ("Аня", "ru", ("Start", "Нарисовать", "Z-Image", "1:1", "✅ Создать"), "Готово"),
            ):
                person = sandbox.post("/sim/people", {"name": name, "language": language, "started": False})["id"]
                page = await browser.new_page(locale="en-GB")
                page.set_default_timeout(PATIENCE_MS)
                expect.set_options(timeout=PATIENCE_MS)
                await page.goto(f"http://127.0.0.1:{sandbox.port}/#{person}/{person}")
                start, *presses = words
                await page.get_by_role("button", name=start, exact=True).click()
                await choose_by_buttons(page, presses, done)
                await order_in_one_line(page, done)
        assert await asyncio.to_thread(sandbox.end) == 0
    finally:
        sandbox.process.kill()
        sandbox.process.wait()


def test_everywhere_the_same_words_are_told(tmp_path: Path) -> None:
    assert told(TOLD[0]) == told(TOLD[1])
    sandbox = Sandbox(tmp_path, "--fresh")
    try:
        said = sandbox.ready().said
    finally:
        sandbox.process.kill()
        sandbox.process.wait()
    shelf, model, ratio, generate = told(TOLD[0])[1:]
    assert f"Start, {shelf}, {model}, “cat astronaut”, {ratio}, {generate}" in said


async def choose_by_buttons(page: Page, presses: list[str], done: str) -> None:
    shelf, model, ratio, generate = presses
    await key(page, shelf).click()
    await key(page, model).click()
    await expect(key(page, "💡")).to_be_visible()  # the question has come
    await say(page, "cat astronaut")
    await key(page, ratio).click()
    await key(page, generate).click()
    await expect(bubbles(page, done)).to_have_count(1)
    await expect(page.locator("article.row img")).to_have_count(1)


async def order_in_one_line(page: Page, done: str) -> None:
    await say(page, "/gen z-image cat astronaut")
    await expect(bubbles(page, done)).to_have_count(2)
    await expect(page.locator("article.row img")).to_have_count(2)
