"""The server: connections that bring no request are closed, the others are served."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from genlock.web import server
from genlock.web.server import make_web, serving

GET = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 0.3


class Slow:
    """Takes longer than one may take to ask."""

    def routes(self) -> list[Route]:
        async def answer(_: Request) -> PlainTextResponse:
            await asyncio.sleep(3 * SECONDS)
            return PlainTextResponse("served")

        return [Route("/slow", answer, methods=["GET", "POST"])]


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(server, "HEAD_SECONDS", SECONDS)
    monkeypatch.setattr(server, "BODY_SECONDS", SECONDS)
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 5)
    async with serving(make_web([Slow()]), "127.0.0.1", 0) as url:
        yield int(url.rpartition(":")[2])


async def say(port: int, *pieces: bytes) -> bytes:
    """What the server says until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /slow HTTP/1.1\r\nHost: x\r\nA: ",
        b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
    ],
)
async def test_who_brings_no_whole_request_is_closed(port: int, said: bytes) -> None:
    assert b"served" not in await say(port, said)


async def test_who_trickles_is_closed_too(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET[:-2])
    closed = asyncio.create_task(reader.read())
    async with asyncio.timeout(20):
        while not closed.done():
            writer.write(b"A: b\r\n")
            await asyncio.wait([closed], timeout=0.05)
    assert isinstance(closed.exception(), ConnectionError) or closed.result() == b""
    writer.close()


async def test_a_request_that_takes_long_to_answer_is_answered_and_the_next_one_too(port: int) -> None:
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")
    assert (await say(port, GET, close)).count(b"served") == 2


async def test_idle_connections_do_not_keep_out_others_for_long(port: int) -> None:
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")
    assert b"503" in await say(port, close), "there is no room"
    async with asyncio.timeout(20):
        await asyncio.gather(*(reader.read() for reader, _ in held))
    assert b"served" in await say(port, close)
    for _, writer in held:
        writer.close()
