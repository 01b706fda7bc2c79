"""Periodic tasks: each repeats until the stop, whatever its calls raise."""

import asyncio

from genlock.domain.events import Event
from genlock.engine.periodic import PeriodicRunner, PeriodicTask
from tests.changes import Changes
from tests.engine.recorder import Recorder


class Calls:
    """A task's function that counts its calls, raises in the first few, and lets a test wait for a number of calls."""

    def __init__(self, failing: int = 0) -> None:
        self.count = 0
        self._failing = failing
        self._changes = Changes()

    async def __call__(self) -> None:
        self.count += 1
        self._changes.note()
        if self.count <= self._failing:
            raise RuntimeError("bug")

    async def reach(self, count: int) -> None:
        await self._changes.until(lambda: self.count >= count)


def runner(recorder: Recorder, *, leader: bool = True) -> PeriodicRunner:
    return PeriodicRunner(recorder, is_leader=lambda: leader)


async def test_a_task_repeats_and_reports_its_failures_by_name(recorder: Recorder) -> None:
    calls, tasks = Calls(failing=3), runner(recorder)
    tasks.start([PeriodicTask(name="sweep", period_seconds=0.0, run=calls)])

    await calls.reach(5)
    await tasks.stop()

    failures = [seen.facts for seen in recorder.of(Event.STAGE_ERROR)]
    assert failures == [{"step": "sweep", "error": "RuntimeError('bug')"}] * 3
    assert recorder.total("stage_errors", state="sweep") == 3


async def test_a_leaders_task_runs_on_the_leader_only(recorder: Recorder) -> None:
    everywhere, leader_only, tasks = Calls(), Calls(), runner(recorder, leader=False)
    tasks.start(
        [
            PeriodicTask(name="leader_only", period_seconds=0.0, run=leader_only, leader_only=True),
            PeriodicTask(name="everywhere", period_seconds=0.0, run=everywhere),
        ]
    )
    await everywhere.reach(5)
    await tasks.stop()
    assert leader_only.count == 0

    tasks = runner(recorder, leader=True)
    tasks.start([PeriodicTask(name="leader_only", period_seconds=0.0, run=leader_only, leader_only=True)])
    await leader_only.reach(2)
    await tasks.stop()


async def test_a_wake_event_starts_the_next_call_before_the_period_is_over(recorder: Recorder) -> None:
    calls, wake, tasks = Calls(), asyncio.Event(), runner(recorder)
    tasks.start([PeriodicTask(name="claim", period_seconds=3600.0, run=calls, wake=wake)])

    for count in (1, 2, 3):
        await calls.reach(count)
        wake.set()
    await calls.reach(4)
    await tasks.stop()
    assert calls.count == 4, "one call for each signal"


async def test_a_failed_call_waits_for_the_period_in_spite_of_a_wake_event(recorder: Recorder) -> None:
    calls, wake, tasks = Calls(failing=1), asyncio.Event(), runner(recorder)
    tasks.start([PeriodicTask(name="claim", period_seconds=3600.0, run=calls, wake=wake)])

    await calls.reach(1)
    for _ in range(5):
        wake.set()
        await asyncio.sleep(0)
    await tasks.stop()

    assert calls.count == 1


async def test_a_stopped_task_is_not_called_again(recorder: Recorder) -> None:
    calls, tasks = Calls(), runner(recorder)
    tasks.start([PeriodicTask(name="claim", period_seconds=0.0, run=calls)])
    await calls.reach(2)
    await tasks.stop()

    count = calls.count
    for _ in range(5):  # it would be called in each turn of the loop
        await asyncio.sleep(0)
    assert calls.count == count
