"""One client with a key cannot take all connections, and clients that are gone leave no errors in the log."""

import asyncio
import logging
import socket
import struct
from collections import Counter
from typing import cast

import pytest
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from genlock.web import connection_pool, server
from genlock.web.connections import AUTHENTICATED, HttpProtocol
from genlock.web.joined_writes import JoinedWrites
from genlock.web.server import serving
from tests.changes import PATIENCE_SECONDS

GET = b"GET /%s HTTP/1.1\r\nHost: x\r\n\r\n"


class Endpoint:
    """Takes the sender's name for its secret and answers when it is told to."""

    def __init__(self) -> None:
        self.answering = asyncio.Event()
        self.begun = asyncio.Semaphore(0)

    async def __call__(self, request: Request) -> PlainTextResponse:
        if not request.scope["extensions"][AUTHENTICATED](request.path_params["sender"]):
            return PlainTextResponse("too many", 429)
        self.begun.release()
        await self.answering.wait()
        return PlainTextResponse("served" * 1_000_000)

    def web(self) -> Starlette:
        async def handle(request: Request) -> PlainTextResponse:
            return await self(request)

        return Starlette(routes=[Route("/{sender}", handle)])


async def connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))


async def test_a_sender_has_a_number_of_connections_and_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_pool, "SENDER_CONNECTIONS_MAX", 2)
    endpoint = Endpoint()
    async with serving(endpoint.web(), "127.0.0.1", 0) as url, asyncio.timeout(PATIENCE_SECONDS):
        greedy = [await connect(url) for _ in range(3)]
        for _, writer in greedy[:2]:
            writer.write(GET % b"greedy")
            await endpoint.begun.acquire()
        refused, writer = greedy[2]
        writer.write(GET % b"greedy")
        assert b" 429 " in await refused.readline()

        other, polite = await connect(url)
        polite.write(GET % b"other")
        await endpoint.begun.acquire()
        endpoint.answering.set()
        for reader in (other, greedy[0][0], greedy[1][0]):
            await reader.readuntil(b"served")

        reader, writer = greedy[2]  # the first two are answered: there is room again
        await reader.readuntil(b"too many")
        writer.write(GET % b"greedy")
        await reader.readuntil(b"served")
        for writer in (polite, *(writer for _, writer in greedy)):
            writer.close()


async def test_many_senders_together_have_a_number_of_connections_and_each_of_them_some() -> None:
    pool, taken = connection_pool.ConnectionPool(10, 1000), Counter[str]()
    for sender in map(str, range(60)):
        for _ in range(800):
            taken[sender] += pool.authenticate(cast(HttpProtocol, object()), sender)

    assert taken["0"] == connection_pool.SENDER_CONNECTIONS_MAX, "one alone has all of its room"
    assert min(taken.values()) == connection_pool.SENDER_CONNECTIONS_MIN
    assert sum(taken.values()) <= connection_pool.CLIENT_CONNECTIONS_MAX + 60 * connection_pool.SENDER_CONNECTIONS_MIN


async def test_a_client_that_leaves_before_its_key_is_read_takes_no_connection_of_its_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_pool, "SENDER_CONNECTIONS_MAX", 2)
    begun, ended = asyncio.Semaphore(0), asyncio.Semaphore(0)

    async def handle(request: Request) -> PlainTextResponse:
        begun.release()
        if request.path_params["sender"] == "slow":
            await request.body()
            await request.receive()  # until the client is gone
        try:
            is_allowed = request.scope["extensions"][AUTHENTICATED]("one account")
            return PlainTextResponse("served" if is_allowed else "too many")
        finally:
            ended.release()

    async with (
        serving(Starlette(routes=[Route("/{sender}", handle)]), "127.0.0.1", 0) as url,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        for _ in range(3):
            _, writer = await connect(url)
            writer.write(GET % b"slow")
            await begun.acquire()
            writer.transport.abort()
            await ended.acquire()
        reader, writer = await connect(url)
        writer.write(GET % b"quick")
        assert b" 200 " in await reader.readline()
        await reader.readuntil(b"served")
        writer.close()


def test_pipelined_requests_of_a_client_that_is_gone_end_without_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def leave_without_reading() -> None:
        endpoint = Endpoint()
        endpoint.answering.set()
        async with serving(endpoint.web(), "127.0.0.1", 0) as url, asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(5):
                client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
                client.sendall(GET % b"gone" * 3)
                for _ in range(2):  # the second one waits until the client reads the answer to the first
                    await endpoint.begun.acquire()
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close with a reset
                client.close()

    with caplog.at_level(logging.ERROR):
        uvloop.run(leave_without_reading())  # as in the service: other loops let a handler write to a closed connection
    assert caplog.records == []


async def test_a_stop_ends_requests_that_are_not_answered_in_time_without_an_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "STOP_SECONDS", 0)
    endpoint = Endpoint()
    with caplog.at_level(logging.ERROR):
        async with serving(endpoint.web(), "127.0.0.1", 0) as url, asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await connect(url)
            writer.write(GET % b"slow")
            await endpoint.begun.acquire()
        assert await reader.read() == b""
        writer.close()
    assert [record.exc_info for record in caplog.records if record.exc_info] == []


async def test_nothing_is_written_to_a_connection_that_was_reset_while_a_piece_was_held() -> None:
    class Reset(asyncio.Transport):
        """A transport of uvloop after a reset."""

        is_reset = False

        def is_closing(self) -> bool:
            return self.is_reset

        def pause_reading(self) -> None: ...

        def resume_reading(self) -> None: ...

        def write(self, data: bytes | bytearray | memoryview) -> None:
            assert not self.is_reset, "unable to perform operation: the handler is closed"

    errors: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: errors.append(context))
    transport = Reset()
    joined = JoinedWrites(transport, loop)
    joined.write(b"HTTP/1.1 200 OK\r\n\r\n")
    transport.is_reset = True
    await asyncio.sleep(0)
    joined.write(b"x" * 100_000)
    assert errors == []
