"""An update and a job that may both have crashed instances are not tried at the same time."""

import asyncio

from genlock.domain.job import Delivery, Job
from genlock.domain.poison import ISOLATED_FROM, SLOTS
from genlock.domain.update import NewUpdate, Update
from genlock.engine.engine import Engine
from genlock.engine.updates import UpdateWorker
from genlock.ports import Lease
from tests.engine.update_instance import message
from tests.engine.world import World, idle

#: the longest wait before a job whose worker crashed is claimed again, in seconds
WAIT_MAX = 32.0


async def suspected_update(world: World) -> None:
    """Store an update during which three instances crashed."""
    await world.store.store_update(message(1, number=1))
    for _ in range(ISOLATED_FROM):
        lease = Lease(owner="dead", seconds=30.0)
        assert await world.store.claim_update_queues(1, lease, bots=["bot"], urgent=False)
        await world.store.release_update_queues("dead", crashed=True)
    world.clock.advance(WAIT_MAX)


async def suspected_job(world: World, engine: Engine) -> Job:
    """Make a job during whose delivery three instances crashed."""
    job = await world.ended(engine)
    lease = Lease(owner="dead", seconds=30.0)
    for _ in range(ISOLATED_FROM):
        assert await world.store.claim_jobs(1, lease) or await world.store.claim_poison_jobs(SLOTS, lease)
        await world.store.release_leases("dead", crashed=True)
    world.clock.advance(WAIT_MAX)
    return await world.see(job)


async def test_a_suspected_update_and_a_suspected_job_are_not_tried_at_the_same_time(
    world: World, engine: Engine
) -> None:
    """Otherwise every crash by the job counts for the update, too, and it is dead-lettered with it."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def handle(_: Update) -> None:
        begun.set()
        await go_on.wait()

    async def nothing(_: NewUpdate) -> None: ...

    updates = UpdateWorker(engine.ctx, world.store, {"bot": handle}, nothing)
    updates.open()
    job = await suspected_job(world, engine)
    await suspected_update(world)
    world.channel.gate.shut()
    await asyncio.gather(engine.worker.claim_poison_jobs(), updates.claim_poison_queues())
    await world.channel.gate.holds()
    assert not updates._tasks()

    world.channel.gate.open()
    await idle(engine)
    await updates.claim_poison_queues()
    await begun.wait()
    second = await suspected_job(world, engine)
    await engine.worker.claim_poison_jobs()
    assert engine.worker.busy == 0

    go_on.set()
    await asyncio.wait(updates._tasks())
    await engine.worker.claim_poison_jobs()
    await idle(engine)
    assert [(await world.see(each)).delivery for each in (job, second)] == [Delivery.DELIVERED] * 2
