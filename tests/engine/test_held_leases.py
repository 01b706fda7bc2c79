"""Leases of long work are renewed, and work whose lease is lost or taken over stops."""

import asyncio

import pytest

from genlock.domain.errors import SubmitRefused
from genlock.domain.events import Event
from genlock.domain.job import Delivery
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.fake_provider import success
from tests.engine.faults import FaultProxy
from tests.engine.slow_deliveries import age_running_jobs, deliver_slowly
from tests.engine.world import LEASE, SILENT, World, die, idle, work

# leases of long work


async def test_the_lease_of_a_long_delivery_is_renewed(world: World, engine: Engine) -> None:
    job = await deliver_slowly(world, engine)
    for _ in range(5):
        world.clock.advance(LEASE - 1)
        age_running_jobs(engine)
        await engine.worker.renew_leases()
        assert await world.store.claim_jobs(1, world.engine().ctx.lease) == []

    world.channel.gate.open()
    await idle(engine)
    row = await world.see(job)
    assert (row.delivery, row.lease_token) == (Delivery.DELIVERED, job.lease_token)


@pytest.mark.parametrize("end", ["poll", "refused", "deadline"])
async def test_the_lease_of_a_long_delivery_is_renewed_whatever_ended_the_job(
    world: World, engine: Engine, end: str
) -> None:
    """The stage that ended the job took a newer lease than the worker had claimed."""
    world.channel.gate.shut()
    if end == "refused":
        world.provider.faults.add("create", SubmitRefused("nsfw"))
        taken = await engine.order(world.order())
    else:
        await world.running(engine, deadline_seconds=60)
        if end == "poll":
            world.provider.reports["task-1"] = success("task-1")
        world.clock.advance(60 if end == "deadline" else 10)
        taken = await world.claim_one(engine)
    await world.channel.gate.holds()
    for _ in range(3):
        world.clock.advance(LEASE - 1)
        age_running_jobs(engine)
        await engine.worker.renew_leases()
        assert await world.store.claim_jobs(1, world.engine().ctx.lease) == []

    world.channel.gate.open()
    await idle(engine)
    row = await world.see(taken)
    assert (row.delivery, row.lease_token) == (Delivery.DELIVERED, taken.lease_token + 1)
    assert world.recorder.of(Event.LEASE_LOST) == []
    assert len(world.channel.shown) == 1


async def test_short_work_is_not_renewed(world: World) -> None:
    proxy = FaultProxy(world.store)
    proxy.faults.add("renew_lease", AssertionError("renewed"))
    engine = world.engine(store=proxy)
    await deliver_slowly(world, engine)
    await engine.worker.renew_leases()


async def test_work_on_a_job_is_cancelled_when_its_lease_is_lost(world: World, engine: Engine) -> None:
    job = await deliver_slowly(world, engine)
    world.clock.advance(LEASE + 1)
    [again] = await world.store.claim_jobs(1, world.engine().ctx.lease)
    age_running_jobs(engine)

    await engine.worker.renew_leases()
    await idle(engine)

    assert len(world.recorder.of(Event.LEASE_LOST, job=job.id, token=job.lease_token)) == 1
    assert world.channel.gate.waiting == 0
    assert world.channel.shown == []
    assert await world.see(job) == again


async def test_a_newer_lease_for_the_same_job_replaces_the_older_work(world: World, engine: Engine) -> None:
    job = await deliver_slowly(world, engine)
    world.clock.advance(LEASE + 1)
    await world.claim_one(engine)
    await world.channel.gate.reached(2)
    assert world.channel.gate.waiting == 1, "the older task was cancelled"
    world.channel.gate.open()
    await idle(engine)

    assert [call.operation for call in world.channel.calls] == ["put", "put", "notify"]
    assert len(world.channel.shown) == 1
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_an_older_lease_that_arrives_late_does_not_replace_the_newer_work(world: World, engine: Engine) -> None:
    """The answers of two claims crossed."""
    await world.ended(engine)
    [older] = await world.store.claim_jobs(1, engine.ctx.lease)
    world.clock.advance(LEASE + 1)
    [newer] = await world.store.claim_jobs(1, engine.ctx.lease)
    world.channel.gate.shut()
    engine.worker.start(newer)
    await world.channel.gate.holds()

    engine.worker.start(older)
    world.channel.gate.open()
    await idle(engine)

    assert [call.operation for call in world.channel.calls] == ["put", "notify"]
    assert world.recorder.of(Event.LEASE_LOST) == []
    assert (await world.see(newer)).delivery is Delivery.DELIVERED


