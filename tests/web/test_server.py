"""The server closes connections that send no whole request in time, and serves the others."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from genlock.web import server
from genlock.web.server import serving

GET = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 0.3


async def slow(_: Request) -> PlainTextResponse:
    """Answer later than a client may take to send its request."""
    await asyncio.sleep(3 * SECONDS)
    return PlainTextResponse("served")


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(server, "HEAD_SECONDS", SECONDS)
    monkeypatch.setattr(server, "BODY_SECONDS", SECONDS)
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 5)
    web = Starlette(routes=[Route("/slow", slow, methods=["GET", "POST"])])
    async with serving(web, "127.0.0.1", 0) as url:
        yield int(url.rpartition(":")[2])


async def send(port: int, *chunks: bytes) -> bytes:
    """Return what the server sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"",
        b"GET /slow HTTP/1.1\r\nHost: x\r\nA: ",
        b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
    ],
)
async def test_a_connection_without_a_whole_request_is_closed(port: int, request_bytes: bytes) -> None:
    assert b"served" not in await send(port, request_bytes)


async def test_a_connection_that_sends_its_request_too_slowly_is_closed(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET[:-2])
    closed = asyncio.create_task(reader.read())
    async with asyncio.timeout(20):
        while not closed.done():
            writer.write(b"A: b\r\n")
            await asyncio.wait([closed], timeout=0.05)
    assert isinstance(closed.exception(), ConnectionError) or closed.result() == b""
    writer.close()


async def test_a_slow_answer_and_the_next_request_are_served(port: int) -> None:
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")
    assert (await send(port, GET, close)).count(b"served") == 2


async def test_idle_connections_block_others_only_for_a_short_time(port: int) -> None:
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")
    assert b"503" in await send(port, close), "the limit of connections is reached"
    async with asyncio.timeout(20):
        await asyncio.gather(*(reader.read() for reader, _ in held))
    assert b"served" in await send(port, close)
    for _, writer in held:
        writer.close()
