"""Periodic tasks: work that an instance repeats for as long as it runs, each with a name and a period."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from random import Random

from genlock.domain.events import Event
from genlock.engine.cancellation import cancel_and_wait
from genlock.ports import Observer


@dataclass(frozen=True, kw_only=True, slots=True)
class PeriodicTask:
    """`run` is called, then again `period_seconds` after it has finished. An exception is reported, not fatal."""

    name: str
    period_seconds: float
    run: Callable[[], Awaitable[object]]
    #: skip the call while this instance is not the leader
    leader_only: bool = False
    #: setting this event starts the next call before the period is over
    wake: asyncio.Event | None = None
    #: shortens each pause by up to a half, so that instances do not stay in step
    jitter: Random | None = None


class PeriodicRunner:
    """Runs each periodic task in an asyncio task of its own."""

    def __init__(self, observer: Observer, is_leader: Callable[[], bool]) -> None:
        self._observer = observer
        self._is_leader = is_leader
        self._running: list[asyncio.Task[None]] = []

    def start(self, tasks: Iterable[PeriodicTask]) -> None:
        loop = asyncio.get_running_loop()
        self._running += [loop.create_task(self._repeat(task), name=task.name) for task in tasks]

    async def stop(self, name: str | None = None) -> None:
        """Cancel the periodic task of this name, or all of them, and wait for their end."""
        stopped = [task for task in self._running if name is None or task.get_name() == name]
        self._running = [task for task in self._running if task not in stopped]
        await cancel_and_wait(stopped)

    async def _repeat(self, task: PeriodicTask) -> None:
        while True:
            if task.wake:
                task.wake.clear()
            succeeded = await self._run_once(task)
            # A failed call waits for the whole period, so that a wake event cannot turn an outage into a busy loop.
            shortened = task.jitter.random() / 2 if task.jitter else 0.0
            await _pause(task.period_seconds * (1 - shortened), task.wake if succeeded else None)

    async def _run_once(self, task: PeriodicTask) -> bool:
        if task.leader_only and not self._is_leader():
            return True
        try:
            await task.run()
        except Exception as error:  # noqa: BLE001 - one failing task must not stop the instance
            self._observer.event(Event.STAGE_ERROR, step=task.name, error=repr(error))
            self._observer.count("stage_errors", 1, state=task.name)
            return False
        return True


async def _pause(seconds: float, wake: asyncio.Event | None) -> None:
    if wake is None:
        await asyncio.sleep(seconds)
        return
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        pass
