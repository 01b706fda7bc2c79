"""Delivering again: retries, sends that replace a deleted message, and the store failing in between."""

import asyncio

import pytest

from genlock.domain.delivery import Level, Step
from genlock.domain.errors import (
    ActionNotAllowed,
    ChannelBusy,
    ChannelOutcomeUnknown,
    LevelRefused,
    StoreUnavailable,
)
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Notice
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.changes import PATIENCE_SECONDS
from tests.engine.fake_provider import URL
from tests.engine.faults import FaultProxy
from tests.engine.steps import URLS, die_at, pause
from tests.engine.world import LEASE, PRICE, World, idle, work
from tests.loop_clock import LoopClock

# retries


async def test_a_lost_answer_of_a_put_is_retried_and_shows_the_result_once(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("put", ChannelOutcomeUnknown(), done=True)
    await work(engine)
    waiting = await world.see(job)
    assert (waiting.delivery, waiting.lease_owner, waiting.hold_state) == (Delivery.PENDING, None, HoldState.HELD)
    assert world.channel.notices == []

    world.clock.advance(2)
    await work(engine)

    assert world.channel.shown == [(job.placeholder, f"address {URL}")]
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert world.channel.notices == [job.id]
    assert await world.spent() == PRICE


async def test_each_failed_attempt_waits_longer_than_the_one_before(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("put", *(ChannelOutcomeUnknown() for _ in range(12)))
    pauses = []
    for _ in range(12):
        await work(engine)
        pauses.append(await pause(world, job))
        world.clock.advance(pauses[-1])

    assert (await world.see(job)).attempts == 12
    assert len(world.recorder.of(Event.DELIVERY_RETRY, job=job.id)) == 12
    for attempt, seconds in enumerate(pauses):
        assert 0.75 <= seconds / min(300, 2**attempt) <= 1.25
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_busy_channel_is_retried_when_it_asked_and_counts_as_no_failure(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("put", *(ChannelBusy(77) for _ in range(60)))
    for _ in range(60):
        assert len(await work(engine)) == 1
        assert await pause(world, job) == 77
        world.clock.advance(76.9)
        assert await work(engine) == []
        world.clock.advance(0.1)

    assert (await world.see(job)).attempts == 0
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_after_too_many_attempts_the_hold_is_released_and_the_job_listed(world: World) -> None:
    engine = world.engine(EngineRules(delivery_attempts=3))
    job = await world.ended(engine)
    world.channel.faults.add("put", *(ChannelOutcomeUnknown() for _ in range(3)))
    for _ in range(3):
        await work(engine)
        world.clock.advance(300)

    [row] = await world.store.jobs_needing_attention(10)
    assert (row.id, row.delivery, row.hold_state) == (job.id, Delivery.UNDELIVERABLE, HoldState.RELEASED)
    assert row.attention_reason == "gave up after 3 tries"
    assert await work(engine) == []
    assert await world.spent() == 0


async def test_a_resend_that_is_given_up_keeps_the_file_that_the_channel_has(world: World, engine: Engine) -> None:
    """The provider's link is over by then: without the channel's own file the result could never be shown again."""
    job = await world.ended(engine)
    await work(engine)
    await operate.resend(engine.ctx, job.id, "operator")
    world.channel.faults.add("put", *(ChannelOutcomeUnknown() for _ in range(EngineRules().delivery_attempts)))
    while (await world.see(job)).due_at is not None:
        await work(engine)
        world.clock.advance(400)

    [row] = await world.store.jobs_needing_attention(10)
    assert (row.id, row.delivery) == (job.id, Delivery.UNDELIVERABLE)
    assert [part.file for part in row.parts] == [f"file-of-{job.placeholder}"]


async def test_undelivered_results_are_found_and_retried_without_a_restart(world: World) -> None:
    """The periodic tasks find the job by themselves."""
    world.clock.run()
    engine = world.engine(EngineRules(claim_seconds=0.01))
    job = await world.ended(engine)
    world.channel.faults.add("put", ChannelBusy(0.05), ChannelBusy(0.05))

    await engine.start()
    await world.recorder.until(Event.NOTICE_SENT)
    await engine.stop()

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert [call.operation for call in world.channel.calls] == ["put"] * 3 + ["notify"]


# deleted placeholders


async def test_a_deleted_message_is_replaced_by_one_send(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    await work(engine)

    done = await world.see(job)
    [message] = world.channel.showing(URL)
    assert done.placeholder == done.parts[0].message == message != job.placeholder
    assert [call.operation for call in world.channel.calls] == ["put", "send", "notify"]
    assert await world.spent() == PRICE


async def test_a_send_is_journaled_before_it_is_made(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    proxy = FaultProxy(world.channel)
    sender = world.engine(channel=proxy)
    gate = proxy.gate("send")
    gate.shut()
    await world.claim_one(sender)
    await gate.holds()

    [part] = (await world.see(job)).parts
    assert (part.step, part.gone) == (Step.SEND, True)
    gate.open()
    await idle(sender)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_send_tries_lower_levels_too(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.refused = {Level.ADDRESS}
    world.channel.faults.add("put", LevelRefused())
    await work(engine)

    assert len(world.channel.showing(URL)) == 1
    assert world.channel.levels("send") == [Level.BYTES]


async def test_a_send_that_was_not_made_is_repeated(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.faults.add("send", ChannelBusy(5))
    await work(engine)
    [part] = (await world.see(job)).parts
    assert (part.step, part.gone) == (Step.PUT, True)

    world.clock.advance(5)
    await work(engine)

    assert [call.operation for call in world.channel.calls] == ["put", "send", "send", "notify"]
    assert len(world.channel.showing(URL)) == 1
    assert (await world.see(job)).delivery is Delivery.DELIVERED


@pytest.mark.parametrize("shown", [True, False], ids=["shown", "not shown"])
async def test_a_send_whose_answer_was_lost_is_never_repeated(world: World, engine: Engine, *, shown: bool) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.faults.add("send", ChannelOutcomeUnknown(), done=shown)
    await work(engine)
    world.clock.advance(1_000_000)
    await work(engine)

    assert [call.operation for call in world.channel.calls].count("send") == 1
    assert len(world.channel.showing(URL)) == int(shown)
    [row] = await world.store.jobs_needing_attention(10)
    assert (row.id, row.delivery, row.hold_state) == (job.id, Delivery.UNKNOWN, HoldState.RELEASED)
    assert row.delivered_at is None
    assert len(world.recorder.of(Event.ATTENTION, job=job.id)) == 1
    assert await world.spent() == 0


@pytest.mark.parametrize("notice", [True, False], ids=["wanted", "not wanted"])
async def test_the_user_is_told_once_of_a_delivery_whose_outcome_is_unknown(
    world: World, engine: Engine, *, notice: bool
) -> None:
    job = await world.ended(engine, notice=notice)
    world.channel.delete(job.placeholder)
    world.channel.faults.add("send", ChannelOutcomeUnknown())
    world.channel.faults.add("notify", ChannelOutcomeUnknown(), done=True)
    await work(engine)
    world.clock.advance(1_000_000)
    await work(engine)

    assert world.channel.notices == [job.id]
    assert (await world.see(job)).notice is Notice.SENT


async def test_a_notice_of_an_unknown_delivery_is_sent_by_another_instance_after_a_crash(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.faults.add("send", ChannelOutcomeUnknown())
    dying = world.engine(store=(store := FaultProxy(world.store)))
    await die_at(store.gate("begin_notice"), world, dying)
    assert world.channel.notices == []

    world.clock.advance(LEASE + 1)
    await work(engine)

    assert world.channel.notices == [job.id]
    assert (await world.see(job)).delivery is Delivery.UNKNOWN


async def test_a_result_shown_again_after_an_unknown_delivery_is_free(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.faults.add("send", ChannelOutcomeUnknown())
    await work(engine)

    await operate.resend_for_user(engine.ctx, job.id, "user")
    await work(engine)

    assert len(world.channel.showing(URL)) == 1
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert await world.spent() == 0


async def test_a_result_that_becomes_undeliverable_while_it_is_asked_for_again_is_not_free(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine)
    world.channel.gate.shut()
    await world.claim_one(engine)
    await world.channel.gate.holds()
    other = world.engine(store=(store := FaultProxy(world.store)))
    reading = store.gate("job")
    store.tap = lambda moment, name: reading.shut() if (moment, name) == ("after", "job") else None
    asking = asyncio.create_task(operate.resend_for_user(other.ctx, job.id, "user"))
    held = asyncio.create_task(reading.holds())
    await asyncio.wait({asking, held}, return_when=asyncio.FIRST_COMPLETED)
    held.cancel()
    world.channel.closed = "blocked by the user"
    world.channel.gate.open()
    await idle(engine)
    store.tap = None
    reading.open()

    with pytest.raises(ActionNotAllowed):
        await asking
    row = await world.see(job)
    assert (row.delivery, row.hold_state) == (Delivery.UNDELIVERABLE, HoldState.RELEASED)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_send_whose_instance_crashed_is_never_repeated(world: World, engine: Engine, moment: str) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    store, channel = FaultProxy(world.store), FaultProxy(world.channel)
    dying = world.engine(store=store, channel=channel)
    gate = channel.gate("send") if moment == "before" else store.gate("finish_delivery")
    await die_at(gate, world, dying)

    world.clock.advance(LEASE + 1)
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.UNKNOWN
    assert len(world.channel.showing(URL)) == (1 if moment == "after" else 0)
    assert await world.spent() == 0


async def test_a_message_deleted_in_the_middle_of_several_parts_is_replaced_alone(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    world.channel.delete(job.placeholder)
    await work(engine)

    assert [call.operation for call in world.channel.calls] == ["put", "send"] + ["create_placeholder", "put"] * 3 + [
        "notify"
    ]
    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]


async def test_a_message_deleted_during_a_put_that_outlasts_its_lease_is_replaced(
    world: World, engine: Engine, loop_clock: LoopClock
) -> None:
    """The lease was renewed meanwhile, so the send that follows is ours to make."""
    job = await world.ended(engine)
    world.channel.gate.shut()
    await world.claim_one(engine)
    await world.channel.gate.holds()
    world.channel.delete(job.placeholder)
    loop_clock.advance(LEASE + 1)
    world.channel.gate.open()
    await idle(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.channel.showing(URL)) == 1


async def test_a_process_suspended_past_its_lease_does_not_call_the_channel(
    world: World, loop_clock: LoopClock
) -> None:
    """It fell asleep when its renewal was committed and woke up when the lease was over: before its next call."""
    proxy = FaultProxy(world.store)
    seconds = PATIENCE_SECONDS / 2  # the end of the work is still waited for
    engine = world.engine(EngineRules(lease_seconds=seconds), store=proxy)

    def sleep(moment: str, operation: str) -> None:
        if (moment, operation) == ("after", "save_parts"):
            loop_clock.advance(seconds)

    proxy.tap = sleep
    world.channel.refused = {Level.ADDRESS}
    job = await world.ended(engine)
    await work(engine)

    assert world.channel.levels() == [Level.ADDRESS]
    assert len(world.recorder.of(Event.LEASE_LOST, job=job.id)) == 1
    assert (await world.see(job)).delivery is Delivery.SENDING


# the store fails


@pytest.mark.parametrize("operation", ["save_parts", "finish_delivery", "begin_notice"])
@pytest.mark.parametrize("done", [True, False], ids=["after the commit", "before the commit"])
async def test_a_job_is_claimed_again_after_a_database_failure_in_its_delivery(
    world: World, engine: Engine, operation: str, *, done: bool
) -> None:
    proxy = FaultProxy(world.store)
    unlucky = world.engine(store=proxy)
    job = await world.ended(engine, *URLS)
    proxy.faults.add(operation, StoreUnavailable(), done=done)
    await work(unlucky)
    assert len(world.recorder.of(Event.STAGE_ERROR, job=job.id)) == 1

    world.clock.advance(LEASE + 1)
    await work(engine)

    row = await world.see(job)
    assert (row.delivery, row.hold_state, row.due_at) == (Delivery.DELIVERED, HoldState.CAPTURED, None)
    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]
    assert world.channel.notices == ([] if operation == "begin_notice" and done else [job.id])


async def test_the_same_delivery_by_two_instances_at_once_shows_one_result(world: World, engine: Engine) -> None:
    """The worst case: the first was thought dead and was only slow."""
    slow = world.engine()
    job = await world.ended(engine, *URLS)
    world.channel.gate.shut()
    await world.claim_one(slow)
    await world.channel.gate.holds()
    world.clock.advance(LEASE + 1)
    again = await world.claim_one(engine)
    await world.channel.gate.holds(2)
    world.channel.gate.open()
    await idle(slow, engine)

    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]
    assert world.channel.notices == [job.id]
    assert len(world.recorder.of(Event.MARK_DELIVERED, job=job.id)) == 1
    assert (await world.see(job)).lease_token == again.lease_token
    assert await world.spent() == PRICE
