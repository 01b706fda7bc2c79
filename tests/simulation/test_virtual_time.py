"""The clock stands still while anything can run, and jumps when nothing can."""

import asyncio
import time
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from genlock.sandbox.simulation.virtual_time import START, TimeDoesNotAdvance, VirtualClock, VirtualLoop


def run(work: Coroutine[Any, Any, Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def test_a_day_passes_at_once() -> None:
    async def day() -> tuple[float, timedelta]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(86_400)
        return loop.time(), VirtualClock(loop).now() - START

    started = time.monotonic()
    assert run(day()) == (86_400, timedelta(days=1))
    assert time.monotonic() - started < 60


def test_timers_fire_in_their_order() -> None:
    async def race() -> list[tuple[float, str]]:
        loop, seen = asyncio.get_running_loop(), []

        async def after(seconds: float, name: str) -> None:
            await asyncio.sleep(seconds)
            seen.append((loop.time(), name))

        await asyncio.gather(after(2, "late"), after(1, "early"), after(1, "early too"))
        return seen

    assert run(race()) == [(1, "early"), (1, "early too"), (2, "late")]


def test_a_deadlock_is_detected() -> None:
    async def wait() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.get_running_loop().create_future()
        await asyncio.get_running_loop().create_future()

    with pytest.raises(TimeDoesNotAdvance):
        run(wait())


def test_an_endless_loop_without_time_is_detected() -> None:
    async def circle() -> None:
        def again() -> None:
            asyncio.get_running_loop().call_soon(again)

        again()
        await asyncio.sleep(1)

    with pytest.raises(TimeDoesNotAdvance):
        run(circle())


def test_the_idle_hook_may_add_work_before_the_clock_moves() -> None:
    async def wait() -> float:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        brought = loop.create_future()

        def bring() -> bool:
            if brought.done():
                return False
            brought.set_result(None)
            return True

        loop.on_idle = bring
        await asyncio.wait_for(brought, 10)
        return loop.time()

    assert run(wait()) == 0
