"""A small TCP load balancer for the sandbox: new connections go round-robin to the instances that are ready.

It stands in for the platform's router in `genlock sandbox`, `smoke` and `chaos`. Each instance is asked for
`GET /ready` several times a second.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

PROBE_SECONDS = 0.25
#: an instance that does not answer a probe within this time loses its connections, if another one is ready
TIMEOUT_SECONDS = 1.0
CHUNK = 65_536
_PROBE = b"GET /ready HTTP/1.1\r\nHost: balancer\r\nConnection: close\r\n\r\n"


@dataclass(kw_only=True, eq=False)
class Backend:
    port: int
    ready: bool = False
    #: both ends of every connection that goes through this instance
    writers: set[asyncio.StreamWriter] = field(default_factory=set)


class LoadBalancer:
    """Forward bytes. An instance that is not ready gets no new connections; one that does not answer loses its own.

    The only ready instance keeps its connections while it is slow: on a busy machine, its clients would only fail.
    """

    def __init__(self) -> None:
        self.url = ""
        self._backends: dict[int, Backend] = {}
        self._next = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._probed = asyncio.Event()

    @classmethod
    @asynccontextmanager
    async def running(cls, port: int = 0) -> AsyncIterator["LoadBalancer"]:
        balancer = cls()
        server = await asyncio.start_server(balancer._accept, "127.0.0.1", port, backlog=2048)
        balancer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        balancer._spawn(balancer._probe_all())
        try:
            yield balancer
        finally:
            server.close()
            for task in balancer._tasks:
                task.cancel()
            await asyncio.gather(*balancer._tasks, return_exceptions=True)

    def add(self, port: int) -> None:
        self._backends.setdefault(port, Backend(port=port))

    def remove(self, port: int) -> None:
        backend = self._backends.pop(port, None)
        if backend is not None:
            _abort_connections(backend)

    def is_ready(self, port: int) -> bool:
        backend = self._backends.get(port)
        return backend is not None and backend.ready

    async def wait_until_ready(self) -> None:
        """Wait until at least one instance is ready."""
        while not any(backend.ready for backend in self._backends.values()):
            await self._probed.wait()

    # connections

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Not by the task itself: a task that is cancelled before its first step runs no `finally`.
        self._spawn(self._forward(reader, writer)).add_done_callback(lambda _: writer.close())

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            found = await self._connect()
            if found is None:
                writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
                return
            backend, inner_reader, inner_writer = found
            ends = {writer, inner_writer}
            backend.writers |= ends
            try:
                await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))
            finally:
                backend.writers -= ends
                inner_writer.close()
        except OSError:
            return  # one end is gone; closing tells the other

    async def _connect(self) -> tuple[Backend, asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to the next instance that is ready and reachable."""
        ready = [backend for backend in self._backends.values() if backend.ready]
        self._next += 1
        for offset in range(len(ready)):
            backend = ready[(self._next + offset) % len(ready)]
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    return (backend, *await asyncio.open_connection("127.0.0.1", backend.port))
            except TimeoutError:
                backend.ready = not self._has_other(backend)
            except OSError:
                backend.ready = False
        return None

    def _has_other(self, backend: Backend) -> bool:
        """Whether another instance is ready to take the connections of this one."""
        return any(other.ready for other in self._backends.values() if other is not backend)

    # readiness

    async def _probe_all(self) -> None:
        while True:
            await asyncio.gather(*(self._probe(backend) for backend in list(self._backends.values())))
            self._probed.set()
            self._probed = asyncio.Event()
            await asyncio.sleep(PROBE_SECONDS)

    async def _probe(self, backend: Backend) -> None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                reader, writer = await asyncio.open_connection("127.0.0.1", backend.port)
                try:
                    writer.write(_PROBE)
                    line = await reader.readline()
                finally:
                    writer.close()
        except TimeoutError:
            if self._has_other(backend):
                self._leave(backend)
        except OSError:
            self._leave(backend)
        else:
            backend.ready = b" 200 " in line

    def _leave(self, backend: Backend) -> None:
        """Give an instance no new connections, and abort those it has."""
        backend.ready = False
        _abort_connections(backend)


def _abort_connections(backend: Backend) -> None:
    """Abort all connections of an instance, so that its clients fail at once instead of waiting."""
    for writer in backend.writers:
        writer.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()  # half-closed connections are not used here
