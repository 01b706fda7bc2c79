import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.sandbox.sample_media import picture


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def base(telegram: TelegramSimulator) -> str:
    return f"{telegram.url}/bot{telegram.token}"


async def read_answer(response: aiohttp.ClientResponse) -> tuple[int, Any]:
    return response.status, await response.json()


async def test_arguments_may_come_as_query_form_json_or_multipart(
    http: aiohttp.ClientSession, base: str, ann: SimulatedUser
) -> None:
    given = {"chat_id": ann.id, "text": "hi", "disable_notification": True}
    plain = {name: str(value) for name, value in given.items()}
    form = aiohttp.FormData()
    form._is_multipart = True
    for name, value in plain.items():
        form.add_field(name, value)
    for shape in ({"params": plain}, {"data": plain}, {"json": given}, {"data": form}):
        async with http.post(f"{base}/sendMessage", **shape) as response:
            assert (await read_answer(response))[1]["ok"] is True
    async with http.get(f"{base}/sendmessage", params=plain) as response:
        assert (await read_answer(response))[1]["result"]["text"] == "hi"
    async with http.get(f"{base}/test/SENDMESSAGE", params=plain) as response:
        assert (await read_answer(response))[1]["ok"] is True

    assert len(ann.messages) == 6
    assert ann.notifications == []


async def test_a_file_comes_in_its_own_field_or_attached(
    http: aiohttp.ClientSession, base: str, ann: SimulatedUser
) -> None:
    own = aiohttp.FormData({"chat_id": str(ann.id)})
    own.add_field("photo", picture(), filename="a.png")
    attached = aiohttp.FormData({"chat_id": str(ann.id), "photo": "attach://there"})
    attached.add_field("there", picture(), filename="a.png")
    missing = aiohttp.FormData({"chat_id": str(ann.id), "photo": "attach://nowhere"})
    answers = []
    for form in (own, attached, missing):
        async with http.post(f"{base}/sendPhoto", data=form) as response:
            answers.append((await read_answer(response))[0])

    assert answers == [200, 200, 400]


async def test_errors_have_the_real_shape(http: aiohttp.ClientSession, base: str, telegram: TelegramSimulator) -> None:
    asked = [
        (f"{base}/sendMessage?chat_id=1&text=x", 400, "Bad Request: chat not found"),
        (f"{base}/sendMessage?text=x", 400, "Bad Request: chat_id is empty"),
        (f"{base}/dance", 404, "Not Found: method not found"),
        (f"{telegram.url}/bot42:wrong/getMe", 401, "Unauthorized"),
        (f"{telegram.url}/botnonsense/getMe", 404, "Not Found"),
        (f"{telegram.url}/file/bot{telegram.token}/photos/no.jpg", 404, "Not Found"),
        (f"{telegram.url}/file/bot{telegram.token}/../../etc/passwd", 404, None),
    ]
    for url, code, text in asked:
        async with http.get(url) as response:
            assert response.status == code
            if text is not None:
                assert await response.json() == {"ok": False, "error_code": code, "description": text}


async def test_error_429_also_sets_the_retry_after_header(
    http: aiohttp.ClientSession, base: str, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    telegram.faults.once(Fault.TOO_MANY, seconds=17)
    async with http.post(f"{base}/sendMessage", json={"chat_id": ann.id, "text": "x"}) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "17")
        assert await response.json() == {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 17",
            "parameters": {"retry_after": 17},
        }


async def test_uploads_over_the_size_limits_are_refused(
    http: aiohttp.ClientSession, base: str, ann: SimulatedUser
) -> None:
    for size, kind, code, text in (
        (
            10_485_761,
            "photo",
            400,
            "file of size 10485761 bytes is too big for a photo; the maximum size is 10485760 bytes",
        ),
        (54_000_000, "document", 413, "Request Entity Too Large"),
        (0, "document", 400, "file must be non-empty"),
    ):
        form = aiohttp.FormData({"chat_id": str(ann.id)})
        form.add_field(kind, io.BytesIO(bytes(size)), filename="big.bin")
        async with http.post(f"{base}/send{kind.capitalize()}", data=form) as response:
            status, said = await read_answer(response)
        assert (status, said["error_code"], said["description"].removeprefix("Bad Request: ")) == (code, code, text)
    assert ann.messages == []


