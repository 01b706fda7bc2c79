"""Files from the chat: photos, documents, videos, audio, voice messages, albums and links."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from genlock.bot.rules import BotRules
from genlock.bot.storefront.storefront import Storefront
from genlock.domain.job import Job
from genlock.engine.retention import KEEP_SECONDS
from genlock.sandbox.kie.media import make_audio, make_video
from genlock.sandbox.telegram import media as telegram_media
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.journal import Call
from tests.bot.pages import label, page
from tests.bot.steps import picture
from tests.bot.world import BotWorld, ChatUser, running_bot, sqlite_url
from tests.media.samples import SECONDS, encode_audio, encode_video


async def opened(world: BotWorld, title: str) -> ChatUser:
    ann = await world.add_user()
    await ann.write(f"/models {title}")
    await ann.tap(f"{title} ·")
    return ann


async def ordered(world: BotWorld, ann: ChatUser) -> Job:
    await ann.tap(label("button.generate"))
    await ann.sees(page("order.done"))
    return (await world.jobs(ann))[0]


def shown(world: BotWorld) -> list[Call]:
    """All calls that sent or edited a screen."""
    return [*world.telegram.calls("sendMessage"), *world.telegram.calls("editMessageText")]


async def test_a_photo_is_uploaded_and_the_bot_token_is_not_disclosed(world: BotWorld) -> None:
    ann = await opened(world, "Recraft Remove Background")
    await ann.sees(page("ask.image"))
    await ann.send("photo", picture())
    await ann.sees("Your image: 📎 1")
    job = await ordered(world, ann)

    address = json.loads(job.input)["image"]
    assert address.startswith(world.kie.files_url)
    stored = world.kie.service.files.find(address)
    assert stored is not None
    secret = world.caller.bot.token.partition(":")[2]
    assert secret not in job.input
    assert all(secret not in str(seen.facts) for seen in world.recorder.seen)


async def test_a_photo_with_a_caption_is_a_complete_order(world: BotWorld) -> None:
    ann = await opened(world, "Qwen Image Edit")
    await ann.sees(page("ask.image"))
    await ann.send("photo", picture(), caption="make it blue")
    await ann.sees("make it blue")
    job = await ordered(world, ann)

    assert json.loads(job.input)["prompt"] == "make it blue"


async def test_a_text_written_while_a_photo_is_asked_for_is_the_prompt(world: BotWorld) -> None:
    ann = await opened(world, "Qwen Image Edit")
    await ann.write("make it green")
    await ann.sees(page("list.carried_text", text="make it green"))
    await ann.send("photo", picture())
    job = await ordered(world, ann)

    assert json.loads(job.input)["prompt"] == "make it green"


async def test_a_photo_sent_before_the_text_is_kept(world: BotWorld) -> None:
    ann = await opened(world, "Qwen Image Edit")
    await ann.send("photo", picture())
    asked = await ann.sees("Your image: 1")
    assert "Describe what you want" in asked.text
    await ann.write("make it red")
    job = await ordered(world, ann)

    assert json.loads(job.input).keys() >= {"prompt", "image_url"}


async def test_an_album_is_added_completely_and_shown_once(world: BotWorld) -> None:
    ann = await opened(world, "Nano Banana Edit")
    await ann.write("put them together")
    await ann.sees(page("ask.several"))
    before = len(shown(world))
    async with world.done(3):
        await ann.client.send_album([picture(), picture(32), picture(16)])
    await ann.sees(page("ask.have_files", n=3))
    assert len(ann.from_bot) == 1
    assert len(shown(world)) == before + 1
    await ann.tap(label("button.done_files", n=3))
    job = await ordered(world, ann)

    assert len(json.loads(job.input)["image_urls"]) == 3


async def test_an_album_with_too_many_files_fills_the_field_and_reports_it_once(world: BotWorld) -> None:
    ann = await opened(world, "Qwen Image 3 Edit")
    await ann.write("put them together")
    await ann.sees("1 to 3")
    before = len(shown(world))
    async with world.done(5):
        await ann.client.send_album([picture(size) for size in (64, 32, 16, 8, 4)])
    told = await ann.sees(page("refused.full", n=3))
    assert "Your images: 📎 3" in told.text
    assert len(shown(world)) == before + 1


async def test_an_album_without_an_order_asks_once_what_to_do(world: BotWorld) -> None:
    ann = await world.add_user()
    async with world.done(3):
        await ann.client.send_album([picture(), picture(32), picture(16)])
    await ann.sees("Got 3\u00a0files")
    assert len(shown(world)) == 1


async def test_an_album_whose_last_file_is_refused_still_asks_what_to_do(world: BotWorld) -> None:
    ann = await world.add_user()
    async with world.done(2):
        await ann.client.send_all([("document", picture(), "cat.png"), ("document", b"%PDF-1.7", "notes.pdf")])
    assert len(shown(world)) == 2
    told, asked = ann.from_bot
    assert page("misc.no_models_for_file")(told)
    assert page("misc.what_with_file")(asked)


async def test_an_image_sent_as_a_document_is_accepted(world: BotWorld) -> None:
    ann = await opened(world, "Recraft Remove Background")
    await ann.send("document", picture(), name="cat.png")
    assert "Your image: 📎 1" in ann.screen.text


async def test_a_file_reaches_the_provider_with_the_suffix_of_its_content(world: BotWorld) -> None:
    """Players that go by another one play a second of MP3 for minutes."""
    ann = await opened(world, "ElevenLabs Speech to Text")
    await ann.sees(page("ask.audio"))
    await ann.send("audio", encode_audio("mp3", "libmp3lame", "s16p"), name="speech.tco")
    await ann.sees(page("confirm.price"))
    [address] = [value for value in json.loads((await ordered(world, ann)).input).values() if "://" in str(value)]

    assert address.startswith(world.kie.files_url)
    assert address.endswith(".mp3")


async def test_a_link_is_accepted_in_place_of_a_file(world: BotWorld) -> None:
    ann = await opened(world, "Recraft Remove Background")
    await ann.write("https://example.com/cat.png")
    job = await ordered(world, ann)

    assert json.loads(job.input)["image"] == "https://example.com/cat.png"


async def test_the_length_of_a_voice_message_sets_the_price(world: BotWorld) -> None:
    ann = await opened(world, "ElevenLabs Speech to Text")
    await ann.sees(page("ask.audio"))
    await ann.write("https://example.com/long.mp3")
    by_link = (await ann.sees(page("confirm.price"))).text
    assert "the price of the longest file possible, 60\u00a0minutes" in by_link
    await ann.tap(label("button.back"))
    await ann.send("audio", make_audio(1))
    by_file = (await ann.sees(page("confirm.price"))).text
    assert "longest" not in by_file
    first, second = (float(re.findall(r"Price: ([\d.,]+)", text)[0].replace(",", "")) for text in (by_link, by_file))
    assert first > second
    job = await ordered(world, ann)

    assert job.price < 1000
    assert [message.kind for message in ann.from_bot] == ["text", "text"]


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """All clients declare a length of one second for their videos and audio files."""
    told = telegram_media._media_object

    def a_second(*args: Any) -> dict[str, Any]:
        return {name: 1 if name == "duration" else value for name, value in told(*args).items()}

    monkeypatch.setattr(telegram_media, "_media_object", a_second)


@pytest.mark.usefixtures("declared")
async def test_the_price_uses_the_measured_length_not_the_declared_one(world: BotWorld) -> None:
    ann = await opened(world, "Wan 2.2 Animate: copy the moves")
    await ann.send("photo", picture())
    await ann.send("video", encode_video("mp4", "libx264"))
    shown = await ann.sees(page("confirm.price"))
    job = await ordered(world, ann)

    assert "longest" not in shown.text
    model = world.catalog.get("wan/2-2-animate-move")
    seconds = {"video_url": float(SECONDS)}
    assert job.price == Storefront(world.catalog, markup=2.0, credit_usd=0.01).price(
        model, json.loads(job.input), seconds
    )


@pytest.mark.usefixtures("declared")
async def test_a_file_of_unknown_length_is_priced_as_the_longest_and_the_user_is_told(world: BotWorld) -> None:
    ann = await opened(world, "Wan 2.2 Animate: copy the moves")
    await ann.send("photo", picture())
    await ann.send("video", encode_video("mp4", "mpeg4"))
    await ann.sees("the price of the longest file possible, 30\u00a0seconds")
    job = await ordered(world, ann)

    model = world.catalog.get("wan/2-2-animate-move")
    seconds = {"video_url": 30.0}
    assert job.price == Storefront(world.catalog, markup=2.0, credit_usd=0.01).price(
        model, json.loads(job.input), seconds
    )


@pytest.mark.usefixtures("declared")
async def test_a_video_longer_than_declared_is_refused_if_it_exceeds_the_limit(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("video", encode_video("mp4", "libx264"))
    await ann.sees(page("misc.what_with_file"))
    await ann.write("/models Wan 2.7 Video Edit")
    await ann.tap("Wan 2.7 Video Edit ·")
    await ann.sees("That's 12\u00a0seconds long. The limit here is 10\u00a0seconds.")
    await ann.send("video", encode_video("mp4", "libx264"))
    await ann.sees("That's 12\u00a0seconds long. The limit here is 10\u00a0seconds.")

    assert await world.jobs(ann) == []


async def test_a_video_and_an_image_go_to_their_own_fields(world: BotWorld) -> None:
    ann = await opened(world, "Wan 2.2 Animate: copy the moves")
    await ann.sees("Your image")
    await ann.send("video", make_video("A", {}, 1))
    await ann.sees("Your video: 1")
    await ann.send("audio", make_audio(1))
    await ann.sees(page("refused.wrong_kind_image"))
    await ann.send("photo", picture())
    shown = await ann.sees(page("confirm.price"))

    assert "Your image: 📎 1" in shown.text
    assert "Your video: 📎 1" in shown.text


async def test_a_file_whose_content_does_not_match_its_type_is_refused(world: BotWorld) -> None:
    ann = await opened(world, "Recraft Remove Background")
    await ann.send("document", b"<html>not a picture</html>", name="cat.png")
    await ann.sees(page("refused.not_a_file_image"))
    await ann.send("document", b"%PDF-1.7", name="a.pdf")
    await ann.sees(page("refused.wrong_kind_image"))
    await ann.write("not a link")
    await ann.sees(page("refused.address_image"))

    assert await world.jobs(ann) == []


async def test_a_file_that_is_too_large_is_refused_before_the_download(world: BotWorld) -> None:
    ann = await opened(world, "Recraft Remove Background")
    await ann.send("document", picture() + b"\0" * 6_000_000, name="cat.png")
    await ann.sees(page("refused.too_big", given="6\u00a0MB", most="5\u00a0MB"))
    await ann.send("document", picture() + b"\0" * 21_000_000, name="cat.png")
    await ann.sees(page("refused.too_big_for_telegram"))

    assert world.telegram.calls("getFile") == []


async def test_a_model_without_image_fields_refuses_an_image(world: BotWorld) -> None:
    ann = await opened(world, "Z-Image")
    await ann.send("photo", picture())

    assert page("refused.no_place_image")(ann.screen)
    assert await world.jobs(ann) == []


async def test_an_image_without_an_order_asks_what_to_do_with_it(world: BotWorld) -> None:
    ann = await world.add_user()
    await ann.send("photo", picture())
    await ann.sees(page("misc.what_with_file"))
    await ann.tap(label("category.image-to-image"))
    await ann.sees("Kept: 1\u00a0file")
    await ann.write("qwen image edit")
    await ann.sees("Kept: 1\u00a0file")
    await ann.tap("Qwen Image Edit ·")
    await ann.sees(page("ask.text"))
    await ann.write("make it snow")
    job = await ordered(world, ann)

    assert json.loads(job.input).keys() >= {"prompt", "image_url"}


async def test_a_failed_upload_is_reported_to_the_user(world: BotWorld) -> None:
    ann = await opened(world, "Recraft Remove Background")
    world.kie.service.files.url = "gopher://nowhere"
    await ann.send("photo", picture())

    assert page("refused.upload_failed")(ann.from_bot[-1])
    assert await world.jobs(ann) == []


async def test_a_file_that_telegram_does_not_give_is_reported_at_once(world: BotWorld) -> None:
    """Before the user's next message is handled, which would otherwise wait for further attempts."""
    ann = await opened(world, "Recraft Remove Background")
    text = "Bad Request: wrong file_id or the file is temporarily unavailable"
    world.telegram.faults.switch(Fault.REFUSED, method="getFile", text=text)
    await ann.send("photo", picture())

    assert page("refused.upload_failed")(ann.from_bot[-1])
    assert len(world.telegram.calls("getFile")) == 1


