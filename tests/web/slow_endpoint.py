"""An endpoint that answers when a test lets it, and clients that send it requests."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from genlock.web.connections import AUTHENTICATED
from genlock.web.server import serving
from tests.changes import PATIENCE_SECONDS

#: more than a connection takes at once
PIECE_BYTES = 8_000_000
RIGHT = "right"


class Endpoint:
    """Counts the requests that it has begun, and answers those to `/slow` when it is told to."""

    def __init__(self) -> None:
        self.begun: Counter[str] = Counter()
        self.changed = asyncio.Condition()
        self.answering = asyncio.Event()
        self.accepted = {RIGHT}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.headers.get("authorization") in self.accepted:
            scope["extensions"][AUTHENTICATED]()
        if request.url.path == "/body":
            await self._count("waiting for a body")
            await request.body()
        await self._count(request.url.path)
        if request.url.path == "/slow":
            await self.answering.wait()
        if request.url.path == "/stream":
            await StreamingResponse(self._pieces())(scope, receive, send)
            return
        status = {"/revoked": 401, "/broken": 503}.get(request.url.path, 200)
        await PlainTextResponse("answered", status, headers={"Connection": "close"})(scope, receive, send)

    async def _pieces(self) -> AsyncIterator[bytes]:
        for _ in range(2):
            await self._count("piece")
            yield bytes(PIECE_BYTES)
        await self._count("reading")
        await self.answering.wait()

    async def _count(self, name: str) -> None:
        async with self.changed:
            self.begun[name] += 1
            self.changed.notify_all()

    async def wait_for(self, name: str, number: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), self.changed:
            await self.changed.wait_for(lambda: self.begun[name] >= number)


def head(path: str, secret: str = "", more: str = "") -> bytes:
    authorization = f"Authorization: {secret}\r\n" if secret else ""
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{authorization}{more}\r\n".encode()


@asynccontextmanager
async def clients(endpoint: Endpoint) -> AsyncIterator[Callable[[bytes], Awaitable[asyncio.Task[bytes]]]]:
    """Yield a function that sends a request on a connection of its own and returns a task for the answer."""
    writers: list[asyncio.StreamWriter] = []
    async with serving(endpoint, "127.0.0.1", 0) as url:

        async def send(request: bytes) -> asyncio.Task[bytes]:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writers.append(writer)
            writer.write(request)
            return asyncio.get_running_loop().create_task(reader.read())

        try:
            yield send
        finally:
            endpoint.answering.set()
            for writer in writers:
                writer.transport.abort()
