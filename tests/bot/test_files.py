"""Files from the chat: photos, documents, videos, sounds, voices, albums and links."""

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
from genlock.sandbox.telegram.journal import Call
from tests.bot.test_kindness import picture
from tests.bot.world import Customer, Town, sqlite_url, town
from tests.media.samples import SECONDS, encode_video


async def opened(here: Town, title: str) -> Customer:
    ann = await here.person()
    await ann.say(f"/models {title}")
    await ann.tap(f"{title} ·")
    return ann


async def ordered(here: Town, ann: Customer) -> Job:
    await ann.tap("Generate")
    await ann.sees("Generation complete")
    return (await here.jobs(ann))[0]


def shown(here: Town) -> list[Call]:
    """Every time a screen was sent or changed."""
    return [*here.telegram.calls("sendMessage"), *here.telegram.calls("editMessageText")]


async def test_a_photo_goes_to_the_provider_and_the_token_to_nobody(here: Town) -> None:
    ann = await opened(here, "Recraft Remove Background")
    await ann.sees("Send a picture, or a link to one")
    await ann.send("photo", picture())
    await ann.sees("Your image: 📎 1")
    job = await ordered(here, ann)

    address = json.loads(job.input)["image"]
    assert address.startswith(here.kie.files_url)
    stored = here.kie.service.files.find(address)
    assert stored is not None
    secret = here.caller.bot.token.partition(":")[2]
    assert secret not in job.input
    assert all(secret not in str(seen.facts) for seen in here.recorder.seen)


async def test_a_photo_with_words_is_a_whole_order(here: Town) -> None:
    ann = await opened(here, "Qwen Image Edit")
    await ann.sees("Describe what you want")
    await ann.send("photo", picture(), caption="make it blue")
    await ann.sees("make it blue")
    job = await ordered(here, ann)

    assert json.loads(job.input)["prompt"] == "make it blue"


async def test_a_photo_while_words_are_asked_for_is_kept(here: Town) -> None:
    ann = await opened(here, "Qwen Image Edit")
    await ann.send("photo", picture())
    asked = await ann.sees("Received: 1")
    assert "Describe what you want" in asked.text
    await ann.say("make it red")
    job = await ordered(here, ann)

    assert json.loads(job.input).keys() >= {"prompt", "image_url"}


async def test_an_album_is_taken_whole_and_shown_on_one_screen(here: Town) -> None:
    ann = await opened(here, "Nano Banana Edit")
    await ann.say("put them together")
    await ann.sees("also as an album")
    before = len(shown(here))
    async with here.done(3):
        await ann.hands.send_album([picture(), picture(32), picture(16)])
    await ann.sees("Received: 3")
    assert len(ann.from_bot) == 1
    assert len(shown(here)) == before + 1
    await ann.tap("That is all (3)")
    job = await ordered(here, ann)

    assert len(json.loads(job.input)["image_urls"]) == 3


async def test_an_album_that_is_too_large_fills_the_order_and_says_so_once(here: Town) -> None:
    ann = await opened(here, "Qwen Image 3 Edit")
    await ann.say("put them together")
    await ann.sees("1 to 3")
    before = len(shown(here))
    async with here.done(5):
        await ann.hands.send_album([picture(size) for size in (64, 32, 16, 8, 4)])
    told = await ann.sees("No more than 3 fit")
    assert "Your images: 📎 3" in told.text
    assert len(shown(here)) == before + 1


async def test_an_album_out_of_the_blue_is_asked_about_once(here: Town) -> None:
    ann = await here.person()
    async with here.done(3):
        await ann.hands.send_album([picture(), picture(32), picture(16)])
    await ann.sees("Got 3 files")
    assert len(shown(here)) == 1


async def test_an_album_whose_last_file_is_of_no_use_is_asked_about_all_the_same(here: Town) -> None:
    ann = await here.person()
    async with here.done(2):
        await ann.hands.send_all([("document", picture(), "cat.png"), ("document", b"%PDF-1.7", "notes.pdf")])
    assert len(shown(here)) == 2
    told, asked = ann.from_bot
    assert "I cannot do anything with a file of this kind" in told.text
    assert "What shall I do with it?" in asked.text


async def test_a_picture_as_a_document_is_a_picture(here: Town) -> None:
    ann = await opened(here, "Recraft Remove Background")
    await ann.send("document", picture(), name="cat.png")
    await ann.sees("Your image: 📎 1")


