"""The worker: capacity, and jobs that fail while others are processed."""

import asyncio
import math
from dataclasses import replace

import pytest

from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.engine.cancellation import cancel_and_wait
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.engine.worker import UNCONFIGURED_SECONDS
from tests.changes import PATIENCE_SECONDS, poll_until
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.faults import FaultProxy
from tests.engine.world import LEASE, PRICE, World, idle, work

QUICK = EngineRules(claim_seconds=0.01)


# capacity


async def test_jobs_beyond_the_capacity_stay_due_for_other_instances(world: World) -> None:
    world.clock.run()
    busy = world.engine(EngineRules(capacity=3, claim_seconds=0.01))
    jobs = [await world.ended(world.engine()) for _ in range(5)]
    world.channel.gate.shut()
    await busy.start()
    await world.channel.gate.holds(3)

    assert busy.worker.free_capacity == 0
    assert (await world.store.counts())["due"] == 2
    left = await world.store.claim_jobs(10, world.engine().ctx.lease)
    assert [job.id for job in left] == [job.id for job in jobs[3:]]
    world.channel.gate.open()
    await busy.stop()


async def test_a_job_is_processed_only_by_instances_that_have_its_bot(world: World) -> None:
    other = Engine(replace(world.engine().ctx, bots=frozenset({"other-bot"})))
    ours = Engine(replace(world.engine().ctx, bots=frozenset({"our-bot"})))
    job = (await world.store.accept_job(world.order(bot="our-bot"), None)).job

    await work(other)
    assert world.provider.created == [], "another bot's instance leaves the job to others"
    world.clock.advance(UNCONFIGURED_SECONDS)
    await work(ours)
    assert [created.id for created, _ in world.provider.created] == [job.id]


async def test_an_instance_that_left_a_job_to_others_claims_at_another_moment(world: World) -> None:
    """If it always claimed just before the instance that has the bot, that one would never get the job."""
    other = Engine(replace(world.engine(EngineRules(claim_seconds=3600)).ctx, bots=frozenset({"other-bot"})))
    job = (await world.store.accept_job(world.order(bot="our-bot"), None)).job

    async def left() -> bool:
        row = await world.see(job)
        return row.lease_token > job.lease_token and row.lease_owner is None

    claiming = asyncio.create_task(other.worker.claim())
    await poll_until(left)
    assert not claiming.done()
    await cancel_and_wait([claiming])

    ours = Engine(replace(world.engine(EngineRules(claim_seconds=3600)).ctx, bots=frozenset({"our-bot"})))
    world.clock.advance(UNCONFIGURED_SECONDS)
    await asyncio.wait_for(ours.worker.claim(), PATIENCE_SECONDS)


async def test_a_full_instance_claims_again_as_soon_as_capacity_is_free(world: World) -> None:
    """Its next look is an hour away, so it is the freed room that wakes it."""
    world.clock.run()
    engine = world.engine(EngineRules(capacity=2, claim_seconds=3600))
    jobs = [await world.ended(world.engine()) for _ in range(7)]

    await engine.start()
    await world.recorder.until(Event.NOTICE_SENT, len(jobs))

    assert sorted(world.channel.notices) == [job.id for job in jobs]
    await engine.stop()


async def test_callbacks_free_their_capacity_when_they_are_processed(world: World) -> None:
    """The claim loop found no room because of a callback, and no job will ever wake it."""
    world.clock.run()
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(capacity=1, claim_seconds=0.01, sweep_seconds=3600), store=proxy)
    gate = proxy.gate("settle_callback")
    gate.shut()
    await engine.callback("fake", None, callback_body())
    await gate.holds()
    await engine.start()
    assert engine.worker.free_capacity == 0
    job = await world.ended(world.engine())
    await world.recorder.until(Event.LOCK_ACTIVE)

    gate.open()
    await world.recorder.until(Event.NOTICE_SENT)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    await engine.stop()


async def test_a_delivery_begun_by_a_callback_takes_the_capacity_of_one_job(world: World) -> None:
    engine = world.engine(EngineRules(capacity=2))
    job = await world.running(engine)
    world.channel.gate.shut()
    await engine.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await world.channel.gate.holds()
    assert (engine.worker.busy, engine.worker.free_capacity) == (1, 1)


