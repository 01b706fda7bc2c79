"""Serve the HTTP application of a simulator."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve an application until the block ends; yield its URL."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        yield f"http://{host}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
