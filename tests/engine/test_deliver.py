"""Delivering: a result is put on its messages, in order, once; what cannot be repeated is journaled first."""

import asyncio
import time

import pytest

from genlock.domain.delivery import Level, Step
from genlock.domain.errors import (
    ChannelBusy,
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
    StoreUnavailable,
)
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.world import PRICE, URL, Call, FaultProxy, Gate, World, die, idle, work

URLS = [f"https://files.example/{number}.png" for number in range(4)]
LEASE = EngineRules().lease_seconds


async def pause(world: World, job: Job) -> float:
    """Seconds until the job is due."""
    row = await world.see(job)
    assert row.due_at is not None
    return (row.due_at - world.clock.now()).total_seconds()


async def die_at(gate: Gate, world: World, dying: Engine) -> None:
    """The instance takes the job, comes as far as the gate, and is gone."""
    gate.shut()
    await world.claim_one(dying)
    await gate.holds()
    await die(dying)


# the way of a delivery


async def test_a_result_replaces_the_message_with_the_button(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    await work(engine)

    done = await world.see(job)
    assert world.channel.messages == {job.placeholder: f"address {URL}"}
    [part] = done.parts
    assert (part.step, part.message, part.file) == (Step.DONE, job.placeholder, f"file-of-{job.placeholder}")
    assert (done.delivery, done.hold_state, done.due_at, done.lease_owner) == (
        *(Delivery.DELIVERED, HoldState.CAPTURED),
        *(None, None),
    )


async def test_delivered_at_is_set_after_the_channel_confirmed_and_never_before(world: World, engine: Engine) -> None:
    world.channel.gate.shut()
    job = await world.ended(engine)
    await world.claim_one(engine)
    await world.channel.gate.holds()
    during = await world.see(job)

    world.clock.turn(5)
    world.channel.gate.open()
    await idle(engine)

    assert (during.delivery, during.delivered_at, during.hold_state) == (Delivery.SENDING, None, HoldState.HELD)
    done = await world.see(job)
    assert (done.delivered_at, done.hold_state) == (world.clock.now(), HoldState.CAPTURED)


async def test_several_parts_are_shown_in_order_each_on_its_own_message(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    await work(engine)

    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]
    messages = [message for message, _ in world.channel.shown]
    assert messages[0] == job.placeholder
    assert len(set(messages)) == len(URLS)
    assert [part.message for part in (await world.see(job)).parts] == messages
    assert world.channel.notices == [job.id]


async def test_a_delivery_that_failed_continues_where_it_stopped(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    proxy = FaultProxy(world.channel)
    proxy.faults.add("create_placeholder", ChannelBusy(1))
    await work(world.engine(channel=proxy))
    assert [part.step for part in (await world.see(job)).parts] == [Step.DONE, Step.PUT, Step.PUT, Step.PUT]
    world.channel.calls.clear()

    world.clock.turn(1)
    await work(engine)

    assert [(call.operation, call.index) for call in world.channel.calls] == [
        *(
            ("create_placeholder", 1),
            ("put", 1),
            ("create_placeholder", 2),
            ("put", 2),
            ("create_placeholder", 3),
            ("put", 3),
        ),
        ("notify", 0),
    ]
    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]


async def test_parts_shown_by_a_crashed_instance_are_not_shown_again(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    proxy = FaultProxy(world.store)
    dying = world.engine(store=proxy)
    gate = proxy.gate("finish_delivery")
    await die_at(gate, world, dying)
    world.channel.calls.clear()

    world.clock.turn(LEASE + 1)
    await work(engine)

    # Whether the last one was confirmed died with the instance, so it is put again: the same words on the same message.
    assert [call for call in world.channel.calls if call.operation != "notify"] == [
        Call("put", job.id, 3, Level.ADDRESS, (await world.see(job)).parts[3].message)
    ]
    assert len(world.channel.shown) == len(URLS)
    assert (await world.see(job)).hold_state is HoldState.CAPTURED


async def test_a_confirmed_part_is_saved_before_the_next_is_begun(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    proxy = FaultProxy(world.channel)
    dying = world.engine(channel=proxy)
    gate = proxy.gate("create_placeholder")
    await die_at(gate, world, dying)
    world.channel.calls.clear()

    world.clock.turn(LEASE + 1)
    await work(engine)

    assert world.channel.calls[0] == Call("create_placeholder", job.id, 1)
    assert len(world.channel.shown) == len(URLS)


# levels


async def test_a_refused_level_leads_to_the_next_on_the_same_message(world: World, engine: Engine) -> None:
    world.channel.refused = {Level.ADDRESS, Level.BYTES, Level.DOCUMENT}
    job = await world.ended(engine)
    await work(engine)

    assert world.channel.levels() == [Level.ADDRESS, Level.BYTES, Level.DOCUMENT, Level.TEXT]
    assert {call.message for call in world.channel.calls if call.operation == "put"} == {job.placeholder}
    assert world.channel.messages == {job.placeholder: f"text {URL}"}
    assert await world.spent() == PRICE


@pytest.mark.parametrize("reached", [Level.BYTES, Level.DOCUMENT, Level.TEXT])
async def test_the_level_reached_is_kept_over_a_retry(world: World, engine: Engine, reached: Level) -> None:
    ladder = list(Level)
    world.channel.refused = set(ladder[: ladder.index(reached)])
    job = await world.ended(engine)
    world.channel.faults.add("put", *(LevelRefused() for _ in world.channel.refused), ChannelOutcomeUnknown())
    await work(engine)
    assert (await world.see(job)).parts[0].level is reached

    world.channel.calls.clear()
    world.clock.turn(10)
    await work(world.engine())

    assert world.channel.levels() == [reached]
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_the_level_reached_is_kept_by_the_instance_that_takes_over(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    proxy = FaultProxy(world.store)
    dying = world.engine(store=proxy)
    world.channel.refused = {Level.ADDRESS}
    gate = proxy.gate("finish_delivery")
    await die_at(gate, world, dying)
    world.channel.calls.clear()

    world.clock.turn(LEASE + 1)
    await work(engine)

    assert world.channel.levels() == [Level.BYTES]
    assert len(world.channel.shown) == 1
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_part_refused_at_every_level_is_undeliverable_and_the_hold_released(
    world: World, engine: Engine
) -> None:
    world.channel.refused = set(Level)
    job = await world.ended(engine)
    await work(engine)

    job = await world.see(job)
    assert (job.delivery, job.hold_state, job.due_at) == (Delivery.UNDELIVERABLE, HoldState.RELEASED, None)
    assert [row.id for row in await world.store.jobs_needing_attention(10)] == [job.id]
    assert world.channel.notices == []
    assert await world.spent() == 0


# retries


async def test_a_lost_answer_of_a_put_is_retried_and_shows_the_result_once(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("put", ChannelOutcomeUnknown(), done=True)
    await work(engine)
    waiting = await world.see(job)
    assert (waiting.delivery, waiting.lease_owner, waiting.hold_state) == (Delivery.PENDING, None, HoldState.HELD)
    assert world.channel.notices == []

    world.clock.turn(2)
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
        world.clock.turn(pauses[-1])

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
        world.clock.turn(76.9)
        assert await work(engine) == []
        world.clock.turn(0.1)

    assert (await world.see(job)).attempts == 0
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_after_too_many_attempts_the_hold_is_released_and_the_job_listed(world: World) -> None:
    engine = world.engine(EngineRules(delivery_attempts=3))
    job = await world.ended(engine)
    world.channel.faults.add("put", *(ChannelOutcomeUnknown() for _ in range(3)))
    for _ in range(3):
        await work(engine)
        world.clock.turn(300)

    [row] = await world.store.jobs_needing_attention(10)
    assert (row.id, row.delivery, row.hold_state) == (job.id, Delivery.UNDELIVERABLE, HoldState.RELEASED)
    assert row.attention_reason == "gave up after 3 tries"
    assert await work(engine) == []
    assert await world.spent() == 0


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
    assert len(world.recorder.of(Event.DELIVERY_RETRY)) == 2


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

    world.clock.turn(5)
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
    world.clock.turn(1_000_000)
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
    world.clock.turn(1_000_000)
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

    world.clock.turn(LEASE + 1)
    await work(engine)

    assert world.channel.notices == [job.id]
    assert (await world.see(job)).delivery is Delivery.UNKNOWN


async def test_a_result_shown_again_after_an_unknown_delivery_is_free(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.faults.add("send", ChannelOutcomeUnknown())
    await work(engine)

    await operate.show_again(engine.ctx, job.id, "user")
    await work(engine)

    assert len(world.channel.showing(URL)) == 1
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert await world.spent() == 0


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_send_whose_instance_crashed_is_never_repeated(world: World, engine: Engine, moment: str) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    store, channel = FaultProxy(world.store), FaultProxy(world.channel)
    dying = world.engine(store=store, channel=channel)
    gate = channel.gate("send") if moment == "before" else store.gate("finish_delivery")
    await die_at(gate, world, dying)

    world.clock.turn(LEASE + 1)
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


async def test_a_message_deleted_during_a_put_that_outlasts_its_lease_is_replaced(world: World) -> None:
    """The lease was renewed meanwhile, so the send that follows is ours to make."""
    engine = world.engine(EngineRules(lease_seconds=0.05))
    job = await world.ended(engine)
    world.channel.gate.shut()
    await world.claim_one(engine)
    await world.channel.gate.holds()
    world.channel.delete(job.placeholder)
    await asyncio.sleep(0.06)  # trust in a lease is measured by the loop's own clock
    world.channel.gate.open()
    await idle(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.channel.showing(URL)) == 1


async def test_a_process_suspended_past_its_lease_does_not_call_the_channel(world: World) -> None:
    """It fell asleep when its renewal was committed and woke up when the lease was over: before its next call."""
    proxy = FaultProxy(world.store)
    engine = world.engine(EngineRules(lease_seconds=0.05), store=proxy)

    def sleep(moment: str, operation: str) -> None:
        if (moment, operation) == ("after", "save_parts"):
            time.sleep(0.06)

    proxy.tap = sleep
    world.channel.refused = {Level.ADDRESS}
    job = await world.ended(engine)
    await work(engine)

    assert world.channel.levels() == [Level.ADDRESS]
    assert len(world.recorder.of(Event.LEASE_LOST, job=job.id)) == 1
    assert (await world.see(job)).delivery is Delivery.SENDING


# closed chats


@pytest.mark.parametrize("operation", ["put", "send"])
async def test_an_unreachable_chat_makes_the_result_undeliverable_and_releases_the_hold(
    world: World, engine: Engine, operation: str
) -> None:
    job = await world.ended(engine, *URLS)
    if operation == "send":
        world.channel.delete(job.placeholder)
    world.channel.faults.add(operation, RecipientUnreachable("blocked by the person"))
    await work(engine)
    world.clock.turn(1_000_000)
    assert await work(engine) == []

    [row] = await world.store.jobs_needing_attention(10)
    assert (row.id, row.state, row.delivery) == (job.id, State.SUCCEEDED, Delivery.UNDELIVERABLE)
    assert (row.attention_reason, row.hold_state) == ("blocked by the person", HoldState.RELEASED)
    assert world.channel.notices == []
    assert await world.spent() == 0


async def check_partly_delivered(world: World, job: Job, shown: int, code: AttentionCode) -> None:
    row = await world.see(job)
    assert (row.state, row.delivery, row.hold_state) == (State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED)
    assert row.attention_code is code
    assert (row.attention_reason or "").startswith(f"{shown} of {len(URLS)} parts shown: ")
    assert await world.spent() == PRICE


async def test_a_user_who_blocks_the_bot_after_the_first_part_has_paid(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    world.channel.faults.add("create_placeholder", RecipientUnreachable("blocked by the person"))
    await work(engine)
    world.clock.turn(1_000_000)
    assert await work(engine) == []

    await check_partly_delivered(world, job, 1, AttentionCode.UNDELIVERABLE)


async def test_a_user_who_blocks_the_bot_before_the_last_part_has_paid_also_after_a_crash(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine, *URLS)
    dying = world.engine(store=(store := FaultProxy(world.store)))
    gate = store.gate("finish_delivery")
    await die_at(gate, world, dying)
    world.clock.turn(LEASE + 1)
    row = await world.see(job)
    assert [part.step for part in row.parts] == [Step.DONE] * 3 + [Step.PUT]
    world.channel.closed = "blocked by the person"

    await work(engine)

    await check_partly_delivered(world, job, 3, AttentionCode.UNDELIVERABLE)


async def test_a_part_that_cannot_be_shown_after_others_leaves_them_paid(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    world.channel.faults.add("put", None, *[LevelRefused() for _ in Level])
    await work(engine)

    await check_partly_delivered(world, job, 1, AttentionCode.UNDELIVERABLE)


async def test_exhausted_retries_after_a_part_was_shown_leave_it_paid(world: World) -> None:
    engine = world.engine(EngineRules(delivery_attempts=2))
    job = await world.ended(engine, *URLS)
    world.channel.faults.add("create_placeholder", *[ChannelOutcomeUnknown()] * 2)
    await work(engine)
    world.clock.turn(await pause(world, job))
    await work(engine)

    await check_partly_delivered(world, job, 1, AttentionCode.RETRIES_EXHAUSTED)


async def test_a_send_with_a_lost_answer_after_a_part_was_shown_is_told_and_paid(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS, notice=False)
    world.channel.faults.add("put", None, PlaceholderGone())
    world.channel.faults.add("send", ChannelOutcomeUnknown())
    await work(engine)

    await check_partly_delivered(world, job, 1, AttentionCode.UNKNOWN_DELIVERY)
    assert world.channel.notices == [job.id]


async def test_a_free_run_of_which_a_part_was_shown_stays_used(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS, price=0)
    world.channel.broken = {URLS[1]}
    await work(engine)

    row = await world.see(job)
    assert (row.state, row.delivery, row.hold_state) == (State.SUCCEEDED, Delivery.DELIVERED, HoldState.FREE)


async def test_a_result_paid_again_counts_as_delivered_once_a_part_is_shown(world: World, engine: Engine) -> None:
    job = await world.ended(engine, *URLS)
    world.channel.closed = "blocked by the person"
    await work(engine)
    assert await world.spent() == 0
    world.channel.closed = ""
    await operate.show_again(engine.ctx, job.id, "user")
    world.channel.faults.add("create_placeholder", None, RecipientUnreachable("blocked by the person"))
    await work(engine)

    await check_partly_delivered(world, job, 1, AttentionCode.UNDELIVERABLE)


async def test_a_failure_whose_message_cannot_be_delivered_is_listed_with_the_hold_released(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine)
    world.channel.closed = "kicked"
    await world.call_back(engine, job, state="failed")
    [row] = await world.store.jobs_needing_attention(10)
    assert (row.state, row.delivery, row.hold_state) == (State.FAILED, Delivery.UNDELIVERABLE, HoldState.RELEASED)


# the notice


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
    world.clock.turn(1_000_000)
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

    world.clock.turn(LEASE + 1)
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

    world.clock.turn(LEASE + 1)
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
        world.clock.turn(40)
        await work(engine)

    assert world.channel.notices == [job.id]
    assert len(world.channel.shown) == 1
    row = await world.see(job)
    assert (row.notice, row.due_at) == (Notice.SENT, None)


async def test_a_notice_to_a_channel_that_stays_busy_is_given_up(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("notify", *(ChannelBusy(40) for _ in range(100)))
    for _ in range(100):
        await work(engine)
        world.clock.turn(40)

    row = await world.see(job)
    assert (row.notice, row.due_at, row.delivery) == (Notice.SENT, None, Delivery.DELIVERED)
    assert len(world.recorder.of(Event.NOTICE_FAIL, reason="busy for too long")) == 1


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

    world.clock.turn(LEASE + 1)
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
    world.clock.turn(LEASE + 1)
    again = await world.claim_one(engine)
    await world.channel.gate.holds(2)
    world.channel.gate.open()
    await idle(slow, engine)

    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]
    assert world.channel.notices == [job.id]
    assert len(world.recorder.of(Event.MARK_DELIVERED, job=job.id)) == 1
    assert (await world.see(job)).lease_token == again.lease_token
    assert await world.spent() == PRICE


# results that are none, chats that move


async def test_an_html_page_instead_of_a_result_is_a_failure_with_a_message_and_the_hold_released(
    world: World, engine: Engine
) -> None:
    world.channel.broken = {URL}
    job = await world.ended(engine)
    await work(engine)

    row = await world.see(job)
    assert (row.state, row.delivery, row.hold_state) == (State.FAILED, Delivery.DELIVERED, HoldState.RELEASED)
    assert (row.error_code, row.error_text) == ("broken_result", "it is an HTML page")
    assert world.channel.messages == {job.placeholder: "text broken_result"}
    assert world.channel.notices == [job.id]
    assert await world.spent() == 0
    assert len(world.recorder.of(Event.RESULT_INVALID, job=job.id)) == 1


@pytest.mark.parametrize("broken", [{1, 2}, {0, 3}, {0, 1}])
async def test_invalid_parts_cause_one_message_and_the_others_are_shown_and_paid(
    world: World, engine: Engine, broken: set[int]
) -> None:
    world.channel.broken = {URLS[index] for index in broken}
    job = await world.ended(engine, *URLS)
    await work(engine)

    valid = [f"address {url}" for url in URLS if url not in world.channel.broken]
    assert [text for _, text in world.channel.shown] == [*valid, "text "]
    assert "" not in world.channel.messages.values(), "a placeholder was left without a part"
    row = await world.see(job)
    assert (row.state, row.delivery, row.hold_state) == (State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED)
    assert [part.step for part in row.parts] == [Step.DONE] * 3
    assert (row.attention_code, row.attention_reason) == (
        AttentionCode.UNDELIVERABLE,
        "a part of the result is invalid",
    )
    assert await world.spent() == PRICE


async def test_a_result_without_any_valid_part_is_a_failure_with_one_message(world: World, engine: Engine) -> None:
    world.channel.broken = set(URLS)
    job = await world.ended(engine, *URLS)
    await work(engine)

    assert world.channel.messages == {job.placeholder: "text broken_result"}
    row = await world.see(job)
    assert (row.state, row.delivery, row.hold_state) == (State.FAILED, Delivery.DELIVERED, HoldState.RELEASED)
    assert row.attention_reason is None
    assert await world.spent() == 0


async def test_a_paid_result_that_can_no_longer_be_fetched_goes_to_the_operator(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    await work(engine)
    world.channel.broken = {URL}
    await operate.resend(engine.ctx, job.id, "operator")
    await work(engine)

    row = await world.see(job)
    assert (row.state, row.delivery, row.hold_state) == (State.SUCCEEDED, Delivery.UNDELIVERABLE, HoldState.CAPTURED)
    assert "it is an HTML page" in (row.attention_reason or "")


async def test_a_chat_whose_address_changed_gets_its_result_at_the_new_one(world: World, engine: Engine) -> None:
    """Edits of the old messages still work; the first message that must be sent tells of the move."""
    world.channel.moved = {"create_placeholder": "43"}
    job = await world.ended(engine, *URLS)
    await work(engine)

    row = await world.see(job)
    assert (row.address, row.delivery) == ("43", Delivery.DELIVERED)
    assert [text for _, text in world.channel.shown] == [f"address {url}" for url in URLS]
    assert len(world.recorder.of(Event.ADDRESS_CHANGED, job=job.id)) == 1


async def test_a_send_that_learns_of_a_new_address_is_made_once_there(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.moved = {"send": "43"}
    await work(engine)

    assert [call.operation for call in world.channel.calls] == ["put", "send", "create_placeholder", "put", "notify"]
    assert (await world.see(job)).address == "43"
    assert len(world.channel.showing(URL)) == 1


async def test_a_notice_is_sent_to_the_new_address_of_a_chat(world: World, engine: Engine) -> None:
    world.channel.moved = {"notify": "43"}
    job = await world.ended(engine)
    await work(engine)

    assert world.channel.notices == [job.id]
    assert (await world.see(job)).address == "43"


async def test_the_placeholder_of_an_order_is_created_at_the_chats_new_address(world: World, engine: Engine) -> None:
    world.channel.moved = {"create_placeholder": "43"}
    job = await world.running(engine, placeholder=None)
    assert job.placeholder is not None
    assert job.address == "43"