async def test_a_link_is_as_good_as_a_file(here: Town) -> None:
    ann = await opened(here, "Recraft Remove Background")
    await ann.say("https://example.com/cat.png")
    job = await ordered(here, ann)

    assert json.loads(job.input)["image"] == "https://example.com/cat.png"


async def test_a_voice_message_and_its_length_make_the_price(here: Town) -> None:
    ann = await opened(here, "ElevenLabs Speech to Text")
    await ann.sees("Send an audio file or a voice message")
    await ann.say("https://example.com/long.mp3")
    by_link = (await ann.sees("Price")).text
    assert "the price of the longest file, 60 minutes" in by_link
    await ann.tap("Back")
    await ann.send("audio", make_audio(1))
    by_file = (await ann.sees("Price")).text
    assert "longest" not in by_file
    first, second = (float(re.findall(r"Price: ([\d.,]+)", text)[0].replace(",", "")) for text in (by_link, by_file))
    assert first > second
    job = await ordered(here, ann)

    assert job.price < 1000
    assert [message.kind for message in ann.from_bot] == ["text", "text"]


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody's programs tell Telegram that their films and sounds are a second long."""
    told = telegram_media._media_object

    def a_second(*args: Any) -> dict[str, Any]:
        return {name: 1 if name == "duration" else value for name, value in told(*args).items()}

    monkeypatch.setattr(telegram_media, "_media_object", a_second)


@pytest.mark.usefixtures("declared")
async def test_the_price_is_that_of_the_measured_length_not_of_the_declared(here: Town) -> None:
    ann = await opened(here, "Wan 2.2 Animate: copy the moves")
    await ann.send("photo", picture())
    await ann.send("video", encode_video("mp4", "libx264"))
    shown = await ann.sees("Price")
    job = await ordered(here, ann)

    assert "longest" not in shown.text
    model = here.catalog.get("wan/2-2-animate-move")
    seconds = {"video_url": float(SECONDS)}
    assert job.price == Storefront(here.catalog, markup=2.0, credit_usd=0.01).price(
        model, json.loads(job.input), seconds
    )


@pytest.mark.usefixtures("declared")
async def test_what_cannot_be_measured_is_priced_as_the_longest_and_told(here: Town) -> None:
    ann = await opened(here, "Wan 2.2 Animate: copy the moves")
    await ann.send("photo", picture())
    await ann.send("video", encode_video("mp4", "libx264", fragments=True))
    await ann.sees("the price of the longest file, 30 seconds")
    job = await ordered(here, ann)

    model = here.catalog.get("wan/2-2-animate-move")
    seconds = {"video_url": 30.0}
    assert job.price == Storefront(here.catalog, markup=2.0, credit_usd=0.01).price(
        model, json.loads(job.input), seconds
    )


@pytest.mark.usefixtures("declared")
async def test_a_film_that_is_longer_than_declared_is_refused_where_it_does_not_fit(here: Town) -> None:
    ann = await here.person()
    await ann.send("video", encode_video("mp4", "libx264"), caption="make it snow")
    await ann.sees("What shall I do with it?")
    await ann.say("/models Wan 2.7 Video Edit")
    await ann.tap("Wan 2.7 Video Edit ·")
    await ann.sees("That is 12 seconds long. Here at most 10 seconds fit.")
    await ann.send("video", encode_video("mp4", "libx264"))
    await ann.sees("That is 12 seconds long. Here at most 10 seconds fit.")

    assert await here.jobs(ann) == []


async def test_a_video_and_a_picture_each_find_their_place(here: Town) -> None:
    ann = await opened(here, "Wan 2.2 Animate: copy the moves")
    await ann.sees("Your image")
    await ann.send("video", make_video("A", {}, 1))
    await ann.sees("Received: 1")
    await ann.send("audio", make_audio(1))
    await ann.sees("⚠️ I need a picture here.")
    await ann.send("photo", picture())
    shown = await ann.sees("Price")

    assert "Your image: 📎 1" in shown.text
    assert "Your video: 📎 1" in shown.text


async def test_what_is_not_what_it_says_is_refused(here: Town) -> None:
    ann = await opened(here, "Recraft Remove Background")
    await ann.send("document", b"<html>not a picture</html>", name="cat.png")
    await ann.sees("That does not look like a picture")
    await ann.send("document", b"%PDF-1.7", name="a.pdf")
    await ann.sees("⚠️ I need a picture here.")
    await ann.say("not a link")
    await ann.sees("Please send a picture, or a link that begins with https://")

    assert await here.jobs(ann) == []


