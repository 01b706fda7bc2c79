"""The HTTP client of the Bot API, against a real server."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from telegram import InputFile
from telegram.error import NetworkError, TimedOut

from genlock.channels.telegram.caller import make_bot
from genlock.channels.telegram.direct_calls import DirectCalls
from genlock.channels.telegram.errors import classify_error
from genlock.channels.telegram.http import HttpRequest
from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown
from genlock.ports.call_fence import CallFenced, calls_while

CONTENT = b"x" * 200_000


class BotApi:
    """Answers every call; `answer` holds answers back while it is not set."""

    def __init__(self) -> None:
        self.lengths: list[int | None] = []
        #: calls whose body arrived whole
        self.done = 0
        self.files: list[tuple[str, bytes]] = []
        #: the parameters of calls that sent them as JSON
        self.json: list[Any] = []
        self.called = asyncio.Event()
        self.answer = asyncio.Event()
        self.answer.set()
        #: status and body to answer with instead
        self.reply: tuple[int, str] | None = None

    async def handle(self, request: web.Request) -> web.Response:
        self.called.set()
        self.lengths.append(request.content_length)
        if request.content_type == "application/json":
            self.json.append(await request.json())
        for value in (await request.post()).values():
            if isinstance(value, web.FileField):
                self.files.append((value.filename, value.file.read()))
        await self.answer.wait()
        self.done += 1
        if self.reply is not None:
            return web.Response(status=self.reply[0], text=self.reply[1])
        chat = {"id": 1, "type": "private"}
        return web.json_response({"ok": True, "result": {"message_id": 7, "date": 0, "chat": chat}})


@pytest.fixture
async def api() -> AsyncIterator[tuple[BotApi, str]]:
    found = BotApi()
    app = web.Application(client_max_size=2**20)
    app.router.add_post("/{call:.*}", found.handle)
    async with TestServer(app) as server:
        yield found, str(server.make_url("/"))
        found.answer.set()


async def test_the_parameters_of_the_frequent_calls_are_sent_as_json(api: tuple[BotApi, str]) -> None:
    server, url = api
    bot = make_bot("1:t", url)
    markup = {"inline_keyboard": [[{"text": "Повтор & ещё", "callback_data": "a:1"}]]}
    await DirectCalls(bot).send_message(chat_id=-5, text="5 < 7 \ud83d", message_thread_id=None, reply_markup=markup)
    assert server.json == [{"chat_id": -5, "text": "5 < 7 \ud83d", "reply_markup": markup}]
    await _close(bot)


async def test_a_file_is_sent_with_its_length_and_can_be_sent_again(api: tuple[BotApi, str]) -> None:
    server, url = api
    bot = make_bot("1:t", url)
    file = io.BytesIO(CONTENT)
    upload = InputFile(file, filename="clip.mp4", attach=True, read_file_handle=False)
    for _ in range(2):
        assert (await bot.send_document(1, upload)).message_id == 7
    await _close(bot)

    assert server.files == [("clip.mp4", CONTENT)] * 2
    assert all(length is not None and length > len(CONTENT) for length in server.lengths)
    assert not file.closed


async def test_a_refused_connection_means_that_nothing_was_sent(unused_tcp_port: int) -> None:
    bot = make_bot("1:t", f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(NetworkError) as error:
        await bot.send_message(1, "x")
    await _close(bot)

    assert type(classify_error(error.value)) is ChannelBusy
    assert "1:t" not in f"{error.value!r} {error.value.__cause__!r}"


async def test_a_call_that_gets_no_connection_from_the_pool_was_not_sent(
    api: tuple[BotApi, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, url = api
    monkeypatch.setattr(HttpRequest, "pool_seconds", 0.05)
    monkeypatch.setattr(HttpRequest, "connect_seconds", 0.05)
    request = HttpRequest(connections=1, read_seconds=20.0, trust_env=False)
    server.answer.clear()
    first = asyncio.create_task(request.post(url + "bot1:t/getMe"))
    await server.called.wait()

    with pytest.raises(TimedOut) as error:
        await request.post(url + "bot1:t/getMe")
    assert type(classify_error(error.value)) is ChannelBusy

    server.answer.set()
    await first
    await request.shutdown()


async def test_after_a_read_time_out_the_outcome_is_unknown(api: tuple[BotApi, str]) -> None:
    server, url = api
    server.answer.clear()
    bot = make_bot("1:t", url)
    with pytest.raises(TimedOut) as error:
        await bot.send_message(1, "x", read_timeout=0.05)
    await _close(bot)

    assert type(classify_error(error.value)) is ChannelOutcomeUnknown
    assert len(server.lengths) == 1


async def test_a_call_of_an_instance_that_was_silent_is_not_sent(api: tuple[BotApi, str]) -> None:
    server, url = api
    bot = make_bot("1:t", url)
    with calls_while(lambda: False), pytest.raises(NetworkError) as error:
        await bot.send_message(1, "x")
    await _close(bot)
    assert isinstance(classify_error(error.value), CallFenced)
    assert server.lengths == []


@pytest.mark.filterwarnings("ignore:Unclosed file:ResourceWarning")  # aiohttp's server drops the half of the file
async def test_a_call_of_an_instance_that_was_silent_while_it_waited_for_a_connection_is_not_sent(
    api: tuple[BotApi, str],
) -> None:
    """Neither a text nor the rest of a file is written, so that Telegram cannot do the call."""
    server, url = api
    upload = InputFile(io.BytesIO(CONTENT), filename="clip.mp4", attach=True, read_file_handle=False)
    for answers, content in (((True, False), "x"), ((True, True, False), upload)):
        bot, asked = make_bot("1:t", url), iter(answers)
        with calls_while(partial(next, asked)), pytest.raises(NetworkError) as error:
            await (bot.send_message(1, content) if isinstance(content, str) else bot.send_document(1, content))
        assert isinstance(classify_error(error.value), CallFenced)
        assert list(asked) == []
        await _close(bot)
    assert server.files == []
    assert server.done == 0


REFUSED = {"ok": False, "error_code": 400, "description": "Bad Request: chat not found"}
PAGE = "<html><title>Forbidden</title></html>"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, REFUSED, "RecipientUnreachable"),
        (200, REFUSED, "RecipientUnreachable"),
        (200, {"ok": False, "error_code": 429, "parameters": {"retry_after": 5}}, "RateLimited"),
        (429, {"ok": False, "error_code": 429, "parameters": {"retry_after": 5}}, "RateLimited"),
        (400, {"ok": False, "error_code": 400, "parameters": {"migrate_to_chat_id": -1005}}, "GroupMigrated"),
        (401, {"ok": False, "error_code": 401, "description": "Unauthorized"}, "TokenRefused"),
        (404, {"ok": False, "error_code": 404, "description": "Not Found"}, "TokenRefused"),
        (404, {"ok": False, "error_code": 404, "description": "Not Found: method not found"}, "CallInvalid"),
        (409, {"ok": False, "error_code": 409, "description": "Conflict: terminated by setWebhook"}, "ChannelBusy"),
        (413, {"ok": False, "error_code": 413, "description": "Request Entity Too Large"}, "LevelRefused"),
        (421, {"ok": False, "error_code": 421, "description": "Misdirected Request: x"}, "TokenRefused"),
        (500, {"ok": False, "error_code": 500, "description": "Internal Server Error: x"}, "ChannelOutcomeUnknown"),
        (403, {"ok": False, "error_code": 403, "description": "Forbidden: x"}, "RecipientUnreachable"),
        (403, {"message": "Forbidden"}, "ChannelBusy"),
        (403, PAGE, "ChannelBusy"),
        (413, PAGE, "LevelRefused"),
        (413, "", "LevelRefused"),
        (400, "", "LevelRefused"),
        (429, PAGE, "RateLimited"),
        (502, PAGE, "ChannelOutcomeUnknown"),
        (302, "", "ChannelOutcomeUnknown"),
        (200, PAGE, "ChannelOutcomeUnknown"),
        (200, "", "ChannelOutcomeUnknown"),
        (200, '{"ok": true, "result": {"mess', "ChannelOutcomeUnknown"),
        (200, [], "ChannelOutcomeUnknown"),
        (200, {"ok": True}, "ChannelOutcomeUnknown"),
        (200, {"ok": False}, "ChannelOutcomeUnknown"),
        (500, {"ok": True, "result": True}, "ChannelOutcomeUnknown"),
    ],
    ids=repr,
)
async def test_an_edit_is_done_only_if_the_bot_api_says_so(
    api: tuple[BotApi, str], status: int, body: Any, error: str
) -> None:
    server, url = api
    server.reply = status, body if isinstance(body, str) else json.dumps(body)
    bot = make_bot("1:t", url)
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever it is, it must be classified
        await DirectCalls(bot).edit_message_text(chat_id=1, message_id=7, text="x")
    assert type(classify_error(raised.value)).__name__ == error
    with pytest.raises(Exception) as raised:  # noqa: PT011 - as above
        await bot.send_document(1, io.BytesIO(b"x"))
    assert type(classify_error(raised.value)).__name__ == error
    await _close(bot)


@pytest.mark.parametrize("reply", ['{"ok":true,"result":true}', ' {"result": true, "ok": true}'], ids=repr)
async def test_an_edit_is_done_however_the_answer_is_written(api: tuple[BotApi, str], reply: str) -> None:
    server, url = api
    server.reply = 200, reply
    bot = make_bot("1:t", url)
    assert (await DirectCalls(bot).edit_message_text(chat_id=1, message_id=7, text="x")).message_id == 7
    await _close(bot)


async def _close(bot: Any) -> None:
    for request in bot._request:
        await request.shutdown()
