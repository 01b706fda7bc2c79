"""The worker: capacity, failing jobs, leases of long work, taking over dead instances, a clean stop."""

import asyncio
import math
from dataclasses import replace

import pytest

from genlock.domain.errors import StoreUnavailable, SubmitRefused
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.engine.collect import store_callback
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.engine.worker import UNCONFIGURED_SECONDS
from tests.engine.world import PRICE, URL, FaultProxy, World, callback_body, die, idle, success, work

LEASE = EngineRules().lease_seconds
SILENT = EngineRules().silent_seconds
QUICK = EngineRules(claim_seconds=0.01)


def age_running_jobs(engine: Engine) -> None:
    """Make everything the instance works on look as if it had begun long ago."""
    for running in engine.worker._jobs.values():
        running.since = -math.inf


async def deliver_slowly(world: World, engine: Engine) -> Job:
    """A delivery in mid-air."""
    await world.ended(engine)
    world.channel.gate.shut()
    taken = await world.claim_one(engine)
    await world.channel.gate.holds()
    return taken


# room


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
    world.clock.turn(UNCONFIGURED_SECONDS)
    await work(ours)
    assert [created.id for created, _ in world.provider.created] == [job.id]


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
    world.clock.turn(1)
    second = await world.ended(engine)
    assert [job.id for job in await world.store.claim_jobs(1, engine.ctx.lease)] == [first.id]
    assert [job.id for job in await world.store.claim_jobs(1, engine.ctx.lease)] == [second.id]


# poison


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
            world.clock.turn(pauses[-1])

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
    world.clock.turn(10)
    await work(engine)
    row = await world.see(job)
    assert (row.attempts, row.lease_owner) == (1, None)

    world.clock.turn(2)
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
    world.clock.turn(10)
    if operation == "end_job":
        world.provider.reports["task-1"] = success("task-1")
    await work(unlucky)
    assert len(world.recorder.of(Event.STAGE_ERROR, job=job.id)) == 1

    for _ in range(10):
        world.clock.turn(LEASE + 1)
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

    world.clock.turn(LEASE + 1)
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


# leases of long work


async def test_the_lease_of_a_long_delivery_is_renewed(world: World, engine: Engine) -> None:
    job = await deliver_slowly(world, engine)
    for _ in range(5):
        world.clock.turn(LEASE - 1)
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
        world.clock.turn(60 if end == "deadline" else 10)
        taken = await world.claim_one(engine)
    await world.channel.gate.holds()
    for _ in range(3):
        world.clock.turn(LEASE - 1)
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
    world.clock.turn(LEASE + 1)
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
    world.clock.turn(LEASE + 1)
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
    world.clock.turn(LEASE + 1)
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


# the dead


async def test_the_jobs_of_a_silent_instance_are_taken_over_long_before_their_leases_expire(world: World) -> None:
    dead, alive = world.engine(), world.engine()
    for engine in (dead, alive):
        await engine.worker.heartbeat()
    job = await deliver_slowly(world, dead)
    await die(dead)
    world.channel.gate.open()

    world.clock.turn(SILENT)
    await alive.worker.heartbeat()
    assert await work(alive) == [], "it may only be slow"
    world.clock.turn(0.5)
    await alive.worker.heartbeat()
    assert [row.id for row in await work(alive)] == [job.id]

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert [seen.facts for seen in world.recorder.of(Event.INSTANCE_DEAD)] == [{"peer": dead.ctx.instance, "jobs": 1}]
    assert world.recorder.total("takeovers") == 1
    assert SILENT + EngineRules().heartbeat_seconds + EngineRules().claim_seconds <= 5


async def test_a_dead_instance_is_reported_once(world: World) -> None:
    dead, *alive = (world.engine() for _ in range(4))
    await dead.worker.heartbeat()
    world.clock.turn(SILENT + 1)
    for _ in range(3):
        await asyncio.gather(*(engine.worker.heartbeat() for engine in alive))
    assert len(world.recorder.of(Event.INSTANCE_DEAD)) <= len(alive)
    world.recorder.seen.clear()
    await alive[0].worker.heartbeat()
    assert world.recorder.of(Event.INSTANCE_DEAD) == []


