"""A message that was to become the result is not left waiting, although the result appears on another one."""

import pytest

from genlock.domain.delivery import Part
from genlock.domain.errors import (
    ChannelBusy,
    ChannelOutcomeUnknown,
    InvalidResult,
    PlaceholderGone,
    RecipientUnreachable,
)
from genlock.domain.job import Delivery, Job
from genlock.domain.money import HoldState
from genlock.domain.result import PartKind
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports import Placed
from tests.engine.fake_provider import URL
from tests.engine.world import World, work


async def finish_work(world: World, engine: Engine, job: Job) -> Job:
    while (row := await world.see(job)).due_at is not None:
        world.clock.advance((row.due_at - world.clock.now()).total_seconds())
        await work(engine)
    return row


async def settle(world: World, engine: Engine, job: Job) -> Job:
    row = await finish_work(world, engine, job)
    assert row.progress_message is None
    return row


async def expired(world: World, engine: Engine, error: Exception) -> Job:
    """Return an expired job whose placeholder does not say so, because the channel did not take the message."""
    job = await world.running(engine, deadline_seconds=20, notice=False)
    world.channel.faults.add("put", error)
    world.clock.advance(20)
    await work(engine)
    row = await world.see(job)
    assert world.channel.messages[job.placeholder or ""] == ""
    return row


@pytest.mark.parametrize("given_up", [False, True])
async def test_the_message_about_an_end_that_was_not_shown_appears_after_a_late_result(
    world: World, *, given_up: bool
) -> None:
    engine = world.engine()
    job = await expired(world, engine, RecipientUnreachable("blocked") if given_up else ChannelBusy(60.0))
    assert job.delivery is (Delivery.UNDELIVERABLE if given_up else Delivery.PENDING)

    await world.call_back(engine, job)
    assert await world.store.is_job_message(job.account_id, job.placeholder or "")
    await settle(world, engine, job)

    assert world.channel.messages[job.placeholder or ""].startswith("text ")
    assert len(world.channel.showing(URL)) == 1


async def test_a_message_that_was_created_for_an_end_shows_it_after_a_late_result(world: World) -> None:
    """The first one was lost with the answer to the call that created it."""
    engine = world.engine()
    world.channel.faults.add("create_placeholder", ChannelOutcomeUnknown())
    job = await world.running(engine, deadline_seconds=20, notice=False, placeholder=None)
    world.channel.faults.add("put", ChannelBusy(60.0))
    world.clock.advance(20)
    await work(engine)
    row = await world.see(job)
    created = row.parts[0].message or ""
    assert (row.placeholder, world.channel.messages[created]) == (None, "")

    await world.call_back(engine, job)
    await settle(world, engine, job)

    assert world.channel.messages[created].startswith("text ")


@pytest.mark.parametrize("by_user", [False, True])
async def test_the_first_message_of_a_result_that_could_not_be_delivered_gets_it_after_a_resend(
    world: World, *, by_user: bool
) -> None:
    """The user had blocked the bot, so the message still says how far the order is."""
    engine = world.engine()
    job = await world.running(engine, notice=False)
    world.channel.faults.add("put", RecipientUnreachable("blocked"))
    await world.call_back(engine, job)
    assert world.channel.messages[job.placeholder or ""] == ""

    resend = operate.resend_for_user if by_user else operate.resend
    await resend(engine.ctx, job.id, "operator")
    row = await settle(world, engine, job)

    assert (row.delivery, row.hold_state) == (
        Delivery.DELIVERED,
        HoldState.CAPTURED if by_user else HoldState.RELEASED,
    )
    assert row.parts[0].message != job.placeholder
    assert world.channel.showing(URL) == [job.placeholder, row.parts[0].message]


async def test_the_first_message_says_that_the_result_is_invalid_if_its_file_has_become_a_page(
    world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await world.running(engine, notice=False)
    first, put = job.placeholder or "", world.channel.put
    world.channel.faults.add("put", RecipientUnreachable("blocked"))
    await world.call_back(engine, job)
    await operate.resend_for_user(engine.ctx, job.id, "user")
    await work(engine)
    row = await world.see(job)
    assert (row.delivery, row.progress_message, world.channel.messages[first]) == (Delivery.DELIVERED, first, "")

    async def put_messages_only(job: Job, index: int, part: Part) -> Placed:
        if part.kind is PartKind.FILE:
            raise InvalidResult("an HTML page")
        return await put(job, index, part)

    monkeypatch.setattr(world.channel, "put", put_messages_only)
    await settle(world, engine, job)

    assert world.channel.messages[first].startswith("text ")
    assert world.channel.showing(URL) == [row.parts[0].message]


async def test_the_first_message_gets_the_result_though_a_resend_before_had_an_unknown_outcome(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine, notice=False)
    first = job.placeholder or ""
    world.channel.faults.add("put", RecipientUnreachable("blocked"))
    await world.call_back(engine, job)
    world.channel.faults.add("create_placeholder", PlaceholderGone("refused"))
    world.channel.faults.add("send", ChannelOutcomeUnknown())
    await operate.resend(engine.ctx, job.id, "operator")
    assert (await finish_work(world, engine, job)).delivery is Delivery.UNKNOWN
    assert world.channel.messages[first] == ""

    await operate.resend(engine.ctx, job.id, "operator")
    row = await settle(world, engine, job)

    assert (row.delivery, row.hold_state) == (Delivery.DELIVERED, HoldState.RELEASED)
    assert world.channel.showing(URL) == [first, row.parts[0].message]


async def test_a_message_that_shows_the_result_is_not_put_again_after_a_resend(world: World, engine: Engine) -> None:
    job = await world.running(engine, notice=False)
    await world.call_back(engine, job)
    await operate.resend(engine.ctx, job.id, "operator")
    await work(engine)

    row = await world.see(job)
    assert (row.due_at, row.progress_message) == (None, None)


async def test_a_message_on_which_an_end_is_put_again_belongs_to_its_job_until_the_last_put(world: World) -> None:
    """Otherwise the bot made it the screen of the next order, whose result the put overwrote."""
    engine = world.engine(EngineRules())
    job = await expired(world, engine, ChannelBusy(60.0))
    first = job.placeholder or ""
    await world.call_back(engine, job)
    await work(engine)
    row = await world.see(job)
    assert (row.late, row.delivery, row.progress_message) == (True, Delivery.DELIVERED, first)
    assert first not in (row.placeholder, row.parts[0].message)

    assert await world.store.is_job_message(job.account_id, first)
    await settle(world, engine, job)
    assert not await world.store.is_job_message(job.account_id, first), "the user may go on from there"