async def test_a_notice_being_sent_is_not_cancelled_though_its_job_has_no_lease(world: World) -> None:
    """The job has none any more: it was done when the notice was journaled."""
    proxy = FaultProxy(world.channel)
    engine = world.engine(channel=proxy)
    gate = proxy.gate("notify")
    gate.shut()
    job = await world.ended(engine)
    await world.claim_one(engine)
    await gate.holds()
    age_running_jobs(engine)

    await engine.worker.renew_leases()
    gate.open()
    await idle(engine)

    assert world.channel.notices == [job.id]
    assert world.recorder.of(Event.LEASE_LOST) == []


# crashed instances


async def test_the_jobs_of_a_silent_instance_are_taken_over_long_before_their_leases_expire(world: World) -> None:
    dead, alive = world.engine(), world.engine()
    for engine in (dead, alive):
        await engine.worker.heartbeat()
    job = await deliver_slowly(world, dead)
    await die(dead)
    world.channel.gate.open()

    world.clock.advance(SILENT)
    await alive.worker.heartbeat()
    assert await work(alive) == [], "it may only be slow"
    world.clock.advance(0.5)
    await alive.worker.heartbeat()
    assert [row.id for row in await work(alive)] == [job.id]

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert [seen.facts for seen in world.recorder.of(Event.INSTANCE_DEAD)] == [{"peer": dead.ctx.instance, "jobs": 1}]
    assert world.recorder.total("takeovers") == 1
    assert SILENT + EngineRules().heartbeat_seconds + EngineRules().claim_seconds <= 5


async def test_a_dead_instance_is_reported_once(world: World) -> None:
    dead, *alive = (world.engine() for _ in range(4))
    await dead.worker.heartbeat()
    world.clock.advance(SILENT + 1)
    for _ in range(3):
        await asyncio.gather(*(engine.worker.heartbeat() for engine in alive))
    assert len(world.recorder.of(Event.INSTANCE_DEAD)) <= len(alive)
    world.recorder.seen.clear()
    await alive[0].worker.heartbeat()
    assert world.recorder.of(Event.INSTANCE_DEAD) == []


async def test_an_instance_taken_for_dead_registers_again_when_it_resumes(world: World) -> None:
    paused, alive = world.engine(), world.engine()
    await paused.worker.heartbeat()
    world.clock.advance(SILENT + 1)
    await alive.worker.heartbeat()
    await paused.worker.heartbeat()
    job = await world.ended(paused)
    await world.store.claim_jobs(1, paused.ctx.lease)
    world.clock.advance(SILENT + 1)

    await alive.worker.heartbeat()

    assert [row.id for row in await work(alive)] == [job.id]


async def test_a_lease_acquired_unseen_is_released_at_the_next_heartbeat(world: World) -> None:
    """A commit's answer was lost and the statement was made again: it found its own lease and took it for another's."""
    engine, other = world.engine(), world.engine()
    mine = await deliver_slowly(world, engine)
    unseen = await world.ended(other)
    await world.store.claim_jobs(1, engine.ctx.lease)
    world.store.session.uncertain_commits += 1

    await engine.worker.heartbeat()

    assert [row.id for row in await world.store.claim_jobs(10, other.ctx.lease)] == [unseen.id]
    assert (await world.see(mine)).lease_owner == engine.ctx.instance
