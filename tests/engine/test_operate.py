"""What an operator can do by hand, and the words in which it is refused."""

import pytest

from genlock.domain.errors import (
    ActionNotAllowed,
    ChannelBusy,
    ChannelOutcomeUnknown,
    JobNotFound,
    RecipientUnreachable,
    SubmitUnknown,
)
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.engine import operate
from genlock.engine.context import EngineRules, UnknownSubmit
from genlock.engine.engine import Engine
from genlock.engine.tell import refund_message
from genlock.i18n.translator import package_texts
from tests.engine.fake_provider import URL, success
from tests.engine.world import PRICE, World, die, idle, work
from tests.stores.builders import ensure_profile

GRACE = EngineRules().grace_seconds


async def parked(world: World, engine: Engine, **changes: object) -> Job:
    """A submit of unknown outcome, left to the operator."""
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order(**changes))
    await idle(engine)
    world.clock.advance(GRACE + 1)
    await work(engine)
    job = await world.see(job)
    assert job.attention_reason == "submit_unknown"
    return job


async def test_nothing_can_be_done_to_a_job_that_does_not_exist(world: World, engine: Engine) -> None:
    for action in (operate.retry, operate.resend, operate.cancel):
        with pytest.raises(JobNotFound, match="there is no job 404"):
            await action(engine.ctx, 404, "ann")
    assert world.recorder.of(Event.OPERATOR_ACTION) == []


# retry


async def test_a_retry_makes_a_waiting_job_due_now(world: World, engine: Engine) -> None:
    waiting = await world.running(engine)
    world.provider.reports["task-1"] = success("task-1")

    job = await operate.retry(engine.ctx, waiting.id, "ann")

    assert job.due_at == world.clock.now()
    [seen] = world.recorder.of(Event.OPERATOR_ACTION, action="retry", by="ann")
    assert seen.correlation_id == waiting.correlation_id
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_retry_shortens_the_wait_of_a_failed_delivery(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("put", ChannelOutcomeUnknown())
    await work(engine)
    assert await work(engine) == []

    await operate.retry(engine.ctx, job.id, "ann")
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_retry_takes_a_parked_job_off_the_list(world: World) -> None:
    engine = world.engine(EngineRules(stage_attempts=1))
    job = await world.ended(engine)
    world.channel.faults.add("put", RuntimeError("bug"))
    await work(engine)
    assert [row.id for row in await world.store.jobs_needing_attention(10)] == [job.id]

    await operate.retry(engine.ctx, job.id, "ann")
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert await world.store.jobs_needing_attention(10) == []


async def test_an_operators_retry_submits_a_parked_order_again(world: World) -> None:
    engine = world.engine(EngineRules(unknown_submit=UnknownSubmit.PARK))
    job = await parked(world, engine)

    await operate.retry(engine.ctx, job.id, "ann", resubmit=True)
    await work(engine)

    row = await world.see(job)
    assert (row.state, row.attention_reason, row.task_id) == (State.RUNNING, None, "task-2")
    assert len(world.provider.created) == 2


async def test_a_parked_order_is_not_submitted_again_without_a_decision_about_it(world: World) -> None:
    engine = world.engine(EngineRules(unknown_submit=UnknownSubmit.PARK))
    job = await parked(world, engine)
    for resubmit, token in ((False, job.lease_token), (True, job.lease_token - 1)):
        with pytest.raises(ActionNotAllowed, match=f"job {job.id} may have been accepted by the provider"):
            await operate.retry(engine.ctx, job.id, "ann", resubmit=resubmit, token=token)
    await work(engine)

    assert (await world.see(job)).is_parked_submit
    assert len(world.provider.created) == 1


async def test_a_parked_order_submitted_again_has_a_new_grace_period(world: World) -> None:
    engine = world.engine(EngineRules(unknown_submit=UnknownSubmit.PARK))
    job = await parked(world, engine)
    await operate.retry(engine.ctx, job.id, "ann", resubmit=True)
    dying = world.engine()
    world.provider.create_gate.shut()
    await world.claim_one(dying)
    await world.provider.create_gate.holds()
    await die(dying)

    world.clock.advance(EngineRules().lease_seconds + 1)
    await work(engine)

    row = await world.see(job)
    assert (row.state, row.attention_reason) == (State.SUBMITTING, None)
    assert row.grace_until is not None
    assert (row.grace_until - world.clock.now()).total_seconds() == GRACE


async def test_a_retry_within_the_grace_period_does_not_submit_again(world: World, engine: Engine) -> None:
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)

    await operate.retry(engine.ctx, job.id, "ann")
    await work(engine)

    row = await world.see(job)
    assert row.state is State.SUBMITTING
    assert row.due_at == row.grace_until
    assert len(world.provider.created) == 1


