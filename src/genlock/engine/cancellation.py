"""Cancelling tasks so that they really end, and not between the record of a message and its sending."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Answer = TypeVar("Answer")

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


async def uninterrupted(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Return the answer of `work`. A cancellation lets it end first; a second one cancels it, too.

    For what is recorded before it is sent, at most once: cut off in between, it would never be sent.
    """
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _ended(task)
        raise


async def _ended(task: asyncio.Task[Any]) -> None:
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await cancel_and_wait([task])
        raise
    finally:
        if not task.cancelled():
            task.exception()  # its caller is gone