async def test_uploads_per_hour_are_limited(tmp_path: Path) -> None:
    rules = BotRules(uploads_per_hour=1)
    async with running_bot(sqlite_url(tmp_path), rules=rules) as there:
        ann = await opened(there, "Nano Banana Edit")
        await ann.write("a cat")
        await ann.send("photo", picture())
        await ann.sees(page("ask.have_files", n=1))
        await ann.send("photo", picture())
        assert page("limit.uploads")(ann.from_bot[-1])
        assert len(there.telegram.calls("getFile")) == 1


async def test_a_file_that_cannot_be_read_is_counted_answered_once_and_not_passed_on(tmp_path: Path) -> None:
    bomb = (
        b"OggS\0\2"
        + bytes(20)
        + b"\2\x08\x08"
        + b"OpusHeadOpusTags"
        + (b"OggS" + bytes(22) + b"\xff" + bytes(255)) * 2000
    )
    async with running_bot(sqlite_url(tmp_path), rules=BotRules(uploads_per_hour=1)) as there:
        ann = await there.add_user()
        await ann.send("document", bomb, name="song.ogg")
        await ann.sees(page("refused.upload_unreadable"))
        await ann.send("document", bomb, name="song.ogg")
        await ann.sees(page("limit.uploads"))

        assert len(there.telegram.calls("getFile")) == 1
        assert len([message for message in ann.from_bot if page("refused.upload_unreadable")(message)]) == 1


