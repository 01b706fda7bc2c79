"""Serve the HTTP application of a simulator."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

SHUTDOWN_SECONDS = 0.1  #: zero would mean no limit
BACKLOG = 128
#: turns of the event loop, at most, between accepting a connection and its registration with the server
ACCEPT_TURNS = 4


class Listener:
    """The port of a simulator, which can be closed and opened again while the simulator goes on."""

    def __init__(self, runner: web.AppRunner, host: str, port: int) -> None:
        self._runner = runner
        self._host = host
        self._port = port
        self._socket: socket.socket | None = None
        self._site: web.SockSite | None = None

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._port}"

    @property
    def is_open(self) -> bool:
        return self._site is not None

    async def open(self) -> None:
        """Accept connections, on the same port as before. An open port stays open."""
        if self._site is None:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            self._socket = socket.create_server((self._host, self._port), family=family, backlog=BACKLOG)
            self._port = self._socket.getsockname()[1]
            self._site = web.SockSite(self._runner, self._socket, backlog=BACKLOG)
            await self._site.start()

    async def close(self) -> None:
        """Refuse connections and end those that are open, as when a server is switched off."""
        site, self._site = self._site, None
        if site is not None:
            await self.finish_accepting()
            await site.stop()
            assert self._runner.server is not None
            await self._runner.server.shutdown(SHUTDOWN_SECONDS)

    async def finish_accepting(self) -> None:
        """Stop accepting, and wait until the server knows what was accepted: otherwise asyncio would never close it."""
        if self._socket is not None and self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket)
        for _ in range(ACCEPT_TURNS):
            await asyncio.sleep(0)


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncIterator[Listener]:
    """Serve an application until the block ends; yield its port."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    try:
        await runner.setup()
        listener = Listener(runner, host, port)
        await listener.open()
        try:
            yield listener
        finally:
            await listener.finish_accepting()
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve an application until the block ends; yield its URL."""
    async with listening(app, host, port) as listener:
        yield listener.url