async def test_downloads_have_their_own_size_limit(http: aiohttp.ClientSession, base: str, ann: SimulatedUser) -> None:
    form = aiohttp.FormData({"chat_id": str(ann.id)})
    form.add_field("document", io.BytesIO(bytes(20_971_521)), filename="big.bin")
    async with http.post(f"{base}/sendDocument", data=form) as response:
        file_id = (await response.json())["result"]["document"]["file_id"]
    async with http.get(f"{base}/getFile", params={"file_id": file_id}) as response:
        assert (await response.json())["description"] == "Bad Request: file is too big"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("voice_note", 'can\'t parse InputMedia: type "voice_note" is not allowed'),
        ("sticker", 'can\'t parse InputMedia: type "sticker" is unsupported'),
    ],
)
async def test_an_edit_to_an_unsupported_media_type_is_refused(
    http: aiohttp.ClientSession, base: str, ann: SimulatedUser, kind: str, text: str
) -> None:
    async with http.post(f"{base}/sendMessage", json={"chat_id": ann.id, "text": "x"}) as response:
        number = (await response.json())["result"]["message_id"]
    given = {"chat_id": ann.id, "message_id": number, "media": {"type": kind, "media": "x"}}
    async with http.post(f"{base}/editMessageMedia", json=given) as response:
        assert (await response.json())["description"] == f"Bad Request: {text}"


@pytest.mark.parametrize("body", ["{", "[]", '"x"'])
async def test_a_json_body_that_is_not_an_object_is_refused(http: aiohttp.ClientSession, base: str, body: str) -> None:
    async with http.post(f"{base}/sendMessage", data=body, headers={"Content-Type": "application/json"}) as response:
        assert (response.status, await response.read()) == (400, b""), "the Bot API has not seen it"


async def test_a_keyboard_that_is_not_json_is_refused(
    http: aiohttp.ClientSession, base: str, ann: SimulatedUser
) -> None:
    for markup, text in (
        ("{", "can't parse reply keyboard markup JSON object"),
        ("[1]", "object expected as reply markup"),
        (
            json.dumps({"inline_keyboard": [[{"text": "x"}]]}),
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
    ):
        given = {"chat_id": str(ann.id), "text": "x", "reply_markup": markup}
        async with http.post(f"{base}/sendMessage", data=given) as response:
            assert (await response.json())["description"] == f"Bad Request: {text}"


@pytest.mark.parametrize(
    ("method", "given", "text"),
    [
        ("deleteMessage", {"message_id": 1}, "chat identifier is not specified"),
        ("deleteMessage", {"chat_id": 5}, "message identifier is not specified"),
        ("sendMessage", {"text": "x"}, "chat_id is empty"),
        ("forwardMessage", {"chat_id": "ANN", "message_id": 1}, 'parameter "from_chat_id" is required'),
        ("sendContact", {"chat_id": "ANN", "first_name": "Bob"}, 'parameter "phone_number" is required'),
        ("sendLocation", {"chat_id": "ANN", "latitude": 1}, "longitude is empty"),
        ("sendVideoNote", {"chat_id": "ANN"}, "there is no video note in the request"),
        ("setChatMenuButton", {"menu_button": {"text": "x"}}, "can't parse menu button: Can't find field \"type\""),
        (
            "setChatMenuButton",
            {"menu_button": {"type": "web_app", "text": "x"}},
            "can't parse menu button: Can't find field \"web_app\"",
        ),
        ("getMyCommands", {"scope": {"type": "chat"}}, "can't parse BotCommandScope: Empty chat_id specified"),
        (
            "getMyCommands",
            {"scope": {"type": "chat_member", "chat_id": "ANN"}},
            "can't parse BotCommandScope: Invalid user_id specified",
        ),
    ],
)
async def test_a_missing_argument_is_named(
    http: aiohttp.ClientSession, base: str, ann: SimulatedUser, method: str, given: dict[str, Any], text: str
) -> None:
    filled = {name: ann.id if value == "ANN" else value for name, value in given.items()}
    async with http.post(f"{base}/{method}", json=filled) as response:
        assert (await response.json())["description"] == f"Bad Request: {text}"


async def test_a_message_for_a_mini_app_can_be_prepared(
    http: aiohttp.ClientSession, base: str, telegram: TelegramSimulator, ann: SimulatedUser
) -> None:
    given = {"user_id": ann.id, "result": {"type": "article", "id": "1", "title": "x"}}
    async with http.post(f"{base}/savePreparedInlineMessage", json=given) as response:
        made = (await response.json())["result"]
    assert made["id"]
    assert made["expiration_date"] > telegram.state.now()
    async with http.post(f"{base}/savePreparedInlineMessage", json=given | {"user_id": 1}) as response:
        assert (await response.json())["description"] == "Bad Request: user not found"
