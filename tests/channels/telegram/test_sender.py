"""D1 to D6: results become their messages, level by level, whatever they are and whatever Telegram says."""

import asyncio
import io
import zipfile

import pytest
from aiohttp import web
from PIL import Image

from genlock.channels.telegram.content import FETCH_TRIES, FILES_AT_ONCE
from genlock.channels.telegram.messages import Button, OutgoingMessage
from genlock.domain.delivery import Level, Step
from genlock.domain.job import Delivery, Notice, State
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind, Piece
from genlock.engine import operate
from genlock.sandbox.kie.media import make_audio
from genlock.sandbox.telegram.faults import Fault
from tests.channels.telegram.house import House, film, noise, picture
from tests.engine.world import idle

PNG, MP4, MP3 = ("image/png", "video/mp4", "audio/mpeg")


def text(words: str) -> Piece:
    return Piece(kind=PartKind.TEXT, value=words)


def gif() -> bytes:
    file = io.BytesIO()
    frames = [Image.new("P", (64, 64), number) for number in range(4)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=100, loop=0)
    return file.getvalue()


def webp() -> bytes:
    return picture(form="WEBP")


def archive() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("model.obj", "v 0 0 0")
    return file.getvalue()


def wav() -> bytes:
    return (
        b"RIFF\x24\x10\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\x10\0\0"
        + b"\0" * 4096
    )


# kinds and levels


@pytest.mark.parametrize(
    ("content", "type_", "kind", "level"),
    [
        (picture(), PNG, "photo", Level.ADDRESS),
        (picture(form="JPEG"), "image/jpeg", "photo", Level.ADDRESS),
        (film(), MP4, "video", Level.ADDRESS),
        (make_audio(0), MP3, "audio", Level.ADDRESS),
        (gif(), "image/gif", "animation", Level.ADDRESS),
        (b"%PDF-1.7 and so on", "application/pdf", "document", Level.ADDRESS),
        (archive(), "application/zip", "document", Level.ADDRESS),
        # What its server calls by another name, or Telegram fetches not at all, is uploaded.
        (picture(), "application/octet-stream", "photo", Level.BYTES),
        (webp(), "image/webp", "photo", Level.BYTES),
        (film(), "application/octet-stream", "video", Level.BYTES),
        (wav(), "audio/wav", "audio", Level.BYTES),
        (b"1\n00:00 --> 00:02\nHello", "text/plain", "document", Level.BYTES),
        (b"\x00\x01\x02 something else", "application/x-strange", "document", Level.BYTES),
    ],
)
async def test_the_kind_is_found_in_the_content(
    house: House, content: bytes, type_: str, kind: str, level: Level
) -> None:
    url = house.shelf.put("result-without-a-suffix", content, type_)
    job = await house.deliver(url)

    [message], [part] = house.shown(job), job.parts
    assert (message.kind, part.level, part.step) == (kind, level, Step.DONE)
    assert (job.delivery, job.hold_state, job.notice) == (Delivery.DELIVERED, HoldState.CAPTURED, Notice.SENT)
    assert part.message == job.placeholder
    assert part.file == f"{kind}:{message.file_id}"
    assert message.text == "Part 1"
    assert [button["text"] for button in message.buttons] == ["Original", "Repeat"]
    assert message.buttons[0]["url"] == url
    assert house.shelf.agents <= {"Mozilla/5.0 (compatible; genlock)", "TelegramBot (like TwitterBot)"}


@pytest.mark.parametrize(
    ("content", "type_", "kind", "suffix"),
    [
        (wav(), "audio/wav", "audio", ".wav"),
        (film(), "application/octet-stream", "video", ".mp4"),
        (b"1\n00:00 --> 00:02\nHello", "text/plain", "document", ".txt"),
    ],
)
async def test_an_uploaded_file_is_called_after_its_words(
    house: House, content: bytes, type_: str, kind: str, suffix: str
) -> None:
    job = await house.deliver(house.shelf.put("05b6e6d1_1", content, type_))

    [message] = house.shown(job)
    assert message.content[kind]["file_name"] == f"Words-of-order-{job.id}{suffix}"


@pytest.mark.parametrize("sound", [(make_audio(0), MP3), (wav(), "audio/wav")])
async def test_a_sound_has_a_title_and_a_performer(house: House, sound: tuple[bytes, str]) -> None:
    job = await house.deliver(house.shelf.put("05b6e6d1_1", *sound))

    [message] = house.shown(job)
    assert message.content["audio"]["title"] == f"Words of order {job.id}"
    assert message.content["audio"]["performer"] == "A Model"


