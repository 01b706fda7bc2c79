"""No log line shows a secret, whether ours, of a library or in a traceback."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import aiohttp
import httpx
import pytest

from genlock.channels.telegram.caller import make_bot
from genlock.domain.api_key import SHOWN_LENGTH, make_secret
from genlock.domain.events import Event
from genlock.log import LogObserver, Mask, set_up_logging

TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"
KIE_KEY = "3f9a7c2e51b84d06a1c2d3e4f5a6b7c8"
HMAC_KEY = 'whsec "quoted" é/+='
PASSWORD = "p@ss:w0rd/№"
SECRETS = [TOKEN, KIE_KEY, HMAC_KEY, PASSWORD]


@pytest.fixture(params=[False, True], ids=["human", "json"])
def lines(request: pytest.FixtureRequest) -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    set_up_logging(Mask(SECRETS), as_json=request.param, stream=stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("genlock").setLevel(logging.NOTSET)


def check(lines: io.StringIO, count: int | None = None) -> list[str]:
    logging.getLogger().handlers[0].flush()
    output = lines.getvalue()
    for secret in SECRETS:
        for form in (secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
            assert form not in output
    assert "AAF0dQ" not in output
    found = output.splitlines()
    assert found if count is None else len(found) == count
    return found


def observer() -> LogObserver:
    handler = logging.getLogger().handlers[0]
    return LogObserver(logging.getLogger("genlock"), as_json=handler.formatter._as_json)  # type: ignore[union-attr]


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_an_event_is_masked(lines: io.StringIO, secret: str) -> None:
    observer().event(Event.STAGE_ERROR, secret, error=RuntimeError(f"at {secret}!"), text=secret, number=1)
    [line] = check(lines, 1)
    assert "***" in line
    assert "STAGE_ERROR" in line


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_in_a_library_line_or_a_traceback_is_masked(lines: io.StringIO, secret: str) -> None:
    logging.getLogger("httpx").warning("HTTP Request: POST %s", f"https://api.telegram.org/bot{secret}/getMe")
    try:
        int(secret)
    except ValueError:
        logging.getLogger("asyncio").exception("Task exception was never retrieved %r", {"secret": secret})
    assert "ValueError" in "".join(check(lines))


def test_an_unknown_token_is_masked_by_its_form(lines: io.StringIO) -> None:
    other = "998877665:BBF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"
    observer().event(Event.STAGE_ERROR, error=f"https://x/bot{other}/getMe https://x/bot{other.replace(':', '%3A')}")
    assert "BBF0dQ" not in lines.getvalue()


def test_a_secret_that_is_added_later_is_masked(lines: io.StringIO) -> None:
    formatter = logging.getLogger().handlers[0].formatter
    formatter._mask.add("made-later-secret")  # type: ignore[union-attr]
    observer().event(Event.WEBHOOK_SET, url="made-later-secret")
    assert "made-later" not in lines.getvalue()


def test_a_library_line_has_the_form_of_our_lines(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").error("two\nlines")
    [line] = check(lines, 1)
    assert "LOG" in line
    if line.startswith("{"):
        assert json.loads(line)["text"] == "two\nlines"


async def test_errors_of_http_clients_do_not_show_the_token(lines: io.StringIO) -> None:
    url = f"http://127.0.0.1:1/bot{TOKEN}/getMe"
    watch = observer()
    async with aiohttp.ClientSession() as session:
        for bad in (url, f"http://[/bot{TOKEN}"):
            try:
                await session.get(bad)
            except (aiohttp.ClientError, ValueError) as error:
                watch.event(Event.STAGE_ERROR, error=repr(error))
                logging.getLogger("x").exception("no")
    async with httpx.AsyncClient() as client:
        try:
            await client.get(url)
        except httpx.HTTPError as error:
            watch.event(Event.STAGE_ERROR, error=f"{error!r} {error.request.url}")
            logging.getLogger("x").exception("no")
    check(lines)


async def test_errors_of_the_bot_library_do_not_show_the_token(lines: io.StringIO) -> None:
    bot = make_bot(TOKEN, "http://127.0.0.1:1")
    watch = observer()
    try:
        await bot.get_me()
    except Exception as error:
        watch.event(Event.STAGE_ERROR, error=repr(error), cause=repr(error.__cause__))
        logging.getLogger("telegram").exception("no %s", bot)
    for request in bot._request:
        await request.shutdown()
    check(lines)


async def test_lines_of_one_iteration_of_the_loop_are_written_together_and_in_order(lines: io.StringIO) -> None:
    for number in range(3):
        observer().event(Event.READY, number=number)
    assert lines.getvalue() == ""
    await asyncio.sleep(0)
    assert [str(number) in line for number, line in enumerate(check(lines, 3))] == [True] * 3
    observer().event(Event.STOPPED)
    logging.getLogger().handlers[0].flush()
    assert "STOPPED" in lines.getvalue()


def test_a_short_word_is_not_masked() -> None:
    assert Mask(["a", "kie"])("a kie task") == "a kie task"


def test_an_api_key_is_masked_except_for_the_start_that_lists_show(lines: io.StringIO) -> None:
    secret = make_secret(bytes)
    observer().event(Event.STAGE_ERROR, error=RuntimeError(f"at {secret}!"))
    logging.getLogger("library").error("Authorization: Bearer %s", secret)

    found = check(lines, 2)
    assert all(secret[:SHOWN_LENGTH] + "*" in line and secret not in line for line in found)