async def test_files_of_an_old_order_are_uploaded_again(world: BotWorld) -> None:
    ann = await opened(world, "Recraft Remove Background")
    await ann.send("photo", picture())
    first = await ordered(world, ann)
    old = json.loads(first.input)["image"]
    await ann.send("photo", picture())  # no order uses it
    await ann.tap(label("button.cancel"))
    await world.age_uploads(days=30)
    role = world.engine.leader.role
    assert role is not None
    assert await world.store.prune_next("uploads", KEEP_SECONDS["uploads"], 10, role) == 1, "an order may be repeated"
    await ann.write("/history")
    await ann.tap("Recraft")
    await ann.tap(label("button.repeat"))
    await ann.sees(page("confirm.price"))
    await ann.tap(label("button.generate"))
    await ann.sees(lambda message: "#2" in message.text and page("order.done")(message))
    again = json.loads((await world.jobs(ann))[0].input)["image"]

    assert again != old
    assert again.startswith(world.kie.files_url)


async def test_repeated_uploads_count_towards_the_hourly_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.stores.updates.REPEAT_SECONDS", 0.0)  # the same button is meant twice
    async with running_bot(sqlite_url(tmp_path), rules=BotRules(uploads_per_hour=2)) as there:
        ann = await opened(there, "Recraft Remove Background")
        await ann.send("photo", picture())
        await ordered(there, ann)
        await there.age_uploads(days=3)
        result = ann.from_bot[-1]
        await ann.press(result, "repeat:1")
        await ann.sees(page("confirm.price"))
        await ann.press(result, "repeat:1")
        await ann.sees(page("limit.uploads"))

        assert len(there.telegram.calls("getFile")) == 2


async def test_an_earlier_order_of_the_user_can_be_continued(world: BotWorld) -> None:
    ann, bob = await world.add_user("Ann"), await world.add_user("Bob")
    await ann.write("/gen z-image a fox")
    await ann.sees(page("order.done"))
    [job] = await world.jobs(ann)
    for user, told in ((bob, page("refused.task")), (ann, page("options.title"))):
        await user.write("/models Grok Imagine Video from an image")
        await user.tap("Grok Imagine Video from an image ·")
        await user.write("https://example.com/a.png")
        await user.tap(label("button.done_files"))
        await user.tap(label("button.skip"))
        await user.tap(label("button.options"))
        await user.tap("Earlier")
        await user.write(f"#{job.id}")
        assert told(user.screen)