async def test_an_instance_taken_for_dead_registers_again_when_it_resumes(world: World) -> None:
    paused, alive = world.engine(), world.engine()
    await paused.worker.heartbeat()
    world.clock.turn(SILENT + 1)
    await alive.worker.heartbeat()
    await paused.worker.heartbeat()
    job = await world.ended(paused)
    await world.store.claim_jobs(1, paused.ctx.lease)
    world.clock.turn(SILENT + 1)

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


# the end


async def test_a_clean_stop_finishes_what_it_holds(world: World) -> None:
    engine = world.engine()
    await engine.start()
    job = await deliver_slowly(world, engine)
    stopping = asyncio.create_task(engine.stop())
    await asyncio.sleep(0)
    world.channel.gate.open()
    await stopping

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert world.channel.notices == [job.id]


async def test_a_clean_stop_releases_at_once_what_it_cannot_finish(world: World) -> None:
    engine, other = world.engine(EngineRules(stop_seconds=0.01)), world.engine()
    await engine.start()
    job = await deliver_slowly(world, engine)
    await engine.stop()

    world.channel.gate.open()
    assert [row.id for row in await work(other)] == [job.id]
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.channel.shown) == 1
    world.clock.turn(SILENT + 1)
    await other.worker.heartbeat()
    assert world.recorder.of(Event.INSTANCE_DEAD) == []


async def test_a_stopping_instance_claims_nothing_new_but_still_stores_callbacks(world: World) -> None:
    engine = world.engine()
    running = await world.running(engine)
    await engine.stop()

    order = await engine.order(world.order())
    await engine.callback("fake", world.provider.token(running), callback_body(task="task-1", urls=[URL]))

    assert engine.worker.busy == 0
    assert (order.state, order.lease_owner) == (State.QUEUED, None)
    assert len(await world.store.claim_callbacks(10, 1)) == 0
    world.clock.turn(4)
    assert len(await world.store.claim_callbacks(10, 1)) == 1


async def test_a_stopping_instance_sends_heartbeats_while_it_finishes_long_work(world: World) -> None:
    """Else a peer would take over a send that is on the proxy, and could not know its outcome."""
    proxy = FaultProxy(world.store)
    engine, peer = world.engine(EngineRules(heartbeat_seconds=0.01), store=proxy), world.engine()
    await engine.start()
    job = await deliver_slowly(world, engine)
    stopping = asyncio.create_task(engine.stop())
    await world.recorder.until(Event.LOCK_PASSIVE)
    for _ in range(4):
        world.clock.turn(SILENT - 0.5)
        await proxy.until("heartbeat", 2)  # the first may have been on its way
        await peer.worker.heartbeat()
        assert await world.store.claim_jobs(1, peer.ctx.lease) == []
    world.channel.gate.open()
    await stopping

    assert world.recorder.of(Event.INSTANCE_DEAD) == []
    row = await world.see(job)
    assert (row.lease_token, row.delivery, row.hold_state) == (job.lease_token, Delivery.DELIVERED, HoldState.CAPTURED)
    assert [call.operation for call in world.channel.calls] == ["put", "notify"]


async def test_a_stopped_instance_leaves_no_task_behind(world: World) -> None:
    engine = world.engine(EngineRules(stop_seconds=0.01))
    before = asyncio.all_tasks()
    await engine.start()
    await deliver_slowly(world, engine)
    await engine.stop()
    assert asyncio.all_tasks() == before


async def test_a_stop_waits_for_callbacks_only_for_a_limited_time(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(stop_seconds=0.01), store=proxy)
    job = await world.running(engine)
    proxy.gate("end_job").shut()
    body = callback_body(task="task-1", urls=[URL])
    engine.worker.start_callback(await store_callback(engine.ctx, "fake", world.provider.token(job), body))
    await proxy.gate("end_job").holds()

    await engine.stop()

    assert engine.worker.busy == 0
    assert proxy.gate("end_job").waiting == 0
    world.clock.turn(4)
    other = world.engine()
    await other.sweeper.sweep()
    await idle(other)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_stopping_twice_or_without_a_start_is_harmless(world: World, engine: Engine) -> None:
    await engine.stop()
    await engine.stop()
    assert await world.store.heartbeat("other", 1000.0) == []
