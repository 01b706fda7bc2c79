"""The server closes connections that send no whole request in time, and serves the others."""

import asyncio
import resource
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from genlock.web import connections, server
from genlock.web.server import serving
from tests.changes import Changes
from tests.loop_clock import LoopClock

GET = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
SECONDS = 0.3


async def answer(request: Request) -> PlainTextResponse:
    await request.body()
    return PlainTextResponse("served")


@pytest.fixture
async def port(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    monkeypatch.setattr(server, "CONNECTIONS_MAX", 5)
    web = Starlette(routes=[Route("/slow", answer, methods=["GET", "POST"])])
    async with serving(web, "127.0.0.1", 0) as url:
        yield int(url.rpartition(":")[2])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", SECONDS)
    monkeypatch.setattr(connections, "BODY_SECONDS", SECONDS)


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


@pytest.mark.usefixtures("impatient")
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


@pytest.mark.usefixtures("impatient")
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


async def test_an_answer_that_takes_longer_than_a_request_may_and_the_next_one_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 5.0)
    monkeypatch.setattr(connections, "BODY_SECONDS", 5.0)
    loop_clock = LoopClock()
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")

    async def slow(_: Request) -> PlainTextResponse:
        loop_clock.turn(6.0)
        for _turn in range(3):
            await asyncio.sleep(0)  # every timer that is over fires
        return PlainTextResponse("served")

    async with serving(Starlette(routes=[Route("/slow", slow)]), "127.0.0.1", 0) as url:
        assert (await send(int(url.rpartition(":")[2]), GET, close)).count(b"served") == 2


# unauthenticated senders


async def test_the_oldest_idle_connection_gives_way_to_a_new_one(port: int) -> None:
    held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
    close = GET.replace(b"Host: x", b"Host: x\r\nConnection: close")
    assert b"served" in await send(port, close), "the limit of connections is reached, and the new one is served"
    async with asyncio.timeout(20):
        assert await closes(held[0][0])
    assert not any(reader.at_eof() for reader, _ in held[1:])
    for _, writer in held:
        writer.close()


async def closes(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_the_connection_that_holds_most_is_closed_when_the_shared_memory_is_used_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "UNAUTHENTICATED_BYTES_MAX", 5_000)
    received, arrived = 0, Changes()

    async def count(request: Request) -> PlainTextResponse:
        nonlocal received
        before = received
        async for chunk in request.stream():
            received += len(chunk)
            arrived.note()
        return PlainTextResponse(str(received - before))

    web = Starlette(routes=[Route("/slow", count, methods=["POST"])])
    async with serving(web, "127.0.0.1", 0) as url:
        large, small = [await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2])) for _ in range(2)]
        large[1].write(POST % 4000 + b"a" * 3000)
        await arrived.until(lambda: received == 3000)
        small[1].write(POST % 2000 + b"a" * 1900)
        async with asyncio.timeout(20):
            assert await closes(large[0])
            small[1].write(b"a" * 100)
            assert b"2000" in await small[0].readuntil(b"2000")
        large[1].close()
        small[1].close()


async def body_of(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


POST = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS_HEADS = {
    "a long header": (b"GET /slow HTTP/1.1\r\nA: ", b"a" * 8000),
    "a long URL": (b"GET /", b"a" * 8000),
    "many headers": (b"GET /slow HTTP/1.1\r\n", b"a:b\r\n" * 200),
    "a chunk extension": (CHUNKED + b"1;", b"a" * 8000),
    "trailers": (CHUNKED + b"1\r\na\r\n0\r\n", b"a:b\r\n" * 200),
    "one-byte chunks": (CHUNKED, b"1\r\na\r\n" * 2000),
    "pipelined requests": (b"", GET * 100),
}


async def test_a_head_without_end_is_refused_after_64_kb() -> None:
    web = Starlette(routes=[Route("/slow", body_of, methods=["GET", "POST"])])
    taken: dict[str, int] = {}
    async with serving(web, "127.0.0.1", 0) as url:
        for name, (beginning, repeated) in ENDLESS_HEADS.items():
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(beginning)
            closed = asyncio.create_task(closes(reader))
            taken[name] = 0
            while not closed.done() and taken[name] < 2_000_000:
                writer.write(repeated)
                taken[name] += len(repeated)
                await asyncio.wait([closed], timeout=0.002)
            writer.close()
            await closed
    assert {name: number for name, number in taken.items() if number > 400_000} == {}


async def test_empty_lines_do_not_keep_a_connection_open(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"Not Found")
    monkeypatch.setattr(connections, "HEAD_SECONDS", SECONDS)
    closed = asyncio.create_task(closes(reader))
    async with asyncio.timeout(20):
        while not closed.done():
            writer.write(b"\r\n")
            await asyncio.wait([closed], timeout=0.05)
    writer.close()


def test_the_limit_of_open_files_leaves_room_for_every_connection() -> None:
    """With 1024 files, the unauthenticated connections would leave few for all other clients."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, before[1]), before[1]))
        server.allow_open_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(server.OPEN_FILES, before[1]), before[1])
        server.allow_open_files()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
