"""The deadline of a job: a last query, the end, and results that come afterwards."""

import pytest

from genlock.domain.errors import ProviderBusy
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.domain.money import HoldState
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.stores.callbacks import CALLBACK_HOLD_SECONDS
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.steps import poll
from tests.engine.world import PRICE, World, idle, work


async def test_at_the_deadline_the_status_is_queried_a_last_time(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.clock.advance(59)
    await work(engine)
    asked = len(world.provider.asked)
    world.provider.reports["task-1"] = success("task-1")

    world.clock.advance(1)
    await work(engine)

    assert len(world.provider.asked) == asked + 1
    assert (await world.see(job)).state is State.SUCCEEDED
    assert await world.spent() == PRICE


@pytest.mark.parametrize("answer", [None, TimeoutError(), ProviderBusy(30)], ids=["running", "time-out", "busy"])
async def test_past_the_deadline_the_job_expires_and_the_hold_is_released(
    world: World, engine: Engine, answer: Exception | None
) -> None:
    job = await world.running(engine, deadline_seconds=60)
    if answer:
        world.provider.faults.add("status", answer)
    world.clock.advance(60)
    await work(engine)
    if answer:  # no query was answered, so the job waits for one more answer, for a limited time
        assert (await world.see(job)).state is State.RUNNING
        world.provider.faults.add("status", answer)
        world.clock.advance(EngineRules().last_answer_seconds)
        await work(engine)

    job = await world.see(job)
    assert (job.state, job.error_code, job.hold_state) == (State.EXPIRED, "deadline", HoldState.RELEASED)
    assert (job.delivery, job.attention_reason) == (Delivery.DELIVERED, None)
    assert world.channel.showing("deadline") == [job.placeholder]
    assert await world.spent() == 0


async def test_no_wait_goes_beyond_the_deadline(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.provider.faults.add("status", ProviderBusy(1000))
    await poll(world, engine)
    assert (await world.see(job)).due_at == job.deadline_at


async def test_a_result_after_the_deadline_is_delivered_free_on_a_new_message_and_logged(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.clock.advance(60)
    await work(engine)
    told = job.placeholder

    await world.call_back(engine, job, cost=12)
    await world.call_back(engine, job, cost=12)

    job = await world.see(job)
    assert (job.state, job.late, job.delivery) == (State.EXPIRED, True, Delivery.DELIVERED)
    assert (job.hold_state, job.cost) == (HoldState.RELEASED, 12)
    assert told != job.placeholder
    assert world.channel.shown == [(told, "text deadline"), (job.placeholder, f"address {URL}")]
    assert len(world.recorder.of(Event.RESULT_LATE, job=job.id)) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1
    assert await world.spent() == 0


async def test_a_failure_reported_after_the_deadline_changes_nothing(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.clock.advance(60)
    await work(engine)
    await world.call_back(engine, job, state="failed")
    assert len(world.channel.shown) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1


async def test_a_result_that_arrives_while_the_user_is_informed_of_the_deadline_is_processed_later(
    world: World,
) -> None:
    """Words that are still on the proxy must not land on top of the result."""
    engine, endpoint = world.engine(), world.engine()
    job = await world.running(engine, deadline_seconds=60)
    world.clock.advance(60)
    world.channel.gate.shut()
    await world.claim_one(engine)
    await world.channel.gate.holds()

    await endpoint.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await idle(endpoint)
    assert not (await world.see(job)).late
    world.channel.gate.open()
    await idle(engine)
    world.clock.advance(CALLBACK_HOLD_SECONDS)
    await endpoint.sweeper.sweep()
    await idle(endpoint)

    job = await world.see(job)
    assert (job.late, job.delivery) == (True, Delivery.DELIVERED)
    assert world.channel.showing(URL) == [job.placeholder]
    assert world.channel.notices == [job.id, job.id]
    assert await world.spent() == 0


@pytest.mark.parametrize(
    ("expected", "left", "submitted"),
    [(10.0, 19.0, False), (10.0, 21.0, True), (60.0, 31.0, True), (60.0, 29.0, False)],
)
async def test_an_order_is_not_submitted_when_its_result_would_probably_come_after_the_deadline(
    world: World, *, expected: float, left: float, submitted: bool
) -> None:
    """A late result is free: users of a full queue would get most results free."""
    full, engine = world.engine(EngineRules(capacity=0)), world.engine(expected=expected)
    job = await full.order(world.order(deadline_seconds=60))

    world.clock.advance(60 - left)
    await work(engine)

    job = await world.see(job)
    assert len(world.provider.created) == submitted
    if not submitted:
        assert (job.state, job.error_code, job.hold_state) == (State.EXPIRED, "deadline", HoldState.RELEASED)
        assert world.channel.showing("deadline") == [job.placeholder]


async def test_a_new_order_is_submitted_though_its_model_is_expected_to_take_until_the_deadline(world: World) -> None:
    job = await world.running(world.engine(expected=60.0), deadline_seconds=60)
    assert (await world.see(job)).state is State.RUNNING
