"""The content of a result decides how it is shown: level by level, until Telegram accepts one."""

import io
from collections.abc import Callable

import pytest
from aiohttp import web
from PIL import Image

from genlock.domain.delivery import Level, Step
from genlock.domain.job import Delivery, Notice
from genlock.domain.money import HoldState
from genlock.ports import FileLabel
from tests.channels.telegram.harness import Harness
from tests.channels.telegram.plain_texts import PlainTexts
from tests.channels.telegram.sample_results import MP3, MP4, PNG, archive, gif, made, song, wav, webp
from tests.media.samples import image, noise_image, short_video


@pytest.mark.parametrize(
    ("content", "type_", "kind", "level"),
    [
        (image, PNG, "photo", Level.ADDRESS),
        (lambda: image(form="JPEG"), "image/jpeg", "photo", Level.ADDRESS),
        (short_video, MP4, "video", Level.ADDRESS),
        (song, MP3, "audio", Level.ADDRESS),
        (gif, "image/gif", "animation", Level.ADDRESS),
        (b"%PDF-1.7 and so on", "application/pdf", "document", Level.ADDRESS),
        (archive, "application/zip", "document", Level.ADDRESS),
        # A file with another Content-Type, or of a format that Telegram does not fetch, is uploaded.
        (image, "application/octet-stream", "photo", Level.BYTES),
        (webp, "image/webp", "photo", Level.BYTES),
        (short_video, "application/octet-stream", "video", Level.BYTES),
        (wav, "audio/wav", "audio", Level.BYTES),
        (b"1\n00:00 --> 00:02\nHello", "text/plain", "document", Level.BYTES),
        (b"\x00\x01\x02 something else", "application/x-strange", "document", Level.BYTES),
    ],
)
async def test_the_content_decides_the_kind_of_the_message(
    harness: Harness, content: bytes | Callable[[], bytes], type_: str, kind: str, level: Level
) -> None:
    url = harness.files.put("result-without-a-suffix", made(content), type_)
    job = await harness.deliver(url)

    [message], [part] = harness.shown(job), job.parts
    assert (message.kind, part.level, part.step) == (kind, level, Step.DONE)
    assert (job.delivery, job.hold_state, job.notice) == (Delivery.DELIVERED, HoldState.CAPTURED, Notice.SENT)
    assert part.message == job.placeholder
    assert part.file == f"{kind}:{message.file_id}"
    assert message.text == "Part 1"
    assert [button["text"] for button in message.buttons] == ["Original", "Repeat"]
    assert message.buttons[0]["url"] == url
    assert harness.files.user_agents <= {"Mozilla/5.0 (compatible; genlock)", "TelegramBot (like TwitterBot)"}


@pytest.mark.parametrize(
    ("content", "type_", "kind", "suffix"),
    [
        (wav, "audio/wav", "audio", ".wav"),
        (short_video, "application/octet-stream", "video", ".mp4"),
        (b"1\n00:00 --> 00:02\nHello", "text/plain", "document", ".txt"),
    ],
)
async def test_an_uploaded_file_is_named_after_its_title(
    harness: Harness, content: bytes | Callable[[], bytes], type_: str, kind: str, suffix: str
) -> None:
    job = await harness.deliver(harness.files.put("05b6e6d1_1", made(content), type_))

    [message] = harness.shown(job)
    assert message.content[kind]["file_name"] == f"Title-of-order-{job.id}{suffix}"


@pytest.mark.parametrize("sound", [(song, MP3), (wav, "audio/wav")])
async def test_an_audio_file_has_a_title_and_a_performer(
    harness: Harness, sound: tuple[Callable[[], bytes], str]
) -> None:
    job = await harness.deliver(harness.files.put("05b6e6d1_1", sound[0](), sound[1]))

    [message] = harness.shown(job)
    assert message.content["audio"]["title"] == f"Title of order {job.id}"
    assert message.content["audio"]["performer"] == "A Model"


async def test_a_wrong_suffix_has_no_effect(harness: Harness) -> None:
    job = await harness.deliver(harness.files.put("image.png", short_video(), PNG))
    [message] = harness.shown(job)
    assert message.kind == "video"


async def test_the_public_bot_api_gets_no_private_urls(remote_harness: Harness) -> None:
    job = await remote_harness.deliver(remote_harness.files.put("a.png", image(), PNG))
    assert job.parts[0].level is Level.BYTES
    assert remote_harness.methods() == ["sendMessage", "editMessageMedia", "sendMessage"]