async def test_a_retry_within_the_grace_period_does_not_end_it_even_after_the_deadline(
    world: World, engine: Engine
) -> None:
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order(deadline_seconds=60))
    await idle(engine)
    grace = (await world.see(job)).grace_until

    world.clock.advance(70)
    await operate.retry(engine.ctx, job.id, "ann")
    await work(engine)

    row = await world.see(job)
    assert row.due_at == row.grace_until == grace
    assert await work(engine) == []


async def test_a_retry_is_refused_while_the_job_is_being_processed(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    await world.store.claim_jobs(1, engine.ctx.lease)
    with pytest.raises(ActionNotAllowed, match=f"job {job.id} is being processed at this moment"):
        await operate.retry(engine.ctx, job.id, "ann")


async def test_a_retry_of_an_ended_job_is_refused_and_says_what_to_do_instead(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)
    with pytest.raises(
        ActionNotAllowed, match=r"has ended \(succeeded, delivered\): resend it, or have the user order again"
    ):
        await operate.retry(engine.ctx, job.id, "ann")
    assert world.recorder.of(Event.OPERATOR_ACTION) == []


# resend


async def test_a_resend_shows_the_result_again_on_a_new_message_for_free(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)

    await operate.resend(engine.ctx, job.id, "ann")
    await work(engine)

    row = await world.see(job)
    assert world.channel.showing(URL) == [job.placeholder, row.placeholder]
    assert row.placeholder != job.placeholder
    assert (row.delivery, row.hold_state) == (Delivery.DELIVERED, HoldState.CAPTURED)
    assert world.channel.notices == [job.id]
    assert await world.spent() == PRICE
    assert len(world.recorder.of(Event.OPERATOR_ACTION, action="resend")) == 1


async def test_a_resend_after_an_unknown_send_delivers_for_free_and_clears_the_list(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine)
    world.channel.delete(job.placeholder)
    world.channel.faults.add("send", ChannelOutcomeUnknown())
    await work(engine)

    await operate.resend(engine.ctx, job.id, "ann")
    await work(engine)

    row = await world.see(job)
    assert (row.delivery, row.attention_reason, row.hold_state) == (Delivery.DELIVERED, None, HoldState.RELEASED)
    assert world.channel.showing(URL) == [row.placeholder]
    assert world.channel.notices == [job.id]
    assert await world.spent() == 0


async def test_a_resend_to_a_chat_that_is_reachable_again_delivers(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("put", RecipientUnreachable("blocked"))
    await work(engine)
    await operate.resend(engine.ctx, job.id, "ann")
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.channel.showing(URL)) == 1


async def test_a_resend_while_the_notice_still_waits_sends_one_notice(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("notify", ChannelBusy(60))
    await work(engine)
    assert (await world.see(job)).notice is Notice.DUE

    await operate.resend(engine.ctx, job.id, "ann")
    world.channel.faults.add("notify", ChannelBusy(60))
    await work(engine)
    row = await world.see(job)
    assert (row.delivery, row.notice) == (Delivery.DELIVERED, Notice.DUE)
    assert row.due_at is not None
    world.clock.advance(60)
    await work(engine)

    assert world.channel.notices == [job.id]
    assert (await world.see(job)).notice is Notice.SENT


async def test_a_resend_that_fails_while_the_notice_still_waited_sends_none(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    world.channel.faults.add("notify", ChannelBusy(60))
    await work(engine)

    await operate.resend(engine.ctx, job.id, "ann")
    world.channel.faults.add("put", RecipientUnreachable("blocked"))
    await work(engine)

    row = await world.see(job)
    assert (row.delivery, row.due_at, row.lease_owner) == (Delivery.UNDELIVERABLE, None, None)
    assert world.channel.notices == []


@pytest.mark.parametrize("stage", ["running", "ended", "sending"])
async def test_a_resend_is_refused_before_there_is_a_result(world: World, engine: Engine, stage: str) -> None:
    job = await (world.running if stage == "running" else world.ended)(engine)
    if stage == "sending":
        await world.store.claim_jobs(1, engine.ctx.lease)
    with pytest.raises(ActionNotAllowed, match=f"job {job.id} has nothing to resend yet"):
        await operate.resend(engine.ctx, job.id, "ann")


# cancel


@pytest.mark.parametrize("end", ["success", "failed", "cancel", "expired"])
async def test_cancelling_an_ended_job_is_refused_with_a_reason(world: World, engine: Engine, end: str) -> None:
    job = await world.running(engine, deadline_seconds=60)
    if end == "cancel":
        await engine.cancel(job.id, "the user")
        await idle(engine)
    elif end == "expired":
        world.clock.advance(60)
        await work(engine)
    else:
        await world.call_back(engine, job, state=end)
    before = await world.see(job)

    with pytest.raises(ActionNotAllowed, match=rf"job {job.id} has already ended \({before.state}\)"):
        await engine.cancel(job.id, "the user")

    assert await world.see(job) == before


async def test_another_instance_informs_the_user_of_a_cancelled_job_if_this_one_is_full(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine)
    full = world.engine(EngineRules(capacity=0))
    cancelled = await full.cancel(job.id, "the user")
    assert (cancelled.delivery, cancelled.lease_owner) == (Delivery.PENDING, None)
    assert await world.spent() == 0

    await work(engine)
    assert world.channel.showing("cancelled") == [job.placeholder]


async def test_a_cancel_takes_a_parked_order_off_the_list(world: World) -> None:
    engine = world.engine(EngineRules(unknown_submit=UnknownSubmit.PARK))
    job = await parked(world, engine)
    await engine.cancel(job.id, "ann")
    await idle(engine)
    row = await world.see(job)
    assert (row.state, row.attention_reason, row.delivery) == (State.CANCELLED, None, Delivery.DELIVERED)
    assert await world.spent() == 0


# handled


async def unreachable(world: World, engine: Engine) -> Job:
    """A job whose user blocked the bot."""
    job = await world.ended(engine)
    world.channel.faults.add("put", RecipientUnreachable("the user has blocked the bot"))
    await work(engine)
    job = await world.see(job)
    assert job.attention_reason == "the user has blocked the bot"
    return job


async def test_a_handled_job_leaves_the_list_and_nothing_else_changes(world: World, engine: Engine) -> None:
    job = await unreachable(world, engine)
    before = await world.wallet()

    now = await operate.mark_handled(engine.ctx, job.id, "ann", job.lease_token)

    assert (now.attention_code, now.delivery, now.hold_state) == (None, Delivery.UNDELIVERABLE, HoldState.RELEASED)
    assert await world.wallet() == before
    assert len(world.recorder.of(Event.OPERATOR_ACTION, action="handled")) == 1


async def test_the_second_operator_is_told_that_it_was_handled(world: World, engine: Engine) -> None:
    job = await unreachable(world, engine)
    await operate.mark_handled(engine.ctx, job.id, "ann", job.lease_token)

    with pytest.raises(ActionNotAllowed, match=f"job {job.id} is not on the operator's list any more"):
        await operate.mark_handled(engine.ctx, job.id, "bob", job.lease_token)
    assert len(world.recorder.of(Event.OPERATOR_ACTION)) == 1


async def test_a_parked_job_is_not_handled_by_looking_away(world: World) -> None:
    engine = world.engine(rules=EngineRules(unknown_submit=UnknownSubmit.PARK))
    job = await parked(world, engine)

    with pytest.raises(ActionNotAllowed, match=f"job {job.id} still waits .*: retry or cancel it"):
        await operate.mark_handled(engine.ctx, job.id, "ann", job.lease_token)
    with pytest.raises(ActionNotAllowed, match=f"job {job.id} has changed meanwhile"):
        await operate.mark_handled(engine.ctx, job.id, "ann", job.lease_token - 1)
    assert (await world.see(job)).attention_reason == "submit_unknown"


# refund


async def test_a_refund_returns_the_price_once_and_only_of_a_paid_job(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    with pytest.raises(ActionNotAllowed, match="was not paid for"):
        await operate.refund(engine.ctx, job.id, "ann")
    await work(engine)
    assert await world.spent() == PRICE

    assert await operate.refund(engine.ctx, job.id, "ann")
    assert not await operate.refund(engine.ctx, job.id, "bob")

    assert await world.spent() == 0
    assert [seen.facts["by"] for seen in world.recorder.of(Event.OPERATOR_ACTION, action="refund")] == ["ann"]
    with pytest.raises(JobNotFound):
        await operate.refund(engine.ctx, 404, "ann")


async def test_the_user_of_a_refunded_job_is_told_in_their_language(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    await ensure_profile(world.store, world.account, language="ru", name="Анна", username="", referred_by=None)

    message = await refund_message(world.store, package_texts(), job)

    assert message.account_id == world.account
    assert f"Возврат за заказ #{job.id}: 0,1" in message.text
