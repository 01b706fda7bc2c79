"""A proxy that loses answers: the service gets the request and answers it, the client sees a cut connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class LossyProxy:
    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        self._upstream = (parts.hostname or "", parts.port or 80)
        #: how many of the next answers are lost
        self.losses = 0
        #: bytes of an answer that reach the client before the connection is cut
        self.bytes_before_loss = 0
        self.lost = 0
        #: what clients have sent
        self.sent = bytearray()
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._upstream)
            sending = asyncio.create_task(self._send(reader, upstream_writer))
            try:
                await self._answer(upstream_reader, writer)
            finally:
                sending.cancel()
                upstream_writer.close()
        finally:
            with suppress(OSError):
                writer.close()

    async def _send(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                self.sent += data
                writer.write(data)
                await writer.drain()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self.losses > 0:
                self.losses -= 1
                self.lost += 1
                writer.write(data[: self.bytes_before_loss])
                with suppress(OSError):
                    await writer.drain()
                if not self.bytes_before_loss:
                    writer.transport.abort()  # a reset could drop bytes that were sent, so it is for empty answers only
                return
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def running_lossy_proxy(upstream: str) -> AsyncIterator[LossyProxy]:
    proxy = LossyProxy(upstream)
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await proxy.handle(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            connections.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
