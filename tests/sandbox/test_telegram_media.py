"""Media by address, by id, and by content that is not what it was called."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from tests.sandbox.clients import Bytes, Client, Told
from tests.sandbox.samples import PDF, film, moving_picture, picture, sound, voice

FAILED = "failed to get http url content"
WRONG = "wrong type of the web page content"


class House:
    """Serves what it is told to, and counts."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.pages: dict[str, tuple[int, bytes, str]] = {}

    def put(self, path: str, content: bytes, type_: str, status: int = 200) -> str:
        self.pages[path] = (status, content, type_)
        return f"{self.url}/{path}"

    async def serve(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        self.asked.append(path)
        self.agents.add(request.headers.get("User-Agent", ""))
        status, content, type_ = self.pages[path]
        return web.Response(status=status, body=content, content_type=type_)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
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
        ("photo", picture(), "image/png"),
        ("video", film(), "video/mp4"),
        ("animation", moving_picture(), "image/gif"),
        ("audio", sound(), "audio/mpeg"),
        ("voice", voice(), "audio/ogg"),
        ("document", PDF, "application/pdf"),
    ],
)
async def test_every_kind_is_fetched_once_from_its_address(
    client: Client, ann: SimulatedUser, house: House, kind: str, content: bytes, type_: str
) -> None:
    url = house.put(f"file.{kind}", content, type_)
    first = await client.call(f"send{kind.capitalize()}", chat_id=ann.id, **{kind: url})
    again = await client.call(f"send{kind.capitalize()}", chat_id=ann.id, **{kind: url})

    assert kind in first
    assert again[kind] == first[kind]
    assert house.asked == [f"file.{kind}"]
    assert house.agents == {"TelegramBot (like TwitterBot)"}


async def test_a_failure_is_remembered_for_days(client: Client, ann: SimulatedUser, house: House) -> None:
    url = house.put("a.png", b"error code: 1010", "text/plain", status=403)
    with pytest.raises(Told) as told:
        await client.call("sendPhoto", chat_id=ann.id, photo=url)
    house.put("a.png", picture(), "image/png")
    with pytest.raises(Told):
        await client.call("sendPhoto", chat_id=ann.id, photo=url)

    assert told.value.text == FAILED
    assert house.asked == ["a.png"]
    assert "photo" in await client.call("sendPhoto", chat_id=ann.id, photo=f"{url}?fresh=1")


async def test_content_that_changes_is_served_stale(client: Client, ann: SimulatedUser, house: House) -> None:
    url = house.put("a.png", picture(100, 100), "image/png")
    sent = await client.call("sendPhoto", chat_id=ann.id, photo=url, caption="x")
    house.put("a.png", picture(200, 100), "image/png")

    with pytest.raises(Told, match="message is not modified"):
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
        ("photo", picture() + bytes(5_300_000), "image/png", FAILED),
        ("video", bytes(21_000_000), "video/mp4", FAILED),
        ("video", film(), "application/octet-stream", WRONG),
        ("audio", sound(), "text/plain", WRONG),
        ("document", picture(), "image/png", WRONG),
        ("animation", picture(), "image/png", WRONG),
        ("photo", picture(2100, 100), "image/png", "photo_invalid_dimensions"),
    ],
)
async def test_what_does_not_fit_is_not_taken_from_an_address(
    client: Client, ann: SimulatedUser, house: House, kind: str, content: bytes, type_: str, text: str
) -> None:
    url = house.put("file.bin", content, type_)
    with pytest.raises(Told) as told:
        await client.call(f"send{kind.capitalize()}", chat_id=ann.id, **{kind: url})

    assert told.value.text == text


@pytest.mark.parametrize(
    ("url", "text"),
    [("http://127.0.0.1:9/a.png", FAILED), ("gopher://example.org/a.png", "wrong http url specified")],
)
async def test_addresses_that_lead_nowhere(client: Client, ann: SimulatedUser, url: str, text: str) -> None:
    with pytest.raises(Told) as told:
        await client.call("sendPhoto", chat_id=ann.id, photo=url)
    assert told.value.text == text


async def test_a_long_voice_from_an_address_is_a_file(client: Client, ann: SimulatedUser, house: House) -> None:
    url = house.put("long.ogg", voice() + bytes(1_100_000), "audio/ogg")
    assert "document" in await client.call("sendVoice", chat_id=ann.id, voice=url)


async def test_a_photo_is_never_a_document_and_a_document_never_a_photo(client: Client, ann: SimulatedUser) -> None:
    photo = (await client.call("sendPhoto", chat_id=ann.id, photo=Bytes(picture(), "x.png")))["photo"][-1]["file_id"]
    paper = (await client.call("sendDocument", chat_id=ann.id, document=Bytes(PDF, "x.pdf")))["document"]["file_id"]

    with pytest.raises(Told) as told:
        await client.call("sendDocument", chat_id=ann.id, document=photo)
    assert told.value.text == "can't use file of type photo as document"
    with pytest.raises(Told) as told:
        await client.call("sendPhoto", chat_id=ann.id, photo=paper)
    assert told.value.text == "can't use file of type document as photo"


async def test_a_film_sent_as_a_file_id_of_a_document_stays_a_film(client: Client, ann: SimulatedUser) -> None:
    film_id = (await client.call("sendVideo", chat_id=ann.id, video=Bytes(film(), "x.mp4")))["video"]["file_id"]
    assert "video" in await client.call("sendDocument", chat_id=ann.id, document=film_id)


@pytest.mark.parametrize(
    ("method", "given", "kind"),
    [
        ("sendDocument", {"document": Bytes(moving_picture(), "x.gif")}, "animation"),
        (
            "sendDocument",
            {"document": Bytes(moving_picture(), "x.gif"), "disable_content_type_detection": True},
            "document",
        ),
        ("sendDocument", {"document": Bytes(picture(), "x.png")}, "document"),
        ("sendAudio", {"audio": Bytes(PDF, "x.mp3")}, "document"),
        ("sendVoice", {"voice": Bytes(PDF, "x.ogg")}, "document"),
        ("sendAnimation", {"animation": Bytes(film(), "x.mp4")}, "animation"),
        ("sendPhoto", {"photo": Bytes(picture(300, 200, "WEBP"), "x.webp")}, "photo"),
    ],
)
async def test_telegram_looks_at_the_content(
    client: Client, ann: SimulatedUser, method: str, given: dict[str, Any], kind: str
) -> None:
    sent = await client.call(method, chat_id=ann.id, **given)
    assert kind in sent
    assert ann.last.kind == kind


async def test_a_cut_off_picture_is_found_out(client: Client, ann: SimulatedUser) -> None:
    with pytest.raises(Told) as told:
        await client.call("sendPhoto", chat_id=ann.id, photo=Bytes(picture()[:2000], "x.png"))
    assert told.value.text == "image_process_failed"
