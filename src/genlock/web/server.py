"""The web application: every door of an instance under one roof."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp


class Door(Protocol):
    """Something people and machines may knock at."""

    def routes(self) -> list[Route]: ...


def make_web(doors: Iterable[Door]) -> Starlette:
    web = Starlette(routes=[route for door in doors for route in door.routes()])
    web.router.redirect_slashes = False  # a callback that is sent elsewhere may not come again
    return web


CONNECTIONS_MAX = 2000
#: how long a stop waits for those who are still talking
STOP_SECONDS = 5


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They belong to whoever runs the process."""
        yield


@asynccontextmanager
async def serving(web: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    """Serve until the block ends; says where. Port 0 takes a free one."""
    listener = socket.create_server((host, port), backlog=2048)  # from here on callers wait, they are not refused
    server = _Server(
        uvicorn.Config(
            web,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    )
    task = asyncio.get_running_loop().create_task(server.serve([listener]))
    try:
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
