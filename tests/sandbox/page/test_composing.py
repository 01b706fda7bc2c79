"""Editing, forwarding, stickers, voice messages and the order of chats on the chat page."""

import pytest
from playwright.async_api import Page, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.page.browser_tabs import Tabs, bubbles, say
from tests.sandbox.page.example_bot import ExampleBot
from tests.sandbox.sample_media import picture, video

pytestmark = pytest.mark.asyncio(loop_scope="session")
#: a microphone that records a tone; the browser's own needs a device
MICROPHONE = """
navigator.mediaDevices.getUserMedia = async () => {
  const audio = new AudioContext(), tone = new OscillatorNode(audio), target = audio.createMediaStreamDestination();
  tone.connect(target); tone.start();
  return target.stream;
};
"""
NO_MICROPHONE = """
navigator.mediaDevices.getUserMedia = async () => { throw new DOMException("", "NotFoundError"); };
"""


async def choose(page: Page, text: str, item: str) -> None:
    await bubbles(page, text).first.click(button="right", position={"x": 12, "y": 12})
    await page.get_by_role("menuitem", name=item).click()


async def test_an_own_message_is_edited_in_the_message_field(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await ann.say("a cat")
    field = page.locator(".write textarea")
    await field.fill("not sent yet")
    await choose(page, "a cat", "Edit")
    await expect(field).to_have_value("a cat")
    await expect(page.locator(".answering")).to_contain_text("Edit message")
    await field.fill("a dog")
    await page.keyboard.press("Enter")
    edited = page.locator("article.mine", has_text="a dog")
    await expect(edited).to_contain_text("edited")
    await expect(field).to_have_value("not sent yet")
    [update] = await example.wait_for_updates(lambda update: update.edited_message)
    assert update.edited_message is not None
    assert update.edited_message.text == "a dog"
    await field.fill("")
    await page.keyboard.press("ArrowUp")
    await expect(field).to_have_value("a dog")
    await page.keyboard.press("Escape")
    await expect(page.locator(".answering")).to_have_count(0)
    await bubbles(page, "Received: a cat").click(button="right", position={"x": 12, "y": 12})
    await expect(page.get_by_role("menuitem", name="Forward")).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Edit")).to_have_count(0)


async def test_typing_goes_on_where_it_was_when_a_message_brings_a_reply_keyboard(
    tabs: Tabs, ann: SimulatedUser
) -> None:
    page = await tabs.open(ann)
    await ann.say("hello")
    await expect(bubbles(page, "Received: hello")).to_be_visible()
    field = page.locator(".write textarea")
    await field.press_sequentially("a at")
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("ArrowLeft")
    await ann.say("/keyboard")
    await expect(page.locator(".keyboard")).to_be_visible()
    await page.keyboard.type("c")
    await expect(field).to_have_value("a cat")


async def test_a_message_and_an_album_are_forwarded_to_a_chosen_chat(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser, telegram: TelegramSimulator, example: ExampleBot
) -> None:
    friends = telegram.group("Friends", [ann, ben])
    await ben.send_album([picture(), picture()], caption="my two houses", chat=friends.id)
    page = await tabs.open(ann, friends.id)
    await choose(page, "my two houses", "Forward")
    await page.locator("dialog").get_by_role("button", name="Sandbox").click()
    await expect(bubbles(page, "Forwarded from Ben").locator("img.loaded")).to_have_count(2)
    received = await example.wait_for_updates(lambda update: update.message and update.message.photo, 2)
    assert [update.message.chat.id for update in received if update.message] == [ann.id] * 2
    await choose(page, "Got a photo: my two houses", "Forward")
    await page.locator("dialog").get_by_role("button", name="Friends").click()
    await expect(bubbles(page, "Forwarded from Sandbox")).to_be_visible()
    assert page.url.endswith(f"#{ann.id}/{friends.id}")


async def test_a_sticker_is_chosen_with_the_keyboard_and_answers_a_message(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await ann.say("/help")
    await choose(page, "Helpful words", "Reply")
    await page.get_by_role("button", name="Stickers").click()
    await expect(page.locator(".stickers img")).to_have_count(8)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    sticker = page.locator("article.mine .sticker")
    await expect(sticker).to_be_visible()
    [update] = await example.wait_for_updates(lambda update: update.message and update.message.sticker)
    assert update.message is not None
    assert update.message.sticker is not None
    assert update.message.reply_to_message is not None
    assert (update.message.sticker.emoji, update.message.sticker.width) == ("😉", 512)
    await expect(page.locator(".entry .last").first).to_contain_text("😉 Sticker")
    await page.get_by_role("button", name="Stickers").click()
    await page.keyboard.press("Escape")
    await expect(page.locator(".stickers")).to_have_count(0)


async def test_a_voice_message_is_recorded_or_a_sample_voice_is_sent(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    await ann.say("hello")
    pages = []
    for microphone, text in ((MICROPHONE, "Recording…"), (NO_MICROPHONE, "No microphone here")):
        profile = await tabs.profile()
        await profile.add_init_script(microphone)
        page = await tabs.open(ann, at=profile)
        pages.append(page)
        for wanted in ("Delete the recording", "Send"):
            await page.get_by_role("button", name="Record a voice message").click()
            await expect(page.locator(".recording")).to_contain_text(text)
            await expect(page.locator(".recording .clock")).to_have_text("0:01")
            await page.locator(".recording").get_by_role("button", name=wanted).click()
            await expect(page.locator(".write textarea")).to_be_focused()
    voices = await example.wait_for_updates(lambda update: update.message and update.message.voice, 2)
    assert len(voices) == 2
    for update in voices:
        assert update.message is not None
        assert update.message.voice is not None
        assert update.message.voice.mime_type == "audio/ogg"
    page = pages[-1]
    await expect(page.locator("article.mine .file")).to_have_count(2)
    await page.locator(".write textarea").fill("words")
    await expect(page.get_by_role("button", name="Record a voice message")).to_be_hidden()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def test_a_quote_shows_the_picture_or_video_as_it_is_now(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await ann.send_photo(picture(), caption="my house")
    await ann.send_video(video(), caption="my film")
    for text in ("my house", "my film"):
        await choose(page, text, "Reply")
        await expect(page.locator(".answering .thumb")).to_be_visible()
        await say(page, f"about {text}")
        await expect(bubbles(page, f"about {text}").first.locator(".quote .thumb")).to_be_visible()
    placeholder = await example.bot.send_message(ann.id, "Drawing…")
    await choose(page, "Drawing…", "Reply")
    await say(page, "hurry")
    await expect(bubbles(page, "hurry").first.locator(".quote")).to_contain_text("Drawing…")
    await example.bot.edit_message_text("Nearly done", ann.id, placeholder.message_id)
    await expect(bubbles(page, "hurry").first.locator(".quote")).to_contain_text("Nearly done")


async def test_chats_are_listed_by_their_newest_message(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser, telegram: TelegramSimulator
) -> None:
    now = telegram.state.now()
    telegram.state.clock = lambda: now
    old, new = telegram.group("Old", [ann, ben]), telegram.group("New", [ann, ben])
    page = await tabs.open(ann)
    titles = page.locator(".entry .title")
    await expect(titles).to_have_text(["Sandbox", "Old", "New"])
    for group in (old, new):
        now += 60
        await ben.say("hi", chat=group.id)
    await expect(titles).to_have_text(["New", "Old", "Sandbox"])
    now += 60
    await ann.say("hello")
    await expect(titles).to_have_text(["Sandbox", "New", "Old"])
    await expect(page.locator(".entry[aria-current=true]")).to_contain_text("Sandbox")


async def test_a_russian_browser_opens_with_a_russian_user_and_an_alert_is_closed_with_ok(
    tabs: Tabs, ann: SimulatedUser, ben: SimulatedUser
) -> None:
    await ben.start()
    for locale, name in (("ru-RU", "Ben"), ("en-GB", "Ann"), ("de-DE", "Ann")):
        profile = await tabs.profile(locale=locale)
        page = await profile.new_page()
        await page.goto(tabs.url)
        await expect(page.locator(".user-entry[aria-current=true]")).to_contain_text(name)
        if name == "Ben":
            await page.locator(".key", has_text="Alert").click()
            await expect(page.locator("dialog button")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.locator("dialog")).to_have_count(0)
    assert ann.messages == []


async def test_an_operator_is_marked_in_the_list_of_users(
    tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator
) -> None:
    page = await tabs.open(ann)
    telegram.add_user("Olga", operator=True)
    await expect(page.locator(".user-entry", has_text="Olga").locator(".role")).to_have_text("operator")
    await page.reload()
    await expect(page.locator(".user-entry .role")).to_have_text(["operator"])
