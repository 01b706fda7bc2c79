"""The load generator of the bench counts every answer, and does not wait for one that never comes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from genlock.sandbox.bench.http_load import prepare_request, run_load
from tests.changes import PATIENCE_SECONDS

ANSWER = b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"


class Answering(asyncio.Protocol):
    """Answers a number of requests, and closes the connection at the next one."""

    def __init__(self, answers: int, closed: asyncio.Event) -> None:
        self._answers = answers
        self._closed = closed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answers:
            self._answers -= 1
            self._transport.write(ANSWER)
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()


@asynccontextmanager
async def server(answers: int) -> AsyncIterator[str]:
    closed = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: Answering(answers, closed), "127.0.0.1", 0) as listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        await closed.wait()


async def test_every_answer_is_counted() -> None:
    async with server(10) as url:
        timings = await run_load(url, 1, [prepare_request("GET", f"{url}/", {})] * 3, 1000)
    assert timings.statuses == {202: 3}


async def test_a_connection_that_the_server_closes_ends_the_load() -> None:
    async with asyncio.timeout(PATIENCE_SECONDS), server(1) as url:
        with pytest.raises(ConnectionError):
            await run_load(url, 1, [prepare_request("GET", f"{url}/", {})] * 3, 1000)
