"""Serve the HTTP application of a simulator."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

SHUTDOWN_SECONDS = 0.1  #: zero would mean no limit


class Listener:
    """The port of a simulator, which can be closed and opened again while the simulator goes on."""

    def __init__(self, runner: web.AppRunner, host: str, port: int) -> None:
        self._runner = runner
        self._host = host
        self._port = port
        self._site: web.TCPSite | None = None

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self._port}"

    @property
    def is_open(self) -> bool:
        return self._site is not None

    async def open(self) -> None:
        """Accept connections, on the same port as before. An open port stays open."""
        if self._site is None:
            site = web.TCPSite(self._runner, self._host, self._port)
            await site.start()
            self._site, self._port = site, self._runner.addresses[0][1]

    async def close(self) -> None:
        """Refuse connections and end those that are open, as when a server is switched off."""
        site, self._site = self._site, None
        if site is not None:
            await site.stop()
            assert self._runner.server is not None
            await self._runner.server.shutdown(SHUTDOWN_SECONDS)


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncIterator[Listener]:
    """Serve an application until the block ends; yield its port."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    try:
        await runner.setup()
        listener = Listener(runner, host, port)
        await listener.open()
        yield listener
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve an application until the block ends; yield its URL."""
    async with listening(app, host, port) as listener:
        yield listener.url
