"""Tests that share an event loop end their own tasks, and leave those of the loop's other users alone."""

import asyncio

from tests.shared_postgres import cancelling_new_tasks


async def test_only_the_tasks_started_inside_are_cancelled() -> None:
    driver = asyncio.create_task(asyncio.Event().wait())
    async with cancelling_new_tasks():
        left = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)

    assert left.cancelled()
    assert not driver.cancelling()
    driver.cancel()
