"""Leases: one statement decides which instance processes a job; a write with a stale token changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from genlock.domain.delivery import MESSAGE_ONLY
from genlock.domain.errors import ChannelOutcomeUnknown
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, Notice, State, Verdict
from genlock.domain.money import HoldState
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports import EndJob, FinishDelivery, Lease, Reschedule, Store
from tests.engine.fake_provider import URL
from tests.engine.faults import FaultProxy
from tests.engine.world import LEASE, PRICE, World, idle, work


async def test_one_of_many_instances_delivers_and_the_others_stop_at_once(world: World) -> None:
    engines = [world.engine() for _ in range(5)]
    job = await world.ended(engines[0])

    claims = await asyncio.gather(*(world.store.claim_jobs(10, engine.ctx.lease) for engine in engines))

    assert [row.id for rows in claims for row in rows] == [job.id]


async def test_many_jobs_are_divided_between_instances_without_overlap(world: World) -> None:
    engines = [world.engine() for _ in range(4)]
    jobs = [await world.ended(engines[0]) for _ in range(20)]

    claims = await asyncio.gather(
        *(world.store.claim_jobs(7, engine.ctx.lease) for engine in engines for _ in range(3))
    )

    assert sorted(row.id for rows in claims for row in rows) == [job.id for job in jobs]


async def test_a_valid_lease_is_respected_and_an_expired_one_claimed(world: World) -> None:
    first, second = world.engine(), world.engine()
    job = await world.ended(first)
    [held] = await world.store.claim_jobs(1, first.ctx.lease)

    world.clock.advance(LEASE - 1)
    assert await world.store.claim_jobs(1, second.ctx.lease) == []
    world.clock.advance(1)
    [taken] = await world.store.claim_jobs(1, second.ctx.lease)

    assert (taken.id, taken.lease_owner) == (job.id, second.ctx.instance)
    assert taken.lease_token == held.lease_token + 1


async def test_a_delivered_job_has_no_lease_and_is_not_due(world: World, engine: Engine) -> None:
    await world.ended(engine)
    await work(engine)
    world.clock.advance(1_000_000)
    assert await work(engine) == []


async def test_a_failed_attempt_releases_the_lease(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("put", ChannelOutcomeUnknown())
    await work(engine)
    assert (await world.see(job)).lease_owner is None

    world.clock.advance(2)
    assert [row.id for row in await work(world.engine())] == [job.id]
    assert world.channel.showing(URL) == [job.placeholder]


async def test_the_token_grows_with_every_holder_and_never_goes_back(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    tokens = [job.lease_token]
    for _ in range(5):
        world.clock.advance(40)
        await work(engine)
        tokens.append((await world.see(job)).lease_token)
    await world.call_back(engine, job)
    tokens.append((await world.see(job)).lease_token)
    assert tokens == list(range(tokens[0], tokens[0] + len(tokens)))


WRITES: dict[str, Callable[[Store, Job, Lease], Awaitable[object]]] = {
    "begin_submit": lambda store, job, _: store.begin_submit(job.id, job.lease_token, "hash", "m99"),
    "mark_submitted": lambda store, job, _: store.mark_submitted(job.id, job.lease_token, "task-99", 5.0),
    "end_job": lambda store, job, zombie: store.end_job(
        EndJob(job_id=job.id, token=job.lease_token, state=State.FAILED, parts=MESSAGE_ONLY), zombie
    ),
    "save_parts": lambda store, job, zombie: store.save_parts(job.id, job.lease_token, MESSAGE_ONLY, zombie),
    "finish delivered": lambda store, job, zombie: store.finish_delivery(
        FinishDelivery(job_id=job.id, token=job.lease_token, delivery=Delivery.DELIVERED, parts=job.parts), zombie
    ),
    "finish unknown": lambda store, job, zombie: store.finish_delivery(
        FinishDelivery(job_id=job.id, token=job.lease_token, delivery=Delivery.UNKNOWN, parts=job.parts), zombie
    ),
    "begin_notice": lambda store, job, _: store.begin_notice(job.id, job.lease_token),
    "reschedule": lambda store, job, _: store.reschedule(
        Reschedule(job_id=job.id, token=job.lease_token, after=1.0, attention_reason="x")
    ),
    "park": lambda store, job, _: store.reschedule(
        Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="x")
    ),
    "renew": lambda store, job, zombie: store.renew_lease(job.id, job.lease_token, zombie),
}


@pytest.mark.parametrize("stage", ["queued", "submitting", "running", "sending", "notice"])
async def test_no_write_with_a_stale_token_changes_anything(world: World, stage: str) -> None:
    zombie, holder = world.engine(), world.engine()
    if stage == "queued":
        job = await world.engine(EngineRules(capacity=0)).order(world.order())
    elif stage == "submitting":
        world.provider.faults.add("create", TimeoutError())
        job = await zombie.order(world.order())
        await idle(zombie)
    else:
        job = await (world.running if stage == "running" else world.ended)(zombie)
    if stage == "notice":
        proxy = FaultProxy(world.store)
        proxy.faults.add("begin_notice", TimeoutError())
        await work(world.engine(store=proxy))
    world.clock.advance(LEASE * 5)
    [stale] = await world.store.claim_jobs(1, zombie.ctx.lease)
    assert stale.id == job.id
    world.clock.advance(LEASE + 1)
    [held] = await world.store.claim_jobs(1, holder.ctx.lease)
    assert (held.notice is Notice.DUE) == (stage == "notice")
    before, money = await world.see(job), await world.store.ledger_entries(world.account, 10)

    for name, write in WRITES.items():
        answer = await write(world.store, stale, zombie.ctx.lease)
        assert answer in (False, None) or getattr(answer, "verdict", None) is Verdict.STALE, name
        assert await world.see(job) == before, name
        assert await world.store.ledger_entries(world.account, 10) == money, name


async def test_a_paused_instance_that_resumes_after_losing_its_lease_changes_nothing(
    world: World, engine: Engine
) -> None:
    paused = world.engine()
    job = await world.ended(engine, URL, f"{URL}?2")
    world.channel.gate.shut()
    held = await world.claim_one(paused)
    await world.channel.gate.holds()
    slow = world.channel.gate
    world.channel.gate = type(slow)()
    world.clock.advance(LEASE + 1)
    await work(engine)
    delivered = await world.see(job)
    assert delivered.delivery is Delivery.DELIVERED

    slow.open()
    await idle(paused)
    await paused.worker.heartbeat()
    await work(paused)

    assert await world.see(job) == delivered
    assert len(world.recorder.of(Event.LEASE_LOST, job=job.id, token=held.lease_token)) == 1
    assert len(world.channel.shown) == 2
    assert world.channel.notices == [job.id]
    assert await world.spent() == PRICE


async def test_a_paused_submitter_that_resumes_after_its_job_expired_only_stores_the_task_id(
    world: World, engine: Engine
) -> None:
    paused = world.engine()
    world.provider.create_gate.shut()
    job = await paused.order(world.order())
    await world.provider.create_gate.holds()
    for seconds in (LEASE + 1, EngineRules().grace_seconds + 1):
        world.clock.advance(seconds)
        await work(engine)
    expired = await world.see(job)
    assert (expired.state, expired.hold_state) == (State.EXPIRED, HoldState.RELEASED)

    world.provider.create_gate.open()
    await idle(paused)

    assert await world.see(job) == replace(expired, task_id="task-1", handle="at task-1")
    assert len(world.provider.created) == 1
