"""The number of tasks that a provider works on at once, kept by several instances together."""

import asyncio

from genlock.domain.job import Job, State
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.fake_provider import success
from tests.engine.world import World, die, idle

MOST = 2


def limited(world: World) -> Engine:
    """An instance whose provider may work on two tasks at once."""
    engine = world.engine()
    engine.ctx.concurrency["fake"] = MOST  # type: ignore[index]
    return engine


async def states(world: World, jobs: list[Job]) -> list[State]:
    return [(await world.see(job)).state for job in jobs]


async def work(world: World, *engines: Engine, seconds: float = 10.0) -> None:
    """Let some time pass, and the instances do what is due."""
    world.clock.advance(seconds)
    for engine in engines:
        await engine.worker.claim()
    await idle(*engines)


async def test_two_instances_together_do_not_order_more_than_the_provider_may_work_on(world: World) -> None:
    instances = [limited(world), limited(world)]
    jobs = await asyncio.gather(*(instances[number % 2].order(world.order()) for number in range(6)))
    await idle(*instances)
    assert sorted(await states(world, jobs)) == [State.QUEUED] * 4 + [State.RUNNING] * MOST
    assert len(world.provider.created) == MOST

    for _ in range(3):
        for job in [job for job in [await world.see(job) for job in jobs] if job.state is State.RUNNING]:
            assert job.task_id is not None
            world.provider.reports[job.task_id] = success(job.task_id)
        await work(world, *instances)
        await work(world, *instances)
        running = [state for state in await states(world, jobs) if state in (State.RUNNING, State.SUBMITTING)]
        assert len(running) <= MOST
    assert await states(world, jobs) == [State.SUCCEEDED] * 6
    assert len(world.provider.created) == 6


async def test_a_crash_during_the_call_keeps_the_slot_until_the_order_is_settled(world: World) -> None:
    crashing, other = limited(world), limited(world)
    world.provider.create_gate.shut()
    lost = [await crashing.order(world.order()) for _ in range(MOST)]
    await world.provider.create_gate.reached(MOST)
    await die(crashing)
    world.provider.create_gate.open()
    waiting = await other.order(world.order(deadline_seconds=9000.0))
    await work(world, other, seconds=EngineRules().lease_seconds + 1)
    assert await states(world, [*lost, waiting]) == [State.SUBMITTING, State.SUBMITTING, State.QUEUED]
    assert len(world.provider.created) == MOST, "the provider may be working on both"

    await work(world, other, seconds=EngineRules().grace_seconds + 1)
    await work(world, other)
    assert await states(world, [*lost, waiting]) == [State.EXPIRED, State.EXPIRED, State.RUNNING]
