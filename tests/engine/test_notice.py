"""The notice under a result: sent after the result is recorded, at most once."""

import pytest

from genlock.domain.errors import (
    ChannelBusy,
    ChannelOutcomeUnknown,
    RecipientUnreachable,
    StoreUnavailable,
)
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Notice
from genlock.domain.money import HoldState
from genlock.engine.engine import Engine
from tests.engine.faults import FaultProxy
from tests.engine.steps import die_at, pause
from tests.engine.world import LEASE, PRICE, World, idle, work


async def test_the_notice_comes_after_the_result_is_recorded(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    proxy = FaultProxy(world.channel)
    gate = proxy.gate("notify")
    gate.shut()
    notifier = world.engine(channel=proxy)
    await world.claim_one(notifier)
    await gate.holds()

    row = await world.see(job)
    assert (row.delivery, row.hold_state, row.notice) == (Delivery.DELIVERED, HoldState.CAPTURED, Notice.SENT)
    gate.open()
    await idle(notifier)
    assert world.channel.notices == [job.id]


async def test_an_order_that_wants_no_notice_gets_none(world: World, engine: Engine) -> None:
    job = await world.ended(engine, notice=False)
    await work(engine)
    row = await world.see(job)
    assert (row.notice, row.due_at, row.lease_owner) == (Notice.NONE, None, None)
    assert world.channel.notices == []


@pytest.mark.parametrize("done", [True, False], ids=["sent", "not sent"])
@pytest.mark.parametrize(
    "fault", [ChannelOutcomeUnknown(), RecipientUnreachable("blocked"), RuntimeError("bug")], ids=repr
)
async def test_a_notice_whose_answer_was_lost_is_not_sent_again(
    world: World, engine: Engine, fault: Exception, *, done: bool
) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("notify", fault, done=done)
    await work(engine)
    world.clock.advance(1_000_000)
    assert await work(engine) == []

    assert world.channel.notices == [job.id] * done
    assert (await world.see(job)).notice is Notice.SENT
    assert len(world.recorder.of(Event.NOTICE_FAIL)) == 1
    assert await world.spent() == PRICE


async def test_a_notice_whose_instance_crashed_is_not_sent_again(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    proxy = FaultProxy(world.channel)
    gate = proxy.gate("notify")
    dying = world.engine(channel=proxy)
    await die_at(gate, world, dying)

    world.clock.advance(LEASE + 1)
    assert await work(engine) == []
    assert world.channel.notices == []
    assert (await world.see(job)).due_at is None


async def test_a_notice_is_sent_by_another_instance_if_the_first_crashed_before_it_was_journaled(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine)
    proxy = FaultProxy(world.store)
    gate = proxy.gate("begin_notice")
    dying = world.engine(store=proxy)
    await die_at(gate, world, dying)

    world.clock.advance(LEASE + 1)
    await work(engine)

    assert world.channel.notices == [job.id]
    assert len(world.channel.shown) == 1


async def test_a_notice_is_retried_when_a_busy_channel_asked(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("notify", ChannelBusy(40), ChannelBusy(40))
    await work(engine)
    for _ in range(2):
        assert (await world.see(job)).notice is Notice.DUE
        assert await pause(world, job) == 40
        world.clock.advance(40)
        await work(engine)

    assert world.channel.notices == [job.id]
    assert len(world.channel.shown) == 1
    row = await world.see(job)
    assert (row.notice, row.due_at) == (Notice.SENT, None)


async def test_a_notice_to_a_channel_that_stays_busy_is_given_up(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    failed = engine.ctx.rules.stage_attempts + 1
    world.channel.faults.add("notify", *(ChannelBusy(40, failed=True) for _ in range(100)))
    for _ in range(failed):
        await work(engine)
        world.clock.advance(40)

    row = await world.see(job)
    assert (row.notice, row.due_at, row.delivery) == (Notice.SENT, None, Delivery.DELIVERED)
    assert len(world.recorder.of(Event.NOTICE_FAIL, reason="busy for too long")) == 1


async def test_a_notice_waits_for_a_day_while_the_channel_asks_for_it(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("notify", *(ChannelBusy(3600) for _ in range(100)))
    for _ in range(24):
        await work(engine)
        assert (await world.see(job)).notice is Notice.DUE
        world.clock.advance(3600)
    world.clock.advance(3600)
    await work(engine)

    assert (await world.see(job)).notice is Notice.SENT
    assert len(world.recorder.of(Event.NOTICE_FAIL, reason="busy for too long")) == 1


@pytest.mark.parametrize("follow_up", ["runs", "is over"])
async def test_a_notice_refused_for_now_is_not_lost_although_its_job_was_leased_again(
    world: World, engine: Engine, follow_up: str
) -> None:
    """A cancelled job is leased again at once, to ask what its task cost, while its notice is on its way."""
    job = await world.running(engine)
    calling = FaultProxy(world.channel)
    notice = calling.gate("notify")
    notice.shut()
    world.channel.faults.add("notify", ChannelBusy(3))
    notifier = world.engine(channel=calling)
    await notifier.cancel(job.id, "the user")
    await notice.holds()
    [leased] = await world.store.claim_jobs(1, engine.ctx.lease)
    if follow_up == "is over":
        await engine.ctx.reschedule(leased, after=None)
    notice.open()
    await idle(notifier)
    if follow_up == "runs":
        await engine.ctx.reschedule(leased, after=None)

    assert (await world.see(job)).notice is Notice.DUE
    world.clock.advance(3)
    await work(engine)
    assert world.channel.notices == [job.id]


async def test_a_notice_refused_for_now_is_not_lost_although_the_database_does_not_answer(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine)
    store = FaultProxy(world.store)
    store.faults.add("return_notice", StoreUnavailable(), StoreUnavailable())
    world.channel.faults.add("notify", ChannelBusy(40))
    await work(world.engine(store=store))

    assert (await world.see(job)).notice is Notice.DUE
    world.clock.advance(40)
    await work(engine)
    assert world.channel.notices == [job.id]
