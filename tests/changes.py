"""Waiting for a condition: for a signal where the code under test gives one, else by asking again."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

#: how long a test waits for what must happen; ten processes may share two busy cores
PATIENCE_SECONDS = 30
ASK_SECONDS = 0.02
#: what a test waits for; it may have to ask a database
Condition = Callable[[], object] | Callable[[], Awaitable[object]]


class Changes:
    """Wakes the tests that wait for a condition, each time something has changed."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def note(self) -> None:
        self._next.set()
        self._next = asyncio.Event()

    async def until(self, condition: Condition, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until the condition holds, and ask only after a change. Raises TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                change = self._next  # a change while the condition is asked is not missed
                if await _holds(condition):
                    return
                await change.wait()


async def poll_until(condition: Condition, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for what another process or a server changes without a signal to the test. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not await _holds(condition):  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(ASK_SECONDS)


async def _holds(condition: Condition) -> bool:
    found = condition()
    return bool(await found if inspect.isawaitable(found) else found)
