"""Progress: shown by the lease holder at a few points, and never in the way of the result."""

from typing import Any

import pytest

from genlock.domain.errors import ChannelBusy, ChannelOutcomeUnknown, PlaceholderGone, RecipientUnreachable
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.fake_provider import URL
from tests.engine.world import World, die, idle, work

EXPECTED = 100.0


@pytest.fixture
def engine(world: World) -> Engine:
    world.channel.fractions = (0.1, 0.5, 0.9)
    return world.engine(expected=EXPECTED)


async def due_in(world: World, job_id: int) -> float:
    row = await world.see(job_id)
    assert row.due_at is not None
    return (row.due_at - world.clock.now()).total_seconds()


def said(world: World) -> list[str]:
    return [call.operation for call in world.channel.calls]


async def test_a_job_is_due_at_its_progress_points_whatever_the_poll_interval(world: World, engine: Engine) -> None:
    for _ in range(3):
        engine.ctx.poll_interval("fake").record_result(
            by_callback=True
        )  # callbacks have proven to come: polls are far apart
    job = await world.running(engine)
    shown = []
    while (world.clock.now() - job.created_at).total_seconds() < EXPECTED:
        world.clock.advance(await due_in(world, job.id))
        await work(engine)
        if (text := world.channel.messages[job.placeholder or ""]) not in shown:
            shown.append(text)
    assert shown == ["progress 0.10", "progress 0.50", "progress 0.90"]
    assert said(world) == ["progress"] * 3


async def test_no_progress_is_shown_without_an_expected_duration(world: World) -> None:
    world.channel.fractions = (0.1,)
    engine = world.engine()
    job = await world.running(engine)
    for _ in range(10):
        world.clock.advance(await due_in(world, job.id))
        await work(engine)
    assert said(world) == []


async def test_a_missed_progress_point_is_dropped(world: World, engine: Engine) -> None:
    await world.running(engine)
    world.clock.advance(20)
    await work(engine)
    assert said(world) == []


async def test_a_short_job_shows_little_progress(world: World) -> None:
    world.channel.fractions = (0.1, 0.3, 0.5, 0.7, 0.9)
    engine = world.engine(expected=8.0)
    job = await world.running(engine)
    while (world.clock.now() - job.created_at).total_seconds() < 10:
        world.clock.advance(await due_in(world, job.id))
        await work(engine)
    assert said(world) == ["progress"] * 2


@pytest.mark.parametrize("error", [ChannelBusy(5), RuntimeError("bug")], ids=repr)
async def test_a_failing_progress_edit_delays_nothing(world: World, engine: Engine, error: Exception) -> None:
    job = await world.running(engine)
    world.channel.faults.add("progress", error)
    world.clock.advance(10)
    await work(engine)
    row = await world.see(job)
    assert (row.state, row.lease_owner, row.attempts) == (State.RUNNING, None, 0)


async def test_an_instance_without_the_lease_shows_no_progress(world: World, engine: Engine) -> None:
    """It queried the provider, was paused, and another instance claimed the job meanwhile."""
    job = await world.running(engine)
    world.clock.advance(10)
    world.provider.status_gate.shut()
    await world.claim_one(engine)
    await world.provider.status_gate.holds()
    world.clock.advance(60)
    await world.store.claim_jobs(1, world.engine().ctx.lease)
    world.provider.status_gate.open()
    await idle(engine)
    assert said(world) == []
    assert len(world.recorder.of(Event.LEASE_LOST, job=job.id)) == 1


# edits that may take effect after the end


async def unknown_edit(world: World, engine: Engine, **changes: Any) -> Job:
    """Return a running job with a progress edit whose answer was lost."""
    job = await world.running(engine, notice=False, **changes)
    world.channel.faults.add("progress", ChannelOutcomeUnknown())
    world.clock.advance(10)
    await work(engine)
    assert said(world) == ["progress"]
    return await world.see(job)


def late_edit(world: World, message: str | None) -> None:
    """Let the edit whose answer was lost take effect now."""
    assert message is not None
    world.channel.messages[message] = "progress 0.10"


async def put_all_again(world: World, engine: Engine, job: Job) -> list[float]:
    """Follow the job until nothing is due, a late edit before each put. Return the ages of the puts in seconds."""
    ages, message = [], job.placeholder or ""
    shown = world.channel.messages[message]
    while (row := await world.see(job)).due_at is not None:
        late_edit(world, message)
        world.clock.advance((row.due_at - world.clock.now()).total_seconds())
        await work(engine)
        assert world.channel.messages[message] == shown
        ages.append((world.clock.now() - (row.ended_at or row.created_at)).total_seconds())
    return ages


