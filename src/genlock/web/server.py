"""The HTTP server of an instance."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CONNECTIONS_MAX = 2000
HEAD_SECONDS = 15.0
#: longer than any endpoint waits for a body
BODY_SECONDS = 30.0
#: how long a stop waits for open requests
STOP_SECONDS = 5


class _Protocol(HttpToolsProtocol):
    """Closes connections that do not send a whole request in time, so that idle ones do not use up the limit."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's signature
        super().connection_made(transport)
        self._expect(HEAD_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:  # a further request on the same connection
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
        """Leave signals to the process that runs the server."""
        yield


@asynccontextmanager
async def serving(web: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    """Serve until the block ends, and yield the URL. Port 0 takes a free port."""
    listener = socket.create_server((host, port), backlog=2048)  # from here on clients wait instead of being refused
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
