"""A new user's first order as README and docs describe it, on the chat page of the sandbox in a real browser."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.journeys.chat_pages import open_as_new_user
from tests.journeys.sandbox_process import Sandbox
from tests.sandbox.page.browser_tabs import bubbles, key, say

#: pages that describe the buttons of the first order
PAGES = (Path("README.md"), Path("docs/get-started.md"))


def documented_buttons(page: Path) -> tuple[str, ...]:
    """The button texts that a page names, in order."""
    order = re.search(r"[Pp]ress \*Start\*.*?\*✅ \w+\*", page.read_text(encoding="utf-8"), re.DOTALL)
    assert order, f"{page} does not name the buttons"
    return tuple(re.findall(r"\*([^*]+)\*", order[0]))


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.timeout(240)
async def test_the_documented_button_order_delivers_one_image_in_both_languages(
    shared_sandbox: Sandbox, browser: Browser
) -> None:
    for name, language, buttons, done in (
        ("Ann", "en", documented_buttons(PAGES[0]), "Generation complete"),
        ("Аня", "ru", ("Start", "🖼 Нарисовать", "Z-Image", "✅ Создать"), "Готово"),
    ):
        page = await open_as_new_user(browser, shared_sandbox, language, name=name)
        start, *presses = buttons
        await page.get_by_role("button", name=start, exact=True).click()
        await choose_by_buttons(page, presses, done)
        await order_in_one_line(page, done)
        await page.context.close()


def test_readme_docs_and_terminal_name_the_same_buttons(shared_sandbox: Sandbox) -> None:
    assert documented_buttons(PAGES[0]) == documented_buttons(PAGES[1])
    wish, model, generate = documented_buttons(PAGES[0])[1:]
    assert f"Start, {wish}, {model}, “cat astronaut”, {generate}" in shared_sandbox.output


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
