"""Appearance of the chat page: languages, themes, narrow screens, many messages."""

import pytest
from playwright.async_api import Page, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.page.browser_tabs import Tabs, bubbles
from tests.sandbox.page.example_bot import ExampleBot

pytestmark = pytest.mark.asyncio(loop_scope="session")
PHONE = {"width": 390, "height": 844}


async def choose(page: Page, setting: str, value: str) -> None:
    await page.locator('[data-key="settings"]').click()
    await page.locator(f'[data-setting="{setting}"][data-value="{value}"]').click()
    await page.keyboard.press("Escape")


async def test_the_page_is_available_in_russian_and_english(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann, at=await tabs.profile(locale="ru-RU"))
    await expect(page.get_by_role("button", name="Начать")).to_be_visible()
    await ann.start()
    await expect(page.locator("html")).to_have_attribute("lang", "ru")
    await choose(page, "language", "en")
    await expect(page.locator(".write textarea")).to_have_attribute("placeholder", "Message")
    await expect(bubbles(page, "Hello, Ann!")).to_be_visible()
    await page.reload()
    await expect(page.locator(".write textarea")).to_have_attribute("placeholder", "Message")


async def test_every_text_key_of_the_page_exists(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    missing = await page.evaluate(
        """async () => {
            const names = ["bubble", "buttons", "commands", "composer", "faults", "chat_header", "forward",
                "journal", "kie", "layers", "media", "message_menu", "notices", "panel", "pay", "providers", "sidebar",
                "stickers", "thread", "viewer", "appearance", "attach"];
            const { known } = await import("/page/texts.js");
            const missing = [];
            for (const name of names) {
                const text = await (await fetch(`/page/${name}.js`)).text();
                for (const [, key] of text.matchAll(/getText\\("(\\w+)"/g))
                    if (!known(key)) missing.push(`${name} ${key}`);
            }
            return missing;
        }"""
    )
    assert missing == []


async def test_the_theme_follows_the_system_until_one_is_chosen(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann, at=await tabs.profile(color_scheme="dark"))
    root = page.locator("html")
    await expect(root).to_have_attribute("data-theme", "dark")
    await page.emulate_media(color_scheme="light")
    await expect(root).to_have_attribute("data-theme", "light")
    await choose(page, "theme", "dark")
    await expect(root).to_have_attribute("data-theme", "dark")
    await page.reload()
    await expect(root).to_have_attribute("data-theme", "dark")


async def test_a_phone_shows_list_chat_or_panel_one_at_a_time(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann, at=await tabs.profile(viewport=PHONE, has_touch=True, is_mobile=True))
    await ann.say("/rich")
    await ann.sees("Bold")
    await expect(page.locator(".sidebar")).to_be_hidden()
    await page.get_by_role("button", name="Back to the chats").tap()
    await expect(page.locator(".chat")).to_be_hidden()
    await page.locator(".entry").tap()
    await expect(bubbles(page, "Bold")).to_be_visible()
    await page.get_by_role("button", name="Show faults and calls").tap()
    await expect(page.locator("#panel")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    await page.locator("#panel").get_by_role("button", name="Close the panel").tap()
    await expect(page.locator("#panel")).to_be_hidden()


async def test_every_button_and_field_has_a_name(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    for word in ("/start", "/album", "/audio", "/document", "/invoice", "/keyboard"):
        await ann.say(word)
    await ann.sees("Choose a colour")
    await expect(bubbles(page, "Choose a colour")).to_be_visible()
    await page.get_by_role("button", name="Show faults and calls").click()
    await page.locator('[data-tab="faults"]').click()
    nameless = await page.evaluate(
        """[...document.querySelectorAll("button, input, textarea, select, [role=button]")].filter((one) =>
            !one.innerText?.trim() && !one.ariaLabel && !one.labels?.length).map((one) => one.outerHTML)"""
    )
    assert nameless == []


async def test_only_recent_messages_are_drawn_and_edits_redraw_one_row(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot, telegram: TelegramSimulator
) -> None:
    chat, bot = telegram.state.chats[ann.id], telegram.state.bot_id
    for number in range(400):
        telegram.state.post(chat, bot, {"text": f"number {number}"}, silent=True)
    page = await tabs.open(ann)
    await expect(bubbles(page, "number 399")).to_be_in_viewport()
    drawn = await page.locator("article").count()
    assert drawn < 200
    await page.evaluate("document.querySelectorAll('article').forEach((row) => { row.mine = true; })")
    for share in range(20):
        await example.bot.edit_message_text(f"share {share}", ann.id, ann.last.id)
    await expect(bubbles(page, "share 19")).to_be_in_viewport()
    kept = await page.evaluate("[...document.querySelectorAll('article')].filter((row) => row.mine).length")
    assert kept == drawn - 1
    await page.locator("#thread").evaluate("thread => thread.scrollTo(0, 0)")
    await page.get_by_role("button", name="Show earlier messages").click()
    assert await page.locator("article").count() > drawn


async def test_new_messages_are_counted_while_the_user_has_scrolled_up(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    for number in range(40):
        await ann.say(f"line {number}")
    await expect(page.locator("article")).to_have_count(80)
    # Again and again, as a user would: while the page glides to the newest message, it goes on to the end.
    await page.wait_for_function(
        "() => { document.querySelector('#thread').scrollTo(0, 0); return !document.querySelector('#down').hidden; }",
        polling=100,
    )
    await expect(page.locator("#down")).to_be_visible()
    for text in ("new one", "new two"):
        await example.bot.send_message(ann.id, text)
    await expect(page.locator("#down")).to_contain_text("2 new messages")
    await expect(bubbles(page, "new two")).not_to_be_in_viewport()
    await page.locator("#down").click()
    await expect(bubbles(page, "new two")).to_be_in_viewport()
    await expect(page.locator("#down")).to_be_hidden()
