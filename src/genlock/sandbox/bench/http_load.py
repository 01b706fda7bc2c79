"""A cheap HTTP load generator: prepared requests over kept connections, at a fixed rate, timed from when they were due.

It shares the machine with what it measures, so it parses only the status and the length of an answer.
"""

import asyncio
import re
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
_HEAD_END = b"\r\n\r\n"


def prepare_request(method: str, url: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """Return the bytes of a request."""
    parts = urlsplit(url)
    given = {"Host": parts.netloc, **headers, **({"Content-Length": str(len(body))} if body else {})}
    lines = [f"{method} {parts.path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode() + _HEAD_END + body


@dataclass
class Timings:
    """Milliseconds from the moment when a request was due to the end of its answer, and the statuses."""

    milliseconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def percentiles(self) -> dict[str, float]:
        took = sorted(self.milliseconds)
        return {name: round(took[int(len(took) * share)], 2) for name, share in (("p50", 0.5), ("p99", 0.99))}


class _Connection(asyncio.Protocol):
    def __init__(self, load: "HttpLoad") -> None:
        self._load = load
        self._received = b""
        self._due = 0.0
        self._timings: Timings | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, request: bytes, due: float, timings: Timings) -> None:
        assert self._transport is not None
        self._due, self._timings, self._received = due, timings, b""
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        end = self._received.find(_HEAD_END)
        if end < 0 or self._timings is None:
            return
        length = _LENGTH.search(self._received, 0, end + 2)
        if len(self._received) < end + len(_HEAD_END) + (int(length[1]) if length else 0):
            return
        self._timings.milliseconds.append((self._load.clock() - self._due) * 1000)
        self._timings.statuses[int(self._received[9:12])] += 1
        self._load.free_again(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._load.lost()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def run_load(url: str, connections: int, requests: list[bytes], per_second: float) -> Timings:
    """Send requests at a rate over new connections, which the server has not closed for being idle."""
    async with HttpLoad.connected(url, connections) as load:
        return await load.send(requests, per_second)


class HttpLoad:
    """Connections to one server."""

    def __init__(self) -> None:
        self.clock: Callable[[], float] = perf_counter  # the loop's own clock is exact to a millisecond only
        self._free: deque[_Connection] = deque()
        self._waiting: deque[tuple[bytes, float, Timings]] = deque()
        self._open = 0
        self._answered = asyncio.Event()
        self._is_closing = False
        self._is_cut = False

    @classmethod
    @asynccontextmanager
    async def connected(cls, url: str, connections: int) -> AsyncIterator["HttpLoad"]:
        load, parts = cls(), urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        made = []
        for _ in range(connections):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: _Connection(load), parts.hostname, parts.port
            )
            made.append(connection)
        load._free.extend(made)
        try:
            yield load
        finally:
            load._is_closing = True
            for connection in made:
                connection.close()

    async def send(self, requests: list[bytes], per_second: float) -> Timings:
        """Send requests at a rate, whether or not earlier ones were answered; return when all are.

        Raises ConnectionError if the server closes a connection.
        """
        timings, started = Timings(), self.clock() + 0.05
        for number, request in enumerate(requests):
            due = started + number / per_second
            if (early := due - self.clock()) > 0:
                await asyncio.sleep(early)
            self._open += 1
            if self._free:
                self._free.popleft().send(request, due, timings)
            else:
                self._waiting.append((request, due, timings))
        while self._open and not self._is_cut:
            self._answered.clear()
            await self._answered.wait()
        if self._is_cut:
            raise ConnectionError("the server closed a connection under load")
        return timings

    def free_again(self, connection: _Connection) -> None:
        self._open -= 1
        if self._waiting:
            connection.send(*self._waiting.popleft())
        else:
            self._free.append(connection)
        if not self._open:
            self._answered.set()

    def lost(self) -> None:
        if not self._is_closing:
            self._is_cut = True  # an error raised here would reach the event loop only
            self._answered.set()
