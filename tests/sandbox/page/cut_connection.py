"""A TCP proxy between the page and the simulator that can be cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from genlock.sandbox.telegram.simulator import TelegramSimulator


class CuttableConnection:
    """Forwards connections until it is cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.up = True
        self.url = ""

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.up:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, far_writer}
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))

    def cut(self) -> None:
        self.up = False
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while piece := await source.read(65536):
            target.write(piece)
            await target.drain()
    except OSError:
        pass
    finally:
        target.close()


@asynccontextmanager
async def connection_to(telegram: TelegramSimulator) -> AsyncIterator[CuttableConnection]:
    connection = CuttableConnection(int(telegram.url.rpartition(":")[2]))
    server = await asyncio.start_server(connection.carry, "127.0.0.1", 0)
    connection.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield connection
    finally:
        connection.cut()
        server.close()