async def test_a_name_that_lies_changes_nothing(house: House) -> None:
    job = await house.deliver(house.shelf.put("picture.png", film(), PNG))
    [message] = house.shown(job)
    assert message.kind == "video"


async def test_a_telegram_far_away_is_not_sent_to_private_addresses(far_house: House) -> None:
    job = await far_house.deliver(far_house.shelf.put("a.png", picture(), PNG))
    assert job.parts[0].level is Level.BYTES
    assert far_house.methods() == ["sendMessage", "editMessageMedia", "sendMessage"]


async def test_an_address_that_telegram_cannot_fetch_is_uploaded_instead(house: House) -> None:
    house.telegram.state.media.fetched["photo", house.shelf.put("a.png", picture(), PNG)] = (
        "failed to get HTTP URL content"
    )
    job = await house.deliver(f"{house.shelf.url}/a.png")
    assert job.parts[0].level is Level.BYTES
    assert [message.kind for message in house.shown(job)] == ["photo"]
    assert house.uploads() == 1


async def test_a_photo_with_sides_too_long_is_made_smaller_and_the_original_is_one_tap_away(house: House) -> None:
    url = house.shelf.put("long.png", picture((9000, 3000)), PNG)
    job = await house.deliver(url)
    [message] = house.shown(job)
    sizes = [(size["width"], size["height"]) for size in message.content["photo"]]
    assert (message.kind, job.parts[0].level) == ("photo", Level.BYTES)
    assert max(sizes[-1]) <= 4096
    assert message.buttons[0]["url"] == url


async def test_a_photo_of_too_many_bytes_is_made_smaller(house: House) -> None:
    content = noise((2200, 1900))
    assert len(content) > 10 * 1024 * 1024
    job = await house.deliver(house.shelf.put("noise.png", content, PNG))
    assert ([message.kind for message in house.shown(job)], job.parts[0].level) == (["photo"], Level.BYTES)
    [call] = [call for call in house.telegram.journal if call.uploaded]
    assert call.uploaded < 10 * 1024 * 1024


async def test_a_photo_too_narrow_is_a_document(house: House) -> None:
    job = await house.deliver(house.shelf.put("line.png", picture((2100, 100)), PNG))
    assert ([message.kind for message in house.shown(job)], job.parts[0].level) == (["document"], Level.DOCUMENT)


async def test_a_broken_picture_is_a_document(house: House) -> None:
    job = await house.deliver(house.shelf.put("half.png", picture()[:200], PNG))
    assert ([message.kind for message in house.shown(job)], job.parts[0].level) == (["document"], Level.DOCUMENT)


async def test_what_is_too_large_to_upload_is_a_link(house: House) -> None:
    async def huge(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(60 * 1024 * 1024), "Content-Type": MP4})
        await answer.prepare(request)
        await answer.write(b"\0\0\0\x18ftypisom" + b"\0" * 100_000)
        return answer

    job = await house.deliver(house.shelf.serve("film.mp4", huge))
    [message] = house.shown(job)
    assert (message.kind, job.parts[0].level, job.delivery) == ("text", Level.TEXT, Delivery.DELIVERED)
    assert message.text == "Part 1: open"


async def test_bytes_that_telegram_refuses_as_their_kind_become_a_document(house: House) -> None:
    group = house.telegram.group("Friends", [house.ann])
    await group.forbid("photo")
    job = await house.running(chat=group.id)
    house.telegram.state.chats[group.id].messages[int(job.placeholder or 0)].content = {"text": "gone by the person"}
    await house.ann.delete(int(job.placeholder or 0), chat=group.id)
    job = await house.end(job, house.shelf.put("a.png", picture(), PNG))
    assert ([message.kind for message in house.shown(job)], job.parts[0].level) == (["document"], Level.DOCUMENT)


# several parts, texts


async def test_several_parts_are_in_order_each_on_its_own_message(house: House) -> None:
    urls = [
        house.shelf.put(f"{number}.png", picture(colour=f"hsl({number * 30}, 50%, 50%)"), PNG) for number in range(10)
    ]
    job = await house.deliver(*urls)
    messages = house.shown(job)
    assert [message.text for message in messages] == [f"Part {number + 1}" for number in range(10)]
    assert [message.buttons[0]["url"] for message in messages] == urls
    assert [message.id for message in messages] == sorted({message.id for message in messages})
    assert [message.kind for message in house.ann.messages] == ["photo"] * 10 + ["text"]