async def test_a_failure_during_a_progress_edit_is_told_at_once_and_put_again_afterwards(world: World) -> None:
    world.channel.fractions = (0.1,)
    slow, quick = (world.engine(expected=EXPECTED) for _ in range(2))
    job = await world.running(slow, notice=False)
    world.clock.advance(10)
    world.channel.progress_gate.shut()
    await world.claim_one(slow)
    await world.channel.progress_gate.holds()

    await world.call_back(quick, job, state="failed", code="nsfw")
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    world.channel.progress_gate.open()
    await idle(slow)
    assert world.channel.messages[job.placeholder or ""] == "progress 0.10"
    world.clock.advance(4)
    await work(quick)

    assert said(world) == ["progress", "put", "put"]
    assert world.channel.messages[job.placeholder or ""] == "text nsfw"


async def test_a_text_end_is_put_again_until_no_late_edit_is_possible(world: World, engine: Engine) -> None:
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job, state="failed")

    assert await put_all_again(world, engine, job) == pytest.approx([4, 12, 36, 108, 324, 900], abs=0.02)
    assert (await world.see(job)).progress_message is None


@pytest.mark.parametrize("notice", [True, False])
async def test_a_cancellation_is_put_again_beside_the_queries_of_its_cost(
    world: World, engine: Engine, *, notice: bool
) -> None:
    job = await world.running(engine, notice=notice, deadline_seconds=40)
    world.channel.faults.add("progress", ChannelOutcomeUnknown())
    world.clock.advance(10)
    await work(engine)
    await engine.cancel(job.id, "user")
    await idle(engine)

    ages = await put_all_again(world, engine, job)

    assert len(ages) > 6
    assert ages[-1] == pytest.approx(900, abs=0.02)


async def test_a_file_is_put_again_for_a_short_time_only(world: World, engine: Engine) -> None:
    """A text edit cannot overwrite a file, unless the channel accepted the edit before the file."""
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job)

    assert await put_all_again(world, engine, job) == pytest.approx([4, 12], abs=0.02)
    assert (await world.see(job)).progress_message is None


async def test_a_progress_edit_with_an_answer_leaves_nothing_to_put_again(world: World, engine: Engine) -> None:
    job = await world.running(engine, notice=False)
    world.clock.advance(10)
    await work(engine)
    await world.call_back(engine, job, state="failed")

    assert (await world.see(job)).due_at is None
    assert said(world) == ["progress", "put"]


async def test_a_later_answer_does_not_settle_an_earlier_edit(world: World, engine: Engine) -> None:
    job = await unknown_edit(world, engine)
    while (world.clock.now() - job.created_at).total_seconds() < 51:
        world.clock.advance(await due_in(world, job.id))
        await work(engine)
    assert said(world) == ["progress", "progress"]

    await world.call_back(engine, job, state="failed")

    assert await put_all_again(world, engine, job)


async def test_an_edit_of_an_instance_that_crashed_is_known_to_the_one_that_ends_the_job(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine, notice=False)
    dying = world.engine(expected=EXPECTED)
    world.clock.advance(10)
    world.channel.progress_gate.shut()
    await world.claim_one(dying)
    await world.channel.progress_gate.holds()
    await die(dying)
    world.channel.progress_gate.open()

    await world.call_back(engine, job, state="failed")

    assert await put_all_again(world, engine, job) == pytest.approx([4, 12, 36, 108, 324, 900], abs=0.02)


async def test_the_puts_are_continued_by_another_instance(world: World, engine: Engine) -> None:
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job, state="failed")
    world.clock.advance(4)
    dying = world.engine(expected=EXPECTED)
    world.channel.gate.shut()
    await world.claim_one(dying)
    await world.channel.gate.holds()
    await die(dying)
    world.channel.gate.open()

    assert (await put_all_again(world, engine, job))[-1] >= 899.9


async def test_the_message_of_an_expired_job_is_put_again_after_its_late_result(world: World, engine: Engine) -> None:
    job = await unknown_edit(world, engine, deadline_seconds=20)
    world.clock.advance(20)
    await work(engine)
    await world.call_back(engine, job)
    assert (await world.see(job)).late

    assert await put_all_again(world, engine, job)
    assert len(world.channel.showing(URL)) == 1


async def test_the_first_message_is_put_again_after_a_resend(world: World, engine: Engine) -> None:
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job, state="failed")
    await operate.resend(engine.ctx, job.id, "operator")
    await work(engine)

    assert await put_all_again(world, engine, job)


async def test_the_first_message_is_put_again_although_the_message_of_a_resend_was_deleted(
    world: World, engine: Engine
) -> None:
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job, state="failed")
    await operate.resend(engine.ctx, job.id, "operator")
    world.channel.faults.add("put", PlaceholderGone())
    await work(engine)
    row = await world.see(job)
    assert row.parts[0].gone
    assert row.delivery is Delivery.DELIVERED

    assert await put_all_again(world, engine, job)


@pytest.mark.parametrize("error", [PlaceholderGone(), RecipientUnreachable("blocked")], ids=repr)
async def test_a_message_that_cannot_be_edited_any_more_is_not_put_again(
    world: World, engine: Engine, error: Exception
) -> None:
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job, state="failed")
    world.channel.faults.add("put", error)
    world.clock.advance(4)
    await work(engine)

    row = await world.see(job)
    assert (row.due_at, row.attention_reason) == (None, None)