async def test_a_file_whose_url_telegram_cannot_fetch_is_uploaded(harness: Harness) -> None:
    harness.telegram.state.media.fetched["photo", harness.files.put("a.png", image(), PNG)] = (
        "failed to get HTTP URL content"
    )
    job = await harness.deliver(f"{harness.files.url}/a.png")
    assert job.parts[0].level is Level.BYTES
    assert [message.kind for message in harness.shown(job)] == ["photo"]
    assert harness.uploads() == 1


@pytest.mark.slow
async def test_a_photo_with_too_long_sides_arrives_unchanged_as_a_document(harness: Harness) -> None:
    content = image((9000, 3000))
    job = await harness.deliver(harness.files.put("long.png", content, PNG))
    [message] = harness.shown(job)
    assert (message.kind, job.parts[0].level) == ("document", Level.BYTES)
    assert harness.telegram.state.files.read(message.content["document"]["file_id"]) == content


@pytest.mark.slow
async def test_a_photo_of_too_many_bytes_arrives_unchanged_as_a_document(harness: Harness) -> None:
    content = noise_image((2200, 1900))
    assert len(content) > 10 * 1024 * 1024
    job = await harness.deliver(harness.files.put("noise.png", content, PNG))
    assert ([message.kind for message in harness.shown(job)], job.parts[0].level) == (["document"], Level.BYTES)
    [call] = [call for call in harness.telegram.journal if call.uploaded]
    assert call.uploaded >= len(content)


async def test_a_transparent_image_arrives_as_a_document_and_an_unused_alpha_channel_as_a_photo(
    harness: Harness,
) -> None:
    for alpha, kind in ((255, "photo"), (100, "document")):
        file = io.BytesIO()
        Image.new("RGBA", (300, 200), (200, 30, 30, alpha)).save(file, "PNG")
        job = await harness.deliver(harness.files.put(f"{alpha}.png", file.getvalue(), PNG))
        assert [message.kind for message in harness.shown(job)] == [kind]


async def test_an_image_of_a_model_that_must_stay_exact_arrives_as_a_document(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = FileLabel(title="Larger", performer="A Model", exact=True)
    monkeypatch.setattr(PlainTexts, "label", lambda *_: label)
    content = image()
    job = await harness.deliver(harness.files.put("a.png", content, PNG))
    [message] = harness.shown(job)
    assert message.kind == "document"
    assert harness.telegram.state.files.read(message.content["document"]["file_id"]) == content


async def test_a_photo_that_is_too_narrow_is_sent_as_a_document(harness: Harness) -> None:
    job = await harness.deliver(harness.files.put("line.png", image((2100, 100)), PNG))
    assert ([message.kind for message in harness.shown(job)], job.parts[0].level) == (["document"], Level.BYTES)


async def test_a_damaged_image_is_sent_as_a_document(harness: Harness) -> None:
    job = await harness.deliver(harness.files.put("half.png", image()[:200], PNG))
    assert ([message.kind for message in harness.shown(job)], job.parts[0].level) == (["document"], Level.DOCUMENT)


async def test_a_file_too_large_to_upload_is_shown_as_a_link(harness: Harness) -> None:
    async def huge(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(60 * 1024 * 1024), "Content-Type": MP4})
        await answer.prepare(request)
        await answer.write(b"\0\0\0\x18ftypisom" + b"\0" * 100_000)
        return answer

    job = await harness.deliver(harness.files.serve("video.mp4", huge))
    [message] = harness.shown(job)
    assert (message.kind, job.parts[0].level, job.delivery) == ("text", Level.TEXT, Delivery.DELIVERED)
    assert message.text == "Part 1: open"


async def test_bytes_that_telegram_refuses_as_their_kind_become_a_document(harness: Harness) -> None:
    group = harness.telegram.group("Friends", [harness.ann])
    await group.forbid("photo")
    job = await harness.running(chat=group.id)
    harness.telegram.state.chats[group.id].messages[int(job.placeholder or 0)].content = {"text": "deleted"}
    await harness.ann.delete(int(job.placeholder or 0), chat=group.id)
    job = await harness.end(job, harness.files.put("a.png", image(), PNG))
    assert ([message.kind for message in harness.shown(job)], job.parts[0].level) == (["document"], Level.DOCUMENT)
