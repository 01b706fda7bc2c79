"""A stop ends every task, also one in which a library swallowed the cancellation."""

import asyncio

import pytest
import pytest_asyncio

from genlock.domain.update import Update
from genlock.engine import cancellation
from genlock.engine.cancellation import cancel_and_wait, uninterrupted
from genlock.engine.context import EngineRules
from genlock.engine.periodic import PeriodicRunner, PeriodicTask
from genlock.stores.database import SqlDatabase
from tests.changes import PATIENCE_SECONDS
from tests.engine.recorder import Recorder
from tests.engine.update_instance import make_instance, message
from tests.engine.world import World


class SwallowingCall:
    """A call that waits forever and swallows its first cancellation, as `asyncio.wait_for` of Python 3.11 may."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.cancellations = 0

    async def __call__(self) -> None:
        self.begun.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancellations += 1
                if self.cancellations > 1:
                    raise


@pytest_asyncio.fixture(loop_scope="session")
async def call(monkeypatch: pytest.MonkeyPatch) -> SwallowingCall:
    monkeypatch.setattr(cancellation, "CANCEL_SECONDS", 0.01)
    return SwallowingCall()


async def test_all_tasks_have_ended_whatever_each_does_with_its_cancellation(call: SwallowingCall) -> None:
    ended = asyncio.create_task(asyncio.sleep(0))
    tasks = [ended, asyncio.create_task(asyncio.sleep(3600)), asyncio.create_task(call())]
    await call.begun.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await cancel_and_wait(tasks)
    assert [task.cancelled() for task in tasks] == [False, True, True]
    await cancel_and_wait([])


async def test_a_first_cancellation_lets_uninterrupted_work_end_and_comes_after_it() -> None:
    begun, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        ended.set()

    task = asyncio.create_task(uninterrupted(work()))
    await begun.wait()
    task.cancel()
    asyncio.get_running_loop().call_soon(go_on.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_uninterrupted_work_that_does_not_end_is_cancelled_by_a_second_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cancellation, "CANCEL_SECONDS", 0.01)
    begun, cut_off = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(9):
                await asyncio.sleep(0)
            cut_off.set()

    task = asyncio.create_task(uninterrupted(work()))
    await begun.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await cancel_and_wait([task])
    assert task.cancelled()
    assert cut_off.is_set(), "it has ended when the wait for it ends"


async def test_uninterrupted_work_returns_its_answer_and_raises_its_error() -> None:
    async def work(error: Exception | None) -> int:
        if error:
            raise error
        return 7

    assert await uninterrupted(work(None)) == 7
    with pytest.raises(ValueError, match="bad"):
        await uninterrupted(work(ValueError("bad")))


async def test_a_periodic_task_that_swallows_its_cancellation_is_cancelled_again(
    recorder: Recorder, call: SwallowingCall
) -> None:
    tasks = PeriodicRunner(recorder, is_leader=lambda: True)
    tasks.start([PeriodicTask(name="sweep", period_seconds=0.0, run=call)])
    await call.begun.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await tasks.stop()
    assert call.cancellations == 2


async def test_a_delivery_that_swallows_its_cancellation_is_cancelled_again(
    world: World, call: SwallowingCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = world.engine(EngineRules(stop_seconds=0.01))
    await world.ended(engine)
    monkeypatch.setattr(world.channel.gate, "through", call)
    await world.claim_one(engine)
    await call.begun.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await engine.stop()
    assert (call.cancellations, engine.worker.busy) == (2, 0)


async def test_a_handler_that_swallows_its_cancellation_is_cancelled_again(
    live_store: SqlDatabase, recorder: Recorder, call: SwallowingCall
) -> None:
    instance = make_instance(live_store, recorder, stop_seconds=0.01)

    async def wait(_: Update) -> None:
        await call()

    instance.act = wait
    await instance.engine.start()
    await instance.updates.receive(message(1))
    await call.begun.wait()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await instance.engine.stop()
    assert (call.cancellations, instance.seen) == (2, [])
