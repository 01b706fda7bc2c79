"""Transfers of files that a stop of the instance interrupts: nothing of them can be seen, and they are begun again."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from genlock.domain.errors import ChannelBusy


class Transfers:
    """The transfers that run now. After `interrupt`, none of them and no further one is waited for."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self._interrupted = False

    @asynccontextmanager
    async def interruptible(self) -> AsyncIterator[None]:
        """Run the block until the instance stops. Raises ChannelBusy then: another instance does the work at once.

        The block must change nothing that a user or an operator sees.
        """
        limit = asyncio.timeout(0 if self._interrupted else None)
        try:
            async with limit:
                self._running.add(limit)
                yield
        except TimeoutError as error:
            if limit.expired():
                raise ChannelBusy(0.0, "the instance stops") from error
            raise
        finally:
            self._running.discard(limit)

    def interrupt(self) -> None:
        self._interrupted = True
        now = asyncio.get_running_loop().time()
        for limit in self._running:
            limit.reschedule(now)
