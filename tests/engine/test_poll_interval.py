"""Polling is the net under the callbacks: wide while they come, close when they do not."""

from genlock.engine.engine import Engine
from genlock.engine.poll_interval import STREAK, UNCERTAIN, WITH_CALLBACKS, WITHOUT_CALLBACKS, PollInterval
from tests.engine.fake_provider import success
from tests.engine.world import World, work


def test_without_callbacks_the_interval_is_short() -> None:
    poll_interval = PollInterval(first=2.5, callbacks=False)
    assert [poll_interval.delay(age, 0.5) for age in (0, 30, 120)] == [2.5, 5, 15]
    for _ in range(STREAK):
        poll_interval.record_result(by_callback=True)
    assert poll_interval.factor == WITHOUT_CALLBACKS


def test_the_interval_grows_while_callbacks_arrive() -> None:
    poll_interval = PollInterval(first=2.5, callbacks=True)
    assert [poll_interval.delay(age, 0.5) for age in (0, 30, 120)] == [5, 10, 30]
    for _ in range(STREAK):
        assert poll_interval.factor == UNCERTAIN
        poll_interval.record_result(by_callback=True)
    assert [poll_interval.delay(age, 0.5) for age in (0, 30, 120)] == [20, 40, 120]


def test_the_interval_shrinks_while_callbacks_do_not_arrive() -> None:
    poll_interval = PollInterval(first=2.5, callbacks=True)
    for _ in range(STREAK):
        assert poll_interval.factor == UNCERTAIN
        poll_interval.record_result(by_callback=False)
    assert poll_interval.factor == WITHOUT_CALLBACKS


def test_one_result_by_the_other_way_resets_the_streak() -> None:
    poll_interval = PollInterval(first=2.5, callbacks=True)
    for way in (True, False):
        for _ in range(STREAK):
            poll_interval.record_result(by_callback=way)
        poll_interval.record_result(by_callback=not way)
        assert poll_interval.factor == UNCERTAIN


async def test_the_engine_adapts_the_interval_to_its_jobs(world: World, engine: Engine) -> None:
    for _ in range(STREAK):
        job = await world.running(engine)
        assert job.task_id is not None
        world.provider.reports[job.task_id] = success(job.task_id)
        world.clock.advance(10)
        await work(engine)
    assert engine.ctx.poll_interval("fake").factor == WITHOUT_CALLBACKS
    for _ in range(STREAK):
        job = await world.running(engine)
        await world.call_back(engine, job)
    assert engine.ctx.poll_interval("fake").factor == WITH_CALLBACKS
