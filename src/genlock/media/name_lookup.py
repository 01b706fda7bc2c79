"""Look up host names that users and API clients chose, in separate threads.

The event loop has two threads for look-ups. Two names whose server does not answer would keep both of them busy for ten
seconds, and every new connection to Telegram, the providers and the database would wait for them.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

#: names that are looked up at the same time; more than the webhook endpoints that may be slow at the same time
LOOKUPS_MAX = 16

Lookup = tuple[str, int, int]


class NameLookup:
    """Looks up names. Look-ups of the same name at the same time share one, which goes on when a caller gives up."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOKUPS_MAX, thread_name_prefix="name-lookup")
        self._running: dict[Lookup, asyncio.Future[list[Any]]] = {}

    async def addresses(self, host: str, port: int, family: int) -> dict[str, socket.AddressFamily]:
        """Return the addresses of a host with their families. Raises OSError."""
        found = await asyncio.shield(self._begun((host, port, family)))
        return {str(answer[4][0]): answer[0] for answer in found}

    def _begun(self, lookup: Lookup) -> "asyncio.Future[list[Any]]":
        if lookup not in self._running:
            loop = asyncio.get_running_loop()
            running = loop.run_in_executor(self._threads, socket.getaddrinfo, *lookup, socket.SOCK_STREAM)
            self._running[lookup] = running
            running.add_done_callback(lambda ended: self._end(lookup, ended))
        return self._running[lookup]

    def _end(self, lookup: Lookup, ended: "asyncio.Future[list[Any]]") -> None:
        del self._running[lookup]
        if not ended.cancelled():
            ended.exception()  # marks it as read: every caller may have given up

    def close(self) -> None:
        """Begin no further look-ups, and do not wait for those that run."""
        self._threads.shutdown(wait=False, cancel_futures=True)
