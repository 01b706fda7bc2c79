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
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class Endpoint(Protocol):
    """Something people and machines may knock at."""

    def routes(self) -> list[Route]: ...


def make_web(endpoints: Iterable[Endpoint]) -> Starlette:
    web = Starlette(routes=[route for endpoint in endpoints for route in endpoint.routes()])
    web.router.redirect_slashes = False  # a callback that is sent elsewhere may not come again
    return web


CONNECTIONS_MAX = 2000
HEAD_SECONDS = 15.0
#: more than any door waits for a body
BODY_SECONDS = 30.0
#: how long a stop waits for those who are still talking
STOP_SECONDS = 5


class _Protocol(HttpToolsProtocol):
    """Whoever does not bring a whole request in time is closed: idle connections must not keep out the others."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:  # a further request: waiting for it has a limit of its own
            self._expect(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._expect(BODY_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._expect(None)
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def _expect(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self.transport.close)


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
            http=_Protocol,
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