async def test_the_longest_overdue_goes_first(world: World, engine: Engine) -> None:
    first = await world.ended(engine)
    world.clock.advance(1)
    second = await world.ended(engine)
    assert [job.id for job in await world.store.claim_jobs(1, engine.ctx.lease)] == [first.id]
    assert [job.id for job in await world.store.claim_jobs(1, engine.ctx.lease)] == [second.id]


# failing jobs


async def test_a_job_that_always_fails_is_parked_after_its_attempts_while_others_are_processed(world: World) -> None:
    engine = world.engine(EngineRules(stage_attempts=4))
    world.channel.poison = "https://files.example/poison.png"
    poisoned = await world.ended(engine, world.channel.poison)
    pauses = []
    for attempt in range(4):
        other = await world.ended(engine)
        await work(engine)
        assert (await world.see(other)).delivery is Delivery.DELIVERED
        row = await world.see(poisoned)
        assert row.attempts == attempt + 1
        if row.due_at is not None:
            pauses.append((row.due_at - world.clock.now()).total_seconds())
            world.clock.advance(pauses[-1])

    assert [round(math.log2(pause)) for pause in pauses] == [0, 1, 2]
    [row] = await world.store.jobs_needing_attention(10)
    assert (row.id, row.due_at, row.lease_owner) == (poisoned.id, None, None)
    assert row.attention_reason == "stage error: RuntimeError('bug')"
    assert len(world.recorder.of(Event.ATTENTION, job=poisoned.id, reason=row.attention_reason)) == 1
    assert world.recorder.total("stage_errors") == 4
    assert (await world.wallet()).held == PRICE


async def test_a_result_that_always_fails_is_counted_from_its_first_attempt_after_a_poll(world: World) -> None:
    """The poll ended the job and took a newer lease; the failure must be written under that one."""
    engine = world.engine(EngineRules(stage_attempts=2))
    job = await world.running(engine)
    world.provider.reports["task-1"] = success("task-1")
    world.channel.faults.add("put", RuntimeError("bug"), RuntimeError("bug"))
    world.clock.advance(10)
    await work(engine)
    row = await world.see(job)
    assert (row.attempts, row.lease_owner) == (1, None)

    world.clock.advance(2)
    await work(engine)

    assert [row.id for row in await world.store.jobs_needing_attention(10)] == [job.id]


@pytest.mark.parametrize("operation", ["begin_submit", "mark_submitted", "end_job", "reschedule"])
@pytest.mark.parametrize("done", [True, False], ids=["after the commit", "before the commit"])
async def test_a_job_is_claimed_again_after_a_database_failure_in_its_stage(
    world: World, engine: Engine, operation: str, *, done: bool
) -> None:
    proxy = FaultProxy(world.store)
    unlucky = world.engine(store=proxy)
    proxy.faults.add(operation, StoreUnavailable(), done=done)
    job = await unlucky.order(world.order())
    await idle(unlucky)
    world.clock.advance(10)
    if operation == "end_job":
        world.provider.reports["task-1"] = success("task-1")
    await work(unlucky)
    assert len(world.recorder.of(Event.STAGE_ERROR, job=job.id)) == 1

    for _ in range(10):
        world.clock.advance(LEASE + 1)
        await work(engine)
    if (await world.see(job)).state is State.RUNNING:
        await world.call_back(engine, job)

    row = await world.see(job)
    assert (row.delivery, row.due_at, row.lease_owner) == (Delivery.DELIVERED, None, None)
    assert len(world.provider.created) <= 1
    assert await world.spent() == (PRICE if row.state is State.SUCCEEDED else 0)


async def test_a_database_failure_while_a_failing_job_is_parked_does_not_stop_the_worker(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(store=proxy)
    job = await world.ended(engine)
    world.channel.faults.add("put", RuntimeError("bug"))
    proxy.faults.add("reschedule", StoreUnavailable())
    await work(engine)
    assert len(world.recorder.of(Event.STAGE_ERROR, job=job.id)) == 2

    world.clock.advance(LEASE + 1)
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_claiming_continues_after_any_failure_of_the_store(world: World) -> None:
    world.clock.run()
    proxy = FaultProxy(world.store)
    proxy.faults.add("claim_jobs", StoreUnavailable(), RuntimeError("read-only server"), OSError())
    engine = world.engine(QUICK, store=proxy)
    job = await world.ended(world.engine())

    await engine.start()
    await world.recorder.until(Event.NOTICE_SENT)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.recorder.of(Event.STAGE_ERROR, step="claim_jobs")) == 3
    await engine.stop()
