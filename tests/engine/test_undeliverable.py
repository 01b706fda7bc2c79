"""Results that cannot be delivered: closed chats, invalid results, chats that move."""

import pytest

from genlock.domain.delivery import Level, Step
from genlock.domain.errors import (
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports import Reschedule
from tests.engine.fake_provider import URL
from tests.engine.faults import FaultProxy
from tests.engine.steps import URLS, die_at, pause
from tests.engine.world import LEASE, PRICE, World, work

# closed chats


async def test_an_order_whose_user_cannot_be_reached_is_not_submitted(world: World, engine: Engine) -> None:
    world.channel.closed = "blocked by the user"
    job = await engine.order(world.order(placeholder=None))
    await work(engine)

    row = await world.see(job)
    assert (row.state, row.error_code, row.delivery) == (State.FAILED, "user_unreachable", Delivery.UNDELIVERABLE)
    assert row.hold_state is HoldState.RELEASED
    assert (world.provider.created, row.attempt) == ([], 0)


@pytest.mark.parametrize("operation", ["put", "send"])
async def test_an_unreachable_chat_makes_the_result_undeliverable_and_releases_the_hold(
    world: World, engine: Engine, operation: str
) -> None:
    job = await world.ended(engine, *URLS)
    if operation == "send":
        world.channel.delete(job.placeholder)
    world.channel.faults.add(operation, RecipientUnreachable("blocked by the user"))
    await work(engine)
    world.clock.advance(1_000_000)
    assert await work(engine) == []

    [row] = await world.store.jobs_needing_attention(10)
    assert (row.id, row.state, row.delivery) == (job.id, State.SUCCEEDED, Delivery.UNDELIVERABLE)
    assert (row.attention_reason, row.hold_state) == ("blocked by the user", HoldState.RELEASED)
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
    world.channel.faults.add("create_placeholder", RecipientUnreachable("blocked by the user"))
    await work(engine)
    world.clock.advance(1_000_000)
    assert await work(engine) == []

    await check_partly_delivered(world, job, 1, AttentionCode.UNDELIVERABLE)


async def test_a_user_who_blocks_the_bot_before_the_last_part_has_paid_also_after_a_crash(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine, *URLS)
    dying = world.engine(store=(store := FaultProxy(world.store)))
    gate = store.gate("finish_delivery")
    await die_at(gate, world, dying)
    world.clock.advance(LEASE + 1)
    row = await world.see(job)
    assert [part.step for part in row.parts] == [Step.DONE] * 3 + [Step.PUT]
    world.channel.closed = "blocked by the user"

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
    world.clock.advance(await pause(world, job))
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
    world.channel.closed = "blocked by the user"
    await work(engine)
    assert await world.spent() == 0
    world.channel.closed = ""
    await operate.resend_for_user(engine.ctx, job.id, "user")
    world.channel.faults.add("create_placeholder", None, RecipientUnreachable("blocked by the user"))
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


async def test_a_result_of_which_nothing_is_left_is_not_charged(world: World, engine: Engine) -> None:
    """Earlier versions erased a result whose delivery waited for an operator."""
    job = await world.ended(engine)
    [held] = await world.store.claim_jobs(1, engine.ctx.lease)
    parked = Reschedule(job_id=job.id, token=held.lease_token, after=None, parts=(), attention_reason="stage error")
    assert await world.store.reschedule(parked)
    await operate.retry(engine.ctx, job.id, "operator")
    await work(engine)

    row = await world.see(job)
    assert (row.delivery, row.hold_state) == (Delivery.UNDELIVERABLE, HoldState.RELEASED)
    assert world.channel.shown == []
    assert await world.spent() == 0
