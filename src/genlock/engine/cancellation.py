"""Cancelling tasks so that they really end."""

import asyncio
from collections.abc import Iterable
from typing import Any

#: how long a cancelled task may take before it is cancelled again
CANCEL_SECONDS = 5.0


async def cancel_and_wait(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel all tasks and wait for their end. One that swallowed its cancellation is cancelled again.

    Libraries swallow it: `asyncio.wait_for` of Python 3.11, if the call it waits for ends in the same moment.
    They are cancelled in the given order, so that a simulated run can be repeated.
    """
    running = list(tasks)
    while running:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=CANCEL_SECONDS)
        running = [task for task in running if not task.done()]
