"""Several users on the chat page, and several tabs."""

import pytest
from playwright.async_api import expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.page.browser_tabs import Tabs, bubbles, say
from tests.sandbox.page.example_bot import ExampleBot

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_unread_messages_of_another_user_are_shown(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser, telegram: TelegramSimulator
) -> None:
    group = telegram.group("Friends", [ann, ben])
    page = await tabs.open(ann)
    await ben.start()
    entry = page.locator(".user-entry", has_text="Ben")
    await expect(entry.locator(".badge")).to_have_text("1")
    await expect(page.locator(".notice")).to_contain_text("Sandbox → Ben")
    await expect(page).to_have_title("(1) Sandbox · genlock")
    await entry.click()
    await expect(bubbles(page, "Hello, Ben!")).to_be_visible()
    await expect(entry.locator(".badge")).to_have_text("")
    await page.locator(".entry", has_text="Friends").click()
    await expect(page.get_by_role("heading", name="Friends")).to_be_visible()
    await say(page, "Hi, Ann")
    await expect(bubbles(page, "Hi, Ann")).to_be_visible()
    await page.locator(".user-entry", has_text="Ann").click()
    await expect(page.locator("article.row:not(.mine)", has_text="Hi, Ann").locator(".sender")).to_have_text("Ben")
    await say(page, "/help@sandbox_bot")
    await expect(bubbles(page, "Helpful words")).to_be_visible()
    await page.locator(".head").get_by_role("button", name="More").click()
    await page.get_by_role("menuitem", name="Upgrade to a supergroup").click()
    await expect(page.locator(".pill.service")).to_have_text("The group became a supergroup")
    assert group.chat.migrated_to is not None


async def test_a_new_user_can_be_added_with_another_language(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await page.get_by_role("button", name="New", exact=True).click()
    await page.get_by_label("Name").fill("Zoë <b>")
    await page.locator("dialog").get_by_label("Language in Telegram").select_option("ru")
    await page.get_by_role("button", name="Add").click()
    await expect(page.locator(".user-entry", has_text="Zoë <b>")).to_have_attribute("aria-current", "true")
    await expect(page.locator(".empty")).to_contain_text("Делаю картинки")
    await expect(page.locator(".stars .sum")).to_have_text("1,000")
    await page.get_by_role("button", name="Start").click()
    await expect(bubbles(page, "Hello, Zoë <b>!")).to_be_visible()
    await page.locator(".myself").get_by_role("button", name="EN").click()
    await expect(page.locator(".myself").get_by_role("button", name="EN")).to_have_attribute("aria-pressed", "true")
    await say(page, "now in English")
    await example.wait_for_updates(lambda update: update.effective_user and update.effective_user.language_code == "en")


async def test_a_new_group_is_made_of_existing_users(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser, telegram: TelegramSimulator
) -> None:
    page = await tabs.open(ann)
    await page.get_by_role("button", name="New group").click()
    await page.get_by_label("Name of the group").fill("Friends <b>")
    await page.locator("dialog").get_by_label("Ann").uncheck()
    await page.get_by_role("button", name="Add").click()  # the group has no members yet
    for name in ("Ann", "Ben"):
        await page.locator("dialog").get_by_label(name).check()
    await page.get_by_role("button", name="Add").click()
    await expect(page.locator(".entry[aria-current=true]")).to_contain_text("Friends <b>")
    [group] = [chat for chat in telegram.state.chats.values() if chat.title == "Friends <b>"]
    assert group.members >= {ann.id, ben.id}
    await say(page, "/help@sandbox_bot")
    await expect(bubbles(page, "Helpful words")).to_be_visible()


async def test_two_tabs_show_the_same_chat_and_share_read_marks(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser
) -> None:
    profile = await tabs.profile()
    one, other = await tabs.open(ann, at=profile), await tabs.open(ben, at=profile)
    await ann.start()
    await expect(bubbles(one, "Hello, Ann!")).to_be_visible()
    await expect(other.locator(".user-entry", has_text="Ann").locator(".badge")).to_have_text("")
    await ben.start()
    await expect(bubbles(other, "Hello, Ben!")).to_be_visible()
    await expect(one.locator(".user-entry", has_text="Ben").locator(".badge")).to_have_text("")


async def test_a_start_link_in_a_group_starts_the_bot_for_the_user_who_opens_it(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser, telegram: TelegramSimulator, example: ExampleBot
) -> None:
    group = telegram.group("Friends", [ann, ben])
    page = await tabs.open(ben, group.id)
    await ann.say("try https://t.me/sandbox_bot?start=ref_17", chat=group.id)
    await page.locator("article a").click()
    await example.wait_for_updates(lambda update: update.message and update.message.text == "/start ref_17")
    await expect(bubbles(page, "Hello, Ben!")).to_be_visible()


async def test_a_bot_removed_from_a_group_receives_no_updates_from_it(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator, example: ExampleBot
) -> None:
    group = telegram.group("Friends", [ann])
    page = await tabs.open(ann, group.id)
    for name in ("Remove the bot", "Add the bot"):
        await page.locator(".head").get_by_role("button", name="More").click()
        await page.get_by_role("menuitem", name=name).click()
    changes = [
        update.my_chat_member for update in await example.wait_for_updates(lambda update: update.my_chat_member, 2)
    ]
    assert [change.new_chat_member.status for change in changes if change] == ["kicked", "member"]