async def test_a_file_that_is_too_large_is_refused_before_it_is_fetched(here: Town) -> None:
    ann = await opened(here, "Recraft Remove Background")
    await ann.send("document", picture() + b"\0" * 6_000_000, name="cat.png")
    await ann.sees("That file is 6 MB. Here at most 5 MB fit.")
    await ann.send("document", picture() + b"\0" * 21_000_000, name="cat.png")
    await ann.sees("Telegram gives me files of up to 20 MB only")

    assert here.telegram.calls("getFile") == []


async def test_a_model_that_takes_no_pictures_says_so(here: Town) -> None:
    ann = await opened(here, "Z-Image")
    await ann.send("photo", picture())

    await ann.sees("⚠️ This model does not take pictures.")


async def test_a_picture_out_of_the_blue_asks_what_to_do_with_it(here: Town) -> None:
    ann = await here.person()
    await ann.send("photo", picture(), caption="make it snow")
    shown = await ann.sees("What shall I do with it?")
    assert "make it snow" in shown.text
    await ann.tap("Edit an image")
    await ann.sees("Kept: 1 file")
    await ann.say("qwen image edit")
    await ann.sees("Kept: 1 file")
    await ann.tap("Qwen Image Edit ·")
    await ann.sees("make it snow")
    job = await ordered(here, ann)

    assert json.loads(job.input).keys() >= {"prompt", "image_url"}


async def test_a_provider_that_cannot_take_the_file_is_told_kindly(here: Town) -> None:
    ann = await opened(here, "Recraft Remove Background")
    here.kie.service.files.url = "gopher://nowhere"
    await ann.send("photo", picture())

    await ann.sees("I could not take this file over")


async def test_files_in_an_hour_are_limited(tmp_path: Path) -> None:
    rules = BotRules(uploads_per_hour=1)
    async with town(sqlite_url(tmp_path), rules=rules) as there:
        ann = await opened(there, "Nano Banana Edit")
        await ann.say("a cat")
        await ann.send("photo", picture())
        await ann.sees("Received: 1")
        await ann.send("photo", picture())
        await ann.sees("You can send more in ")


async def test_files_of_an_old_order_are_handed_on_anew(here: Town) -> None:
    ann = await opened(here, "Recraft Remove Background")
    await ann.send("photo", picture())
    first = await ordered(here, ann)
    old = json.loads(first.input)["image"]
    await ann.send("photo", picture())  # of which nothing becomes
    await ann.tap("Cancel")
    await here.age_uploads(days=30)
    role = here.engine.leader.role
    assert role is not None
    assert await here.store.prune("uploads", KEEP_SECONDS["uploads"], 10, role) == 1, "an order may be repeated"
    await ann.say("/history")
    await ann.tap("Recraft")
    await ann.tap("Repeat")
    await ann.sees("Price")
    await ann.tap("Generate")
    await ann.sees(lambda message: "#2" in message.text and "complete" in message.text)
    again = json.loads((await here.jobs(ann))[0].input)["image"]

    assert again != old
    assert again.startswith(here.kie.files_url)


async def test_files_of_old_orders_count_among_those_of_the_hour(tmp_path: Path) -> None:
    async with town(sqlite_url(tmp_path), rules=BotRules(uploads_per_hour=1)) as there:
        ann = await opened(there, "Recraft Remove Background")
        await ann.send("photo", picture())
        await ordered(there, ann)
        await there.age_uploads(days=3)
        result = ann.from_bot[-1]
        await ann.press(result, "repeat:1")
        await ann.sees("Price")
        await ann.press(result, "repeat:1")
        await ann.sees("You can send more in ")

        assert len(there.telegram.calls("getFile")) == 2


async def test_an_earlier_order_of_ones_own_can_be_gone_on_from(here: Town) -> None:
    ann, bob = await here.person("Ann"), await here.person("Bob")
    await ann.say("/gen z-image a fox")
    await ann.sees("Generation complete")
    [job] = await here.jobs(ann)
    for person, told in ((bob, "I do not find such an order of yours"), (ann, "what would you like to change?")):
        await person.say("/models Grok Imagine Video from an image")
        await person.tap("Grok Imagine Video from an image ·")
        await person.tap("Skip")
        await person.say("https://example.com/a.png")
        await person.tap("That is all")
        await person.tap("Options")
        await person.tap("Earlier")
        await person.say(f"#{job.id}")
        await person.sees(told)