async def test_a_put_again_that_fails_is_tried_again_but_not_endlessly(world: World, engine: Engine) -> None:
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job, state="failed")
    world.channel.faults.add("put", *[ChannelBusy(3), ChannelOutcomeUnknown()] * 200)
    while (row := await world.see(job)).due_at is not None:
        world.clock.advance((row.due_at - world.clock.now()).total_seconds())
        await work(engine)

    assert row.attention_reason is None
    assert 1800 <= (world.clock.now() - (row.ended_at or row.created_at)).total_seconds() < 1900


async def test_a_bug_in_the_channel_while_an_end_is_put_again_does_not_park_a_job_that_is_told(
    world: World, engine: Engine
) -> None:
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job, state="failed")
    late_edit(world, job.placeholder or "")
    world.channel.faults.add("put", *[RuntimeError("a bug")] * 20)
    while (row := await world.see(job)).due_at is not None:
        world.clock.advance((row.due_at - world.clock.now()).total_seconds())
        await work(engine)

    assert row.attention_reason is None
    assert world.channel.messages[job.placeholder or ""].startswith("text "), "tried again until the channel showed it"


async def test_a_message_whose_delivery_was_given_up_is_put_again(world: World) -> None:
    """The channel's answers were lost, but it may have shown the message."""
    world.channel.fractions = (0.1,)
    engine = world.engine(EngineRules(delivery_attempts=1), expected=EXPECTED)
    job = await unknown_edit(world, engine)
    world.channel.faults.add("put", ChannelOutcomeUnknown(), done=True)
    await world.call_back(engine, job, state="failed")
    assert (await world.see(job)).delivery is Delivery.UNDELIVERABLE

    assert await put_all_again(world, engine, job)


async def give_up_result(world: World, engine: Engine) -> Job:
    """Return a job whose result was put, but no answer came, while a progress edit may still take effect."""
    world.channel.fractions = (0.1,)
    job = await unknown_edit(world, engine)
    world.channel.faults.add("put", ChannelOutcomeUnknown(), done=True)
    await world.call_back(engine, job)
    row = await world.see(job)
    assert (row.delivery, row.hold_state, row.due_at) == (Delivery.UNDELIVERABLE, HoldState.RELEASED, None)
    return row


async def test_the_message_of_a_result_that_was_given_up_is_put_again_after_a_resend(world: World) -> None:
    engine = world.engine(EngineRules(delivery_attempts=1), expected=EXPECTED)
    job = await give_up_result(world, engine)
    shown = world.channel.messages[job.placeholder or ""]
    late_edit(world, job.placeholder)
    await operate.resend(engine.ctx, job.id, "operator")
    await work(engine)
    world.clock.advance(await due_in(world, job.id))
    await work(engine)

    assert world.channel.messages[job.placeholder or ""] == shown
    assert await put_all_again(world, engine, job)


async def test_a_result_that_was_given_up_twice_is_not_put_again(world: World) -> None:
    """It is not paid for."""
    engine = world.engine(EngineRules(delivery_attempts=1), expected=EXPECTED)
    job = await give_up_result(world, engine)
    await operate.resend_for_user(engine.ctx, job.id, "user")
    world.channel.faults.add("put", ChannelOutcomeUnknown())
    await work(engine)

    row = await world.see(job)
    assert (row.delivery, row.hold_state, row.due_at) == (Delivery.UNDELIVERABLE, HoldState.RELEASED, None)


async def test_a_result_whose_resend_is_parked_is_put_again_after_the_operators_retry(world: World) -> None:
    engine = world.engine(EngineRules(stage_attempts=1), expected=EXPECTED)
    world.channel.fractions = (0.1,)
    job = await unknown_edit(world, engine)
    await world.call_back(engine, job)
    await operate.resend(engine.ctx, job.id, "operator")
    world.channel.faults.add("put", RuntimeError("a bug"))
    await work(engine)
    assert (await world.see(job)).attention_code is AttentionCode.STAGE_ERROR
    shown = world.channel.messages[job.placeholder or ""]
    late_edit(world, job.placeholder)
    await operate.retry(engine.ctx, job.id, "operator")
    await work(engine)
    world.clock.advance(await due_in(world, job.id))
    await work(engine)

    assert world.channel.messages[job.placeholder or ""] == shown


async def test_no_message_is_put_again_in_a_chat_whose_address_changed(world: World, engine: Engine) -> None:
    """Message ids belong to a chat: the same id in the new chat is another message."""
    job = await unknown_edit(world, engine)
    world.channel.faults.add("put", PlaceholderGone())
    world.channel.moved = {"send": "elsewhere"}
    await world.call_back(engine, job, state="failed")

    row = await world.see(job)
    assert (row.address, row.progress_message, row.due_at) == ("elsewhere", None, None)
