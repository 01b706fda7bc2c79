"""Media by URL, by file id, and content that is not what its name says."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from genlock.sandbox.telegram.probe import probe_content
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from tests.sandbox.client_libraries import ApiFailure, Bytes, Client
from tests.sandbox.sample_media import PDF, animated_gif, picture, sound, video, voice

FAILED = "failed to get http url content"
WRONG = "wrong type of the web page content"


class FileServer:
    """A file server that counts requests."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.pages: dict[str, tuple[int, bytes, str, str]] = {}

    def put(self, path: str, content: bytes, type_: str, status: int = 200, location: str = "") -> str:
        self.pages[path] = (status, content, type_, location)
        return f"{self.url}/{path}"

    async def serve(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        self.asked.append(path)
        self.agents.add(request.headers.get("User-Agent", ""))
        status, content, type_, location = self.pages[path]
        headers = {"Location": location} if location else {}
        return web.Response(status=status, body=content, content_type=type_, headers=headers)


def made(content: bytes | Callable[[], bytes]) -> bytes:
    """Encode a file in the test that needs it: a parameter is made whenever the tests are collected."""
    return content() if callable(content) else content


@pytest.fixture
async def file_server() -> AsyncIterator[FileServer]:
    made = FileServer()
    app = web.Application()
    app.router.add_get("/{path:.+}", made.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest.mark.parametrize(
    ("kind", "content", "type_"),
    [
        ("photo", picture, "image/png"),
        ("video", video, "video/mp4"),
        ("animation", animated_gif, "image/gif"),
        ("audio", sound, "audio/mpeg"),
        ("voice", voice, "audio/ogg"),
        ("document", PDF, "application/pdf"),
    ],
)
async def test_every_kind_of_media_is_fetched_once_from_its_url(
    client: Client,
    ann: SimulatedUser,
    file_server: FileServer,
    kind: str,
    content: bytes | Callable[[], bytes],
    type_: str,
) -> None:
    url = file_server.put(f"file.{kind}", made(content), type_)
    first = await client.call(f"send{kind.capitalize()}", chat_id=ann.id, **{kind: url})
    again = await client.call(f"send{kind.capitalize()}", chat_id=ann.id, **{kind: url})

    assert kind in first
    assert again[kind] == first[kind]
    assert file_server.asked == [f"file.{kind}"]
    assert file_server.agents == {"TelegramBot (like TwitterBot)"}


async def test_a_failed_fetch_is_cached(client: Client, ann: SimulatedUser, file_server: FileServer) -> None:
    url = file_server.put("a.png", b"error code: 1010", "text/plain", status=403)
    with pytest.raises(ApiFailure) as failure:
        await client.call("sendPhoto", chat_id=ann.id, photo=url)
    file_server.put("a.png", picture(), "image/png")
    with pytest.raises(ApiFailure):
        await client.call("sendPhoto", chat_id=ann.id, photo=url)

    assert failure.value.text == FAILED
    assert file_server.asked == ["a.png"]
    assert "photo" in await client.call("sendPhoto", chat_id=ann.id, photo=f"{url}?fresh=1")


async def test_changed_content_at_a_url_is_not_fetched_again(
    client: Client, ann: SimulatedUser, file_server: FileServer
) -> None:
    url = file_server.put("a.png", picture(100, 100), "image/png")
    sent = await client.call("sendPhoto", chat_id=ann.id, photo=url, caption="x")
    file_server.put("a.png", picture(200, 100), "image/png")

    with pytest.raises(ApiFailure, match="message is not modified"):
        await client.call(
            "editMessageMedia",
            chat_id=ann.id,
            message_id=sent["message_id"],
            media={"type": "photo", "media": url, "caption": "x"},
        )


@pytest.mark.parametrize(
    ("kind", "content", "type_", "text"),
    [
        ("photo", b"<html>", "text/html", WRONG),
        ("photo", PDF, "image/png", WRONG),
        ("photo", lambda: picture() + bytes(5_300_000), "image/png", FAILED),
        ("video", lambda: bytes(21_000_000), "video/mp4", FAILED),
        ("video", video, "application/octet-stream", WRONG),
        ("audio", sound, "text/plain", WRONG),
        ("document", picture, "image/png", WRONG),
        ("animation", picture, "image/png", WRONG),
        ("photo", lambda: picture(2100, 100), "image/png", "photo_invalid_dimensions"),
    ],
)
async def test_a_url_whose_content_has_the_wrong_type_is_refused(
    client: Client,
    ann: SimulatedUser,
    file_server: FileServer,
    kind: str,
    content: bytes | Callable[[], bytes],
    type_: str,
    text: str,
) -> None:
    url = file_server.put("file.bin", made(content), type_)
    with pytest.raises(ApiFailure) as failure:
        await client.call(f"send{kind.capitalize()}", chat_id=ann.id, **{kind: url})

    assert failure.value.text == text


@pytest.mark.parametrize(
    ("url", "text"),
    [("http://127.0.0.1:9/a.png", FAILED), ("gopher://example.org/a.png", "wrong http url specified")],
)
async def test_unreachable_urls_are_refused(client: Client, ann: SimulatedUser, url: str, text: str) -> None:
    with pytest.raises(ApiFailure) as failure:
        await client.call("sendPhoto", chat_id=ann.id, photo=url)
    assert failure.value.text == text


async def test_a_large_voice_file_from_a_url_becomes_a_document(
    client: Client, ann: SimulatedUser, file_server: FileServer
) -> None:
    url = file_server.put("long.ogg", voice() + bytes(1_100_000), "audio/ogg")
    assert "document" in await client.call("sendVoice", chat_id=ann.id, voice=url)


async def test_file_ids_of_photos_and_documents_are_not_interchangeable(client: Client, ann: SimulatedUser) -> None:
    photo = (await client.call("sendPhoto", chat_id=ann.id, photo=Bytes(picture(), "x.png")))["photo"][-1]["file_id"]
    paper = (await client.call("sendDocument", chat_id=ann.id, document=Bytes(PDF, "x.pdf")))["document"]["file_id"]

    with pytest.raises(ApiFailure) as failure:
        await client.call("sendDocument", chat_id=ann.id, document=photo)
    assert failure.value.text == "can't use file of type photo as document"
    with pytest.raises(ApiFailure) as failure:
        await client.call("sendPhoto", chat_id=ann.id, photo=paper)
    assert failure.value.text == "can't use file of type document as photo"


async def test_a_video_sent_by_its_document_file_id_stays_a_video(client: Client, ann: SimulatedUser) -> None:
    video_id = (await client.call("sendVideo", chat_id=ann.id, video=Bytes(video(), "x.mp4")))["video"]["file_id"]
    assert "video" in await client.call("sendDocument", chat_id=ann.id, document=video_id)


@pytest.mark.parametrize(
    ("method", "given", "kind"),
    [
        ("sendDocument", {"document": Bytes(animated_gif(), "x.gif")}, "animation"),
        (
            "sendDocument",
            {"document": Bytes(animated_gif(), "x.gif"), "disable_content_type_detection": True},
            "document",
        ),
        ("sendDocument", {"document": Bytes(picture(), "x.png")}, "document"),
        ("sendAudio", {"audio": Bytes(PDF, "x.mp3")}, "document"),
        ("sendVoice", {"voice": Bytes(PDF, "x.ogg")}, "document"),
        ("sendAnimation", lambda: {"animation": Bytes(video(), "x.mp4")}, "animation"),
        ("sendPhoto", {"photo": Bytes(picture(300, 200, "WEBP"), "x.webp")}, "photo"),
    ],
)
async def test_the_kind_depends_on_the_content(
    client: Client, ann: SimulatedUser, method: str, given: dict[str, Any] | Callable[[], dict[str, Any]], kind: str
) -> None:
    sent = await client.call(method, chat_id=ann.id, **(given() if callable(given) else given))
    assert kind in sent
    assert ann.last.kind == kind


async def test_a_moving_gif_becomes_a_silent_video(client: Client, ann: SimulatedUser) -> None:
    shown = (await client.call("sendAnimation", chat_id=ann.id, animation=Bytes(animated_gif(), "x.gif")))["animation"]

    assert (shown["file_name"], shown["mime_type"], shown["duration"]) == ("x.gif.mp4", "video/mp4", 1)
    assert (shown["width"], shown["height"]) == (64, 48)
    film = probe_content(await client.download(shown["file_id"]))
    assert (film.type, film.sound) == ("video/mp4", False)


async def test_a_fetched_file_is_named_after_the_last_redirect(
    client: Client, ann: SimulatedUser, file_server: FileServer
) -> None:
    file_server.put("paper.pdf", PDF, "application/pdf")
    short = file_server.put("short.er", b"", "text/plain", status=302, location="/paper.pdf")

    sent = await client.call("sendDocument", chat_id=ann.id, document=short)
    assert sent["document"]["file_name"] == "paper.pdf"


async def test_a_truncated_image_is_refused(client: Client, ann: SimulatedUser) -> None:
    with pytest.raises(ApiFailure) as failure:
        await client.call("sendPhoto", chat_id=ann.id, photo=Bytes(picture()[:2000], "x.png"))
    assert failure.value.text == "image_process_failed"


def tagged(title: str, performer: str) -> bytes:
    """Return a song with ID3 tags."""
    frames = b""
    for name, text in ((b"TIT2", title), (b"TPE1", performer)):
        frames += name + (len(text) + 1).to_bytes(4) + bytes(3) + text.encode()
    assert len(frames) < 128
    return b"ID3\3\0\0" + len(frames).to_bytes(4) + frames + sound()


async def test_a_song_has_the_title_and_performer_of_its_tags_unless_the_bot_gives_them(
    client: Client, ann: SimulatedUser
) -> None:
    song = Bytes(tagged("Beep", "Robot"), "song.mp3")
    sent = await client.call("sendAudio", chat_id=ann.id, audio=song)
    assert (sent["audio"]["title"], sent["audio"]["performer"]) == ("Beep", "Robot")
    sent = await client.call("sendAudio", chat_id=ann.id, audio=song, title="Boop")
    assert (sent["audio"]["title"], sent["audio"]["performer"]) == ("Boop", "Robot")
    sent = await client.call("sendAudio", chat_id=ann.id, audio=Bytes(sound(), "song.mp3"))
    assert not {"title", "performer"} & sent["audio"].keys()
