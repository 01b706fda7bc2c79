"""Photos, videos, audio and documents on the chat page, received and sent."""

import asyncio

import pytest
from playwright.async_api import FilePayload, expect

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.page.browser_tabs import Tabs, bubbles, wait_in_page
from tests.sandbox.page.example_bot import ExampleBot

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_video_audio_and_animation_play(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.say("/video")
    film = page.locator("article video")
    await expect(film).to_be_attached()
    await page.locator("article").get_by_role("button", name="Play").click()
    await wait_in_page(page, "document.querySelector('article video').currentTime > 0.2")
    assert await film.evaluate("film => film.videoWidth") == 640
    await ann.say("/audio")
    await expect(page.locator("article .file")).to_contain_text("Tone")
    await page.locator("article .file").get_by_role("button", name="Play").click()
    await wait_in_page(page, "document.querySelector('article audio').currentTime > 0.2")
    assert await film.evaluate("film => film.paused")
    await ann.say("/animation")
    await wait_in_page(page, "document.querySelector('article video[loop]')?.currentTime > 0")


async def test_a_video_keeps_playing_while_its_caption_is_edited(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await ann.say("/video")
    await page.locator("article").get_by_role("button", name="Play").click()
    await wait_in_page(page, "document.querySelector('article video').currentTime > 0.1")
    await page.evaluate("document.querySelector('article video').mine = true")
    await example.bot.edit_message_caption(ann.id, ann.last.id, caption="Other words")
    await expect(bubbles(page, "Other words")).to_be_visible()
    assert await page.evaluate("document.querySelector('article video').mine")


async def test_an_album_is_one_row_and_its_photos_open_in_the_viewer(tabs: Tabs, ann: SimulatedUser) -> None:
    page = await tabs.open(ann)
    await ann.say("/album")
    album = page.locator("article:has(.album)")
    await expect(album.locator("img.loaded")).to_have_count(4)
    await expect(album).to_contain_text("Four trees")
    await album.locator("img").nth(1).click()
    viewer = page.locator("dialog.viewer img")
    await wait_in_page(page, "document.querySelector('dialog.viewer img').naturalWidth > 0")
    first = await viewer.get_attribute("src")
    await page.keyboard.press("ArrowRight")
    await expect(viewer).not_to_have_attribute("src", str(first))
    await page.keyboard.press("Escape")
    await expect(page.locator("dialog")).to_have_count(0)


async def test_a_document_is_downloaded_completely(tabs: Tabs, ann: SimulatedUser, telegram: TelegramSimulator) -> None:
    page = await tabs.open(ann)
    await ann.say("/document")
    async with page.expect_download() as started:
        await page.locator("a.file").click()
    download = await started.value
    assert download.suggested_filename == "example.txt"
    content = await asyncio.to_thread((await download.path()).read_bytes)
    assert content == telegram.files.read(str(ann.last.file_id))


def payload(example: ExampleBot, name: str, type_: str = "image/png") -> FilePayload:
    return {"name": name, "mimeType": type_, "buffer": example.picture(name, "1:1")}


async def test_a_photo_and_a_document_are_uploaded(tabs: Tabs, ann: SimulatedUser, example: ExampleBot) -> None:
    page = await tabs.open(ann)
    await ann.say("hello")
    for kind, file in {
        "photo": payload(example, "cat.png"),
        "document": FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"notes"),
    }.items():
        async with page.expect_file_chooser() as chooser:
            await page.get_by_role("button", name="Attach photos and files").click()
        await (await chooser.value).set_files(file)
        await page.locator(".sending textarea").fill(f"my {kind}")
        await page.locator(".sending").get_by_role("button", name="Send").click()
        await expect(bubbles(page, f"Got a {kind}: my {kind}")).to_be_visible()
    assert [message.kind for message in ann.messages if message.sender == ann.id] == ["text", "photo", "document"]


async def test_several_photos_are_an_album_and_can_be_sent_as_files(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await ann.say("hello")
    for look, kind in {"As photo or video": "photo", "As files": "document"}.items():
        async with page.expect_file_chooser() as chooser:
            await page.get_by_role("button", name="Attach photos and files").click()
        await (await chooser.value).set_files([payload(example, f"{number}.png") for number in range(3)])
        await page.get_by_role("button", name=look).click()
        await page.locator(".sending").get_by_role("button", name="Send").click()
        await expect(bubbles(page, f"Got a {kind}")).to_have_count(3)
    sent = [message for message in ann.messages if message.sender == ann.id and message.album]
    assert [message.kind for message in sent] == ["photo"] * 3 + ["document"] * 3
    assert len({message.album for message in sent}) == 2
    await expect(page.locator("article.mine:has(.album) img.loaded")).to_have_count(3)
    await expect(page.locator("article.mine a.file")).to_have_count(3)


@pytest.mark.parametrize("way", ["paste", "drop"])
async def test_files_can_be_pasted_and_dropped(tabs: Tabs, ann: SimulatedUser, way: str) -> None:
    page = await tabs.open(ann)
    await ann.say("hello")
    target = page.locator(".write textarea" if way == "paste" else "#thread")
    await target.evaluate(
        """(target, way) => {
            const data = new DataTransfer();
            data.items.add(new File(["words"], "words.txt", { type: "text/plain" }));
            const more = { bubbles: true, cancelable: true };
            if (way === "paste") target.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, ...more }));
            else for (const kind of ["dragenter", "drop"])
                target.dispatchEvent(new DragEvent(kind, { dataTransfer: data, ...more }));
        }""",
        way,
    )
    await expect(page.locator(".sending")).to_contain_text("words.txt")
    await page.keyboard.press("Enter")
    await expect(bubbles(page, "Got a document")).to_be_visible()


async def test_places_contacts_dice_and_polls_are_lines_of_text(
    tabs: Tabs, ann: SimulatedUser, example: ExampleBot
) -> None:
    page = await tabs.open(ann)
    await example.bot.send_venue(ann.id, 52.5, 13.25, "Home", "Street 1")
    await expect(bubbles(page, "Place: Home")).to_contain_text("Street 1")
    await example.bot.send_contact(ann.id, "+1", "Bob", "Builder")
    await expect(bubbles(page, "Contact: Bob Builder")).to_contain_text("+1")
    await example.bot.send_dice(ann.id, emoji="🎲")
    await expect(bubbles(page, "Dice: 🎲")).to_be_visible()
    await example.bot.send_poll(ann.id, "Is it?", ["Yes", "No"])
    await expect(bubbles(page, "Poll: Is it?")).to_contain_text("○ No")
    await example.bot.send_message(ann.id, "Or?", reply_to_message_id=ann.last.id)
    await expect(bubbles(page, "Or?").last.locator(".quote")).to_contain_text("Poll")
