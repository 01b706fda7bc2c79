"""A conversation on the chat page, as in Telegram."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.page.browser_tabs import Tabs, bubbles, key, say
from tests.sandbox.page.example_bot import ExampleBot

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_start_opens_the_conversation_and_shows_the_menu(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await expect(page.locator(".empty")).to_contain_text("I make pictures")
    await page.get_by_role("button", name="Start").click()
    await expect(bubbles(page, "Hello, Ann! What would you like?")).to_be_visible()
    assert await page.locator(".key").all_inner_texts() == ["Draw a picture", "Alert", "Site", "Copy", "Slow"]
    await expect(page.locator("article.row.mine")).to_contain_text("/start")


async def test_the_placeholder_becomes_the_image_and_only_the_notice_causes_a_notification(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    elsewhere = await tabs.open(ben)
    await ann.start()
    await key(page, "Draw a picture").click()
    placeholder = page.locator("article.row:not(.mine)")
    await expect(placeholder).to_contain_text("Drawing… 60 %")
    await expect(placeholder).to_contain_text("edited")
    await expect(page.locator(".head .status")).to_contain_text("sending a photo")
    example.finish.set()
    await expect(placeholder.first.locator("img.loaded")).to_be_visible()
    await expect(placeholder.first).to_contain_text("A fox in the snow")
    await expect(bubbles(page, "Generation complete")).to_be_visible()
    await expect(page.locator(".head .status")).to_have_text("bot")
    assert await placeholder.count() == 2
    await expect(elsewhere.locator(".notice")).to_contain_text("✅ Generation complete")
    assert await elsewhere.evaluate("noticed") == ["Hello, Ann! What would you like?", "✅ Generation complete"]
    assert await page.evaluate("noticed") == [], "no notification for the chat that is being read"


async def test_a_silent_message_is_shown_without_a_notification(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.say("/silent")
    await expect(bubbles(page, "Without a sound")).to_be_visible()
    assert ann.notifications == []
    await expect(bubbles(page, "Without a sound").locator(".bell")).to_have_count(0)


async def test_a_button_in_a_group_can_open_the_private_chat(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    friends = telegram.group("Friends", [ann])
    page = await tabs.open(ann, friends.id)
    await ann.say("/open@sandbox_bot", chat=friends.id)
    await key(page, "Open").click()

    await expect(bubbles(page, "/start payload")).to_be_visible()
    assert page.url.endswith(f"#{ann.id}/{ann.id}")


async def test_alert_copy_url_and_slow_buttons_work(tabs: Tabs, ann: SimulatedUser, example: ExampleBot) -> None:
    page = await tabs.open(ann, at=await tabs.profile(permissions=["clipboard-read", "clipboard-write"]))
    await ann.start()
    await key(page, "Alert").click()
    await expect(page.locator("dialog")).to_contain_text("This is an alert")
    await page.get_by_role("button", name="OK").click()
    await key(page, "Copy").click()
    await expect(page.locator(".toast")).to_have_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == "COPIED-TEXT"
    await key(page, "Site").click()
    await expect(page.locator("dialog")).to_contain_text("https://example.org/")
    await page.keyboard.press("Escape")
    await key(page, "Slow").click()
    await expect(key(page, "Slow")).to_have_class(re.compile("waiting"))
    example.finish.set()
    await expect(key(page, "Slow")).not_to_have_class(re.compile("waiting"))


async def test_the_reply_keyboard_is_used_folded_and_removed(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.say("/keyboard")
    await page.locator(".keyboard").get_by_role("button", name="Blue").click()
    await expect(bubbles(page, "Received: Blue")).to_be_visible()
    await page.get_by_role("button", name=re.compile("The bot.s keyboard")).click()
    await expect(page.locator(".keyboard")).to_have_count(0)
    await page.get_by_role("button", name=re.compile("The bot.s keyboard")).click()
    await expect(page.locator(".keyboard")).to_be_visible()
    await say(page, "/nokeyboard")
    await expect(page.locator(".keyboard")).to_have_count(0)


async def test_enter_sends_shift_enter_adds_a_line_and_a_slash_offers_commands(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.say("hello")
    await page.locator(".write textarea").focus()
    await page.keyboard.type("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.type("two")
    await page.keyboard.press("Enter")
    await expect(bubbles(page, "Received: one two")).to_be_visible()
    assert [message.text for message in ann.messages if message.sender == ann.id][-1] == "one\ntwo"
    await page.keyboard.type("/h")
    await expect(page.get_by_role("option")).to_have_text(["/helpWhat the bot can do"])
    await page.keyboard.press("Enter")
    await expect(bubbles(page, "Helpful words")).to_be_visible()
    await page.get_by_role("button", name="Bot commands").click()
    await page.get_by_role("option", name="/balance").click()
    await expect(bubbles(page, "Received: /balance")).to_be_visible()


async def test_a_reply_shows_a_quote_and_a_reaction_is_shown(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.start()
    await bubbles(page, "Hello, Ann!").click(button="right", position={"x": 20, "y": 10})
    await page.get_by_role("menuitem", name="Reply").click()
    await say(page, "What is that?")
    await expect(page.locator("article.mine .quote")).to_contain_text("Hello, Ann!")
    await bubbles(page, "What is that?").first.click(button="right", position={"x": 20, "y": 10})
    await page.locator(".menu .emoji button").first.click()
    await expect(page.locator(".reactions .mine")).to_have_text("👍")


async def test_text_is_formatted_by_entities_and_never_parsed_as_html(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await ann.say("/rich")
    rich = bubbles(page, "Bold")
    for tag, text in {"b": "Bold", "i": "italic", "u": "underline", "s": "gone", "code": "code"}.items():
        await expect(rich.locator(f".text > {tag}")).to_have_text(text)
    await expect(rich.locator("a")).to_have_attribute("href", "https://example.org/a")
    await expect(rich.locator("blockquote")).to_have_text("Quoted text of another user")
    await expect(rich.locator("pre")).to_have_attribute("data-language", "python")
    await rich.locator(".spoiler").click()
    await expect(rich.locator(".spoiler")).to_have_class(re.compile("shown"))
    assert await rich.evaluate("row => row.scrollWidth <= row.clientWidth")
    evil = "<img src=x onerror=alert(1)><b>not bold</b>"
    await say(page, evil)
    await expect(bubbles(page, f"Received: {evil}")).to_be_visible()
    await example.bot.send_message(ann.id, '<a href="javascript:alert.1">press</a>', parse_mode="HTML")
    await expect(bubbles(page, "press")).to_be_visible()
    assert await page.locator("article img, article .text b").count() == 1
    assert await page.locator('a[href^="javascript"]').count() == 0


async def test_an_invoice_is_paid_with_stars(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.say("/invoice")
    await key(page, "Pay").click()
    dialog = page.locator("dialog.paying")
    await expect(dialog).to_contain_text("Pay 100 Stars for “100 credits” to Sandbox?")
    await expect(dialog).to_contain_text("Balance: 500")
    await dialog.get_by_role("button").click()
    await expect(page.locator(".pill.service")).to_have_text("You paid 100 Stars to Sandbox")
    await expect(bubbles(page, "Thank you for 100 Stars")).to_be_visible()
    await expect(page.locator(".stars .sum")).to_have_text("400")
    await expect(page.locator(".key.pay")).to_have_text("Payment made")
    assert ann.user.stars == 400


async def test_a_user_without_enough_stars_can_pay_after_a_top_up(tabs: Tabs, ann: SimulatedUser) -> None:
    ann.user.stars = 50
    page = await tabs.open(ann)
    await ann.say("/invoice")
    await key(page, "Pay").click()
    await expect(page.locator("dialog")).to_contain_text("Not enough Stars")
    await page.locator("dialog").get_by_role("button", name="Give this user 1,000 Stars").click()
    await expect(page.locator(".stars .sum")).to_have_text("1,050")
    await key(page, "Pay").click()
    await page.locator("dialog .wide").click()
    await expect(page.locator(".stars .sum")).to_have_text("950")


async def remove(page: Page, bubble: Locator, way: str) -> None:
    await bubble.click(button="right", position={"x": 20, "y": 10})
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("button", name=way).click()


async def test_a_message_is_deleted_for_both_sides_or_only_for_the_user(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    for text in ("one", "two"):
        await ann.say(text)
        await ann.sees(f"Received: {text}")
    await remove(page, bubbles(page, "Received: one"), "Delete for both sides")
    await expect(bubbles(page, "Received: one")).to_have_count(0)
    assert not any(message.text == "Received: one" for message in ann.messages)
    hidden = ann.last
    await remove(page, bubbles(page, "Received: two"), "Delete for me")
    await expect(bubbles(page, "Received: two")).to_have_count(0)
    await example.bot.edit_message_text("Received: two, edited", ann.id, hidden.id)
    await example.bot.send_message(ann.id, "after")
    await expect(bubbles(page, "after")).to_be_visible()
    await expect(bubbles(page, "Received: two")).to_have_count(0)
    await page.reload()
    await expect(bubbles(page, "after")).to_be_visible()
    await expect(bubbles(page, "Received: two")).to_have_count(0)


async def test_the_history_is_cleared(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.start()
    await expect(page.locator(".key")).to_have_count(5)
    await page.locator(".head").get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Clear history").click()
    await page.get_by_role("button", name="Clear for me").click()
    await expect(page.get_by_role("button", name="Start")).to_be_visible()
    await expect(page.locator("article")).to_have_count(0)


async def test_blocking_and_unblocking_reach_the_bot(tabs: Tabs, ann: SimulatedUser, example: ExampleBot) -> None:
    page = await tabs.open(ann)
    await ann.start()
    await ann.sees("Hello")
    await page.locator(".head").get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Block the bot").click()
    await page.get_by_role("button", name="Unblock").click()
    await expect(page.locator(".write textarea")).to_be_visible()
    changes = [
        update.my_chat_member for update in await example.wait_for_updates(lambda update: update.my_chat_member, 2)
    ]
    assert [change.new_chat_member.status for change in changes if change] == ["kicked", "member"]
