"""A whole instance with its loops: it works by itself, and what waits costs nothing but a row."""

import asyncio
from typing import Any

import pytest

from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.engine.context import EngineRules
from genlock.engine.invariants import End, ends
from tests.changes import poll_until
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.world import PRICE, World, idle, work

QUICK = EngineRules(claim_seconds=0.01, heartbeat_seconds=0.01, sweep_seconds=0.01)


def count_timers() -> int:
    loop: Any = asyncio.get_running_loop()
    return sum(not timer.cancelled() for timer in loop._scheduled)


async def test_a_started_instance_processes_a_job_from_order_to_notice(world: World) -> None:
    world.clock.run()
    engine = world.engine(QUICK)
    await engine.start()
    job = await engine.order(world.order())
    await world.recorder.until(Event.SUBMIT_OK)
    await engine.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await world.recorder.until(Event.NOTICE_SENT)
    await engine.stop()

    job = await world.see(job)
    assert ends(job) == [End.DELIVERED]
    assert await world.spent() == PRICE
    assert await world.store.violations(settled=True) == []
    assert [seen.event for seen in world.recorder.seen if seen.correlation_id == job.correlation_id] == [
        *(Event.GEN_CREATE, Event.JOB_CREATED, Event.SUBMIT_START, Event.SUBMIT_OK),
        *(Event.CALLBACK_RECEIVED, Event.CALLBACK_PARSED, Event.JOB_ENDED),
        *(Event.DELIVER_LOCK_WIN, Event.DELIVER_START, Event.DELIVER_OK, Event.MARK_DELIVERED, Event.NOTICE_SENT),
    ]


async def test_a_started_instance_finds_results_by_polling_alone(world: World) -> None:
    world.clock.run()
    engine = world.engine(QUICK, public_url=None)
    await engine.start()
    job = await engine.order(world.order())
    await world.recorder.until(Event.SUBMIT_OK)
    await idle(engine)
    world.provider.reports["task-1"] = success("task-1")
    world.clock.advance(10)
    await world.recorder.until(Event.NOTICE_SENT)
    await engine.stop()

    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_every_event_of_a_job_carries_its_correlation_id_and_job_id(world: World) -> None:
    engine = world.engine()
    job = await world.running(engine)
    await world.call_back(engine, job)
    for seen in world.recorder.seen:
        if seen.facts.get("job") == job.id:
            assert seen.correlation_id == job.correlation_id


async def test_instances_that_start_together_process_different_jobs(world: World) -> None:
    world.clock.run()
    jobs = [await world.ended(world.engine(EngineRules())) for _ in range(30)]
    engines = [world.engine(EngineRules(claim_seconds=0.01, capacity=3)) for _ in range(3)]
    await asyncio.gather(*(engine.start() for engine in engines))
    await world.recorder.until(Event.NOTICE_SENT, len(jobs))
    await asyncio.gather(*(engine.stop() for engine in engines))

    assert sorted(world.channel.notices) == [job.id for job in jobs]
    assert len(world.channel.shown) == len(jobs)
    assert len(world.recorder.of(Event.DELIVER_LOCK_WIN)) == len(jobs)
    assert await world.spent() == PRICE * len(jobs)


@pytest.mark.slow
async def test_waiting_jobs_are_rows_and_cost_no_task_and_no_timer(world: World) -> None:
    many = 3000
    engine = world.engine()
    accounts = [await world.store.ensure_account("chat", "bot", f"many-{number}") for number in range(50)]

    async def order(number: int) -> Job:
        return await engine.order(world.order(account_id=accounts[number % len(accounts)], price=0))

    await engine.start()
    await world.recorder.until(Event.LOCK_ACTIVE)
    tasks, timers = len(asyncio.all_tasks()), count_timers()
    for start in range(0, many, 500):
        await asyncio.gather(*(order(number) for number in range(start, start + 500)))
    while (await world.store.counts())[State.RUNNING] < many:
        await work(engine)  # orders that came when all capacity was taken wait for a claim, of the instance or by us

    await poll_until(lambda: engine.worker.busy == 0)
    await poll_until(lambda: len(asyncio.all_tasks()) <= tasks)  # a periodic task may be at a statement just now
    assert count_timers() < timers + many / 20  # asyncpg has one for each statement it remembers
    await engine.stop()