async def test_a_text_is_shown_as_it_is(house: House) -> None:
    words = "if a < b && c > d: <b>not bold</b> 🦊"
    job = await house.deliver(text(words))
    [message] = house.shown(job)
    assert (message.kind, message.text) == ("text", words)
    assert [button["text"] for button in message.buttons] == ["Repeat"]


async def test_a_long_text_is_split_and_nothing_is_lost(house: House) -> None:
    words = "\n\n".join(
        " ".join(f"word{number}🦊" for number in range(start, start + 90)) for start in range(0, 900, 90)
    )
    job = await house.deliver(text(words))
    messages = house.shown(job)
    assert len(messages) == 3
    assert all(len(message.text.encode("utf-16-le")) // 2 <= 4096 for message in messages)
    assert " ".join(message.text for message in messages).split() == words.split()
    assert messages[0].id == int(job.placeholder or 0)


async def test_a_text_for_more_than_ten_messages_is_a_file(house: House) -> None:
    words = "lines of a long book\n" * 3000
    job = await house.deliver(text(words))
    [message] = house.shown(job)
    assert message.kind == "document"
    assert house.telegram.files.read(message.file_id).decode() == words


# results that are none


@pytest.mark.parametrize(
    ("content", "type_", "why"),
    [
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "text/html", "HTML"),
        (b"\n  <html><head></head></html>", "image/png", "HTML"),
        (b'{"code": 500, "msg": "expired"}', "application/json", "JSON"),
        (b'{"code": 500, "msg": "expired"}', "video/mp4", "JSON"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "image/png", "HTML"),
        (b"", "image/png", "empty"),
    ],
)
async def test_a_page_or_nothing_where_media_was_promised_is_a_failure_with_the_money_back(
    house: House, content: bytes, type_: str, why: str
) -> None:
    job = await house.deliver(house.shelf.put("a.png", content, type_))
    [message] = house.shown(job)
    assert (job.state, job.delivery, job.hold_state) == (State.FAILED, Delivery.DELIVERED, HoldState.RELEASED)
    assert why in job.error_text
    assert message.text == f"Order {job.id} failed (broken_result), money back"
    assert message.id == int(job.placeholder or 0)
    assert (await house.store.wallet(house.person)).available == 100_000


async def test_a_result_that_is_gone_is_asked_for_again_and_then_a_failure(house: House) -> None:
    job = await house.deliver(f"{house.shelf.url}/gone.png")
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 1)
    for attempt in range(2, FETCH_TRIES + 1):
        job = await house.next_try(job)
        assert (job.delivery, job.attempts) == (Delivery.PENDING, attempt)
    job = await house.next_try(job)
    assert (job.state, job.delivery, job.hold_state) == (State.FAILED, Delivery.DELIVERED, HoldState.RELEASED)
    assert "404" in job.error_text


async def test_a_host_that_is_ill_leaves_a_link_in_the_end(house: House) -> None:
    """The person's own way there may be better than ours."""

    async def ill(_: web.Request) -> web.Response:
        return web.Response(status=503)

    job = await house.deliver(house.shelf.serve("a.png", ill))
    for _ in range(FETCH_TRIES):
        job = await house.next_try(job)
    assert (job.state, job.delivery, job.parts[0].level) == (State.SUCCEEDED, Delivery.DELIVERED, Level.TEXT)


# words about failures, progress, the notice


async def test_a_failure_is_told_on_the_message_of_the_order(house: House) -> None:
    job = await house.end(await house.running(), state=State.FAILED, code="nsfw")
    [message] = house.shown(job)
    assert (message.text, message.id) == (f"Order {job.id} failed (nsfw), money back", int(job.placeholder or 0))
    assert message.buttons == []


async def test_the_notice_answers_the_result_and_is_the_only_sound(house: House) -> None:
    job = await house.deliver(house.shelf.put("a.png", picture(), PNG))
    assert [(one.text, one.message) for one in house.ann.notifications] == [
        ("✅ Generation complete", house.ann.last.id)
    ]
    assert house.ann.last.reply_to == int(job.placeholder or 0)
    assert [button["callback_data"] for button in house.ann.last.buttons] == [f"again:{job.id}"]


async def test_progress_is_shown_on_the_message_and_never_on_a_result(house: House) -> None:
    loop = asyncio.get_running_loop()
    job = await house.running()
    assert house.ann.last.text == f"Order {job.id}: accepted"
    await house.channel.progress(job, 0.5, loop.time() + 5)
    await house.channel.progress(job, 0.5, loop.time() + 5)
    assert house.ann.last.text == f"Order {job.id}: 50%"
    done = await house.end(job, house.shelf.put("a.png", picture(), PNG))
    await house.channel.progress(job, 0.6, loop.time() + 5)
    assert [message.text for message in house.shown(done)] == ["Part 1"]


