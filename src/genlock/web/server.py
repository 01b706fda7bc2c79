"""The HTTP server of an instance."""

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from genlock.web.connection_pool import ConnectionPool
from genlock.web.connections import BoundedReader, HttpProtocol

#: Connections whose sender is not authenticated, and the bytes that these hold together. A provider that reports a
#: thousand results at once connects a thousand times before it sends anything.
CONNECTIONS_MAX = 1200
UNAUTHENTICATED_BYTES_MAX = 8_000_000
#: more than the connections of all senders, the files they read and the databases need
OPEN_FILES = 65_536
#: The kernel's buffer for one connection. Its memory counts as the service's where a container limits it.
RECEIVE_BUFFER_BYTES = 65_536
#: unsent bytes of an answer that the kernel takes for one connection; without this limit it takes megabytes
UNSENT_BYTES_MAX = 65_536
#: The event loop accepts one connection per listening socket and turn, so that a flood of connections would make others
#: wait for seconds.
ACCEPTED_PER_TURN = 16
#: How long a connection may wait for its next request: longer than load balancers and clients keep theirs, so that they
#: close it first. When there are too many, the one that has waited longest is closed.
KEEP_ALIVE_SECONDS = 75
#: how long a stop waits for open requests
STOP_SECONDS = 5


def allow_open_files() -> None:
    """Raise the limit of open files as far as the system allows: containers start with 1024, and connections count."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process that runs the server."""
        yield


@asynccontextmanager
async def serving(web: ASGIApp, host: str, port: int) -> AsyncIterator[str]:
    """Serve until the block ends, and yield the URL. Port 0 takes a free port."""
    listener = socket.create_server((host, port), backlog=2048)  # from here on clients wait instead of being refused
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # a system without it has no such limit
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX)
    pool = ConnectionPool(CONNECTIONS_MAX, UNAUTHENTICATED_BYTES_MAX)

    def connect(**arguments: Any) -> BoundedReader:
        return BoundedReader(HttpProtocol(pool, **arguments))

    server = _Server(
        uvicorn.Config(
            web,
            http=connect,  # type: ignore[arg-type]  # uvicorn only calls it
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    )
    listeners = [listener, *(listener.dup() for _ in range(ACCEPTED_PER_TURN - 1))]
    task = asyncio.get_running_loop().create_task(server.serve(listeners))
    try:
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