async def test_an_edit_that_changes_nothing_is_a_success(house: House) -> None:
    url = house.shelf.put("a.png", picture(), PNG)
    job = await house.running()
    house.telegram.faults.once(Fault.DROP_AFTER, method="editMessageMedia")
    job = await house.end(job, url)
    assert (job.delivery, job.attempts) == (Delivery.PENDING, 1)
    job = await house.again(job)
    assert job.delivery is Delivery.DELIVERED
    assert house.telegram.calls("editMessageMedia")[-1].error is not None
    assert len(house.ann.messages) == 2


async def test_words_that_telegram_refuses_are_said_plainly(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = OutgoingMessage(text="<b>Part</i> &lt;1&gt;", buttons=((Button(text="x", data="y" * 80),),))
    monkeypatch.setattr(house.channel._words, "caption", lambda *_: broken)
    job = await house.deliver(house.shelf.put("a.png", picture(), PNG))
    [message] = house.shown(job)
    assert (message.kind, message.text, message.buttons) == ("photo", "Part <1>", [])


# shown again


async def test_a_result_is_shown_again_without_an_upload(far_house: House) -> None:
    house = far_house
    job = await house.deliver(house.shelf.put("a.png", picture(), PNG), house.shelf.put("b.mp4", film(), MP4))
    asked, uploads = len(house.shelf.asked), house.uploads()
    await operate.resend(house.engine.ctx, job.id, "ann")
    job = await house.again(job)
    assert [message.kind for message in house.shown(job)] == ["photo", "video"]
    assert [message.kind for message in house.ann.messages] == ["photo", "video", "text", "photo", "video"]
    assert (len(house.shelf.asked), house.uploads()) == (asked, uploads)


async def test_a_copy_that_telegram_has_forgotten_is_uploaded_again(far_house: House) -> None:
    house = far_house
    job = await house.deliver(house.shelf.put("a.png", picture(), PNG))
    house.telegram.files.known.clear()
    await operate.resend(house.engine.ctx, job.id, "ann")
    job = await house.again(job)
    assert (job.delivery, house.uploads()) == (Delivery.DELIVERED, 2)
    assert [message.kind for message in house.shown(job)] == ["photo"]


# the probe before a repeated upload


async def test_an_upload_whose_answer_was_lost_is_not_made_again(far_house: House) -> None:
    house = far_house
    house.telegram.faults.once(Fault.DROP_AFTER, method="editMessageMedia")
    job = await house.deliver(house.shelf.put("b.mp4", film(), MP4))
    assert job.delivery is Delivery.PENDING
    job = await house.again(job)
    assert (job.delivery, house.uploads()) == (Delivery.DELIVERED, 1)
    assert house.methods()[-3:] == ["editMessageMedia", "editMessageCaption", "sendMessage"]


async def test_an_upload_that_never_arrived_is_made_again(far_house: House) -> None:
    house = far_house
    house.telegram.faults.once(Fault.DROP_BEFORE, method="editMessageMedia")
    job = await house.deliver(house.shelf.put("b.mp4", film(), MP4))
    job = await house.again(job)
    assert job.delivery is Delivery.DELIVERED
    assert house.methods()[-4:] == ["editMessageMedia", "editMessageCaption", "editMessageMedia", "sendMessage"]
    assert [message.kind for message in house.shown(job)] == ["video"]


async def test_a_backlog_of_uploads_is_worked_off_a_few_at_a_time(far_house: House) -> None:
    """If all were asked after first, whoever is killed again and again would never come to the first upload."""
    house = far_house
    url = house.shelf.put("b.png", picture(), PNG)
    lost = house.telegram.faults.switch(Fault.DROP_BEFORE, method="editMessageMedia")
    jobs = [await house.deliver(url) for _ in range(3 * FILES_AT_ONCE)]
    house.telegram.faults.off(lost)
    before = len(house.methods())
    for job in jobs:
        await house.store.retry(job.id)
    for taken in await house.store.claim(len(jobs), house.engine.ctx.lease):
        house.engine.worker.start(taken)
    await idle(house.engine)
    methods = house.methods()[before:]
    assert (methods.count("editMessageCaption"), methods.count("editMessageMedia")) == (len(jobs), len(jobs))
    assert methods[: methods.index("editMessageMedia")].count("editMessageCaption") <= FILES_AT_ONCE
    assert {(await house.see(job)).delivery for job in jobs} == {Delivery.DELIVERED}
