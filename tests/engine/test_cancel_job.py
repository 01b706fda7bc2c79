"""Cancelling a job: before, during and after its submit, and what it cost."""

from dataclasses import replace

import pytest

from genlock.domain.errors import ActionNotAllowed, JobWasSubmitted, ProviderBusy
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports.provider import RateLimit
from tests.engine.fake_provider import URL, callback_body, failure, success
from tests.engine.steps import poll
from tests.engine.world import PRICE, World, idle, work


async def check_cancelled(world: World, job: Job) -> None:
    job = await world.see(job)
    assert (job.state, job.hold_state, job.delivery) == (State.CANCELLED, HoldState.RELEASED, Delivery.DELIVERED)
    assert world.channel.showing("cancelled") == [job.placeholder]
    assert await world.spent() == 0


async def test_a_queued_job_can_be_cancelled_and_is_never_submitted(world: World, engine: Engine) -> None:
    job = await world.engine(EngineRules(capacity=0)).order(world.order())
    await engine.cancel(job.id, "the user")
    await idle(engine)
    world.clock.advance(1000)
    await work(engine)

    await check_cancelled(world, job)
    assert world.provider.created == []


async def test_a_cancellation_of_a_queued_job_does_not_end_one_that_was_submitted_meanwhile(
    world: World, engine: Engine
) -> None:
    """What is submitted may cost the operator: the caller must ask the quota first."""
    seen = await world.engine(EngineRules(capacity=0)).order(world.order())
    world.clock.advance(1)
    await work(engine)
    running = await world.see(seen)
    assert running.state is State.RUNNING

    with pytest.raises(JobWasSubmitted):
        await engine.cancel(seen.id, "the user", attempt=seen.attempt)
    assert await world.see(seen) == running

    await engine.cancel(seen.id, "the user")
    await idle(engine)
    await check_cancelled(world, seen)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same instance", "other instance"])
async def test_a_job_can_be_cancelled_during_the_create_call(world: World, engine: Engine, *, elsewhere: bool) -> None:
    world.provider.create_gate.shut()
    job = await engine.order(world.order())
    await world.provider.create_gate.holds()

    canceller = world.engine() if elsewhere else engine
    await canceller.cancel(job.id, "the user")
    await world.recorder.until(Event.NOTICE_SENT)
    world.provider.create_gate.open()
    await idle(engine, canceller)
    await world.call_back(engine, job, task="task-1", cost=30)

    await check_cancelled(world, job)
    assert (await world.see(job)).cost == 30
    assert world.channel.showing(URL) == []


async def test_a_running_job_can_be_cancelled_and_its_cost_is_recorded_as_a_loss(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the user")
    await idle(engine)

    await world.call_back(engine, job, cost=30)

    await check_cancelled(world, job)
    row = await world.see(job)
    assert (row.cost, row.hold_state) == (30, HoldState.RELEASED)
    assert len(world.recorder.of(Event.LOSS_RECORDED, job=job.id)) == 1
    assert world.channel.showing(URL) == []
    assert world.channel.notices == [job.id]


async def test_without_a_callback_the_late_cost_of_a_cancelled_job_is_queried(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the user")
    await idle(engine)
    await poll(world, engine)
    assert (await world.see(job)).cost is None
    world.provider.reports["task-1"] = success("task-1", cost=40)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.cost, job.hold_state, job.due_at) == (State.CANCELLED, 40, HoldState.RELEASED, None)
    assert world.provider.asked == ["task-1", "task-1"]
    assert len(world.recorder.of(Event.LOSS_RECORDED, job=job.id)) == 1
    assert world.channel.showing(URL) == []
    await check_cancelled(world, job)


async def test_a_query_of_the_late_cost_does_not_interrupt_the_notice_that_is_being_sent(
    world: World, engine: Engine
) -> None:
    """The job has no lease while its notice is sent, and is due at once."""
    job = await world.running(engine)
    world.provider.reports["task-1"] = success("task-1", cost=40)
    world.channel.gate.shut()
    await engine.cancel(job.id, "the user")
    await world.channel.gate.holds()
    world.channel.gate.open()
    world.channel.gate.shut()
    await world.channel.gate.reached(2)  # the message, then the notice
    await world.claim_one(engine)
    await world.recorder.until(Event.LOSS_RECORDED)
    world.channel.gate.open()
    await idle(engine)

    assert world.channel.notices == [job.id]
    assert len(world.recorder.of(Event.NOTICE_SENT, job=job.id)) == 1
    await check_cancelled(world, job)


async def test_a_late_cost_that_a_callback_reported_is_not_queried(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the user")
    await idle(engine)
    assert (await world.see(job)).due_at is not None

    await world.call_back(engine, job, cost=40)

    job = await world.see(job)
    assert (job.cost, job.due_at) == (40, None)


async def test_a_late_cost_reported_during_a_query_is_not_queried_again(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the user")
    await idle(engine)
    world.provider.status_gate.shut()
    await world.claim_one(engine)
    await world.provider.status_gate.holds()
    await engine.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL], cost=40))
    world.provider.status_gate.open()
    await idle(engine)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.cost, job.due_at) == (40, None)
    assert world.provider.asked == ["task-1"]


@pytest.mark.parametrize("answer", [ProviderBusy(1.0, "later"), RuntimeError("unforeseen"), None])
async def test_the_late_cost_is_queried_until_the_deadline(
    world: World, engine: Engine, answer: Exception | None
) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the user")
    await idle(engine)
    if answer:
        world.provider.faults.add("status", answer, answer)
    await work(engine)
    assert (await world.see(job)).due_at is not None

    world.clock.advance((job.deadline_at - world.clock.now()).total_seconds())
    await work(engine)

    assert (await world.see(job)).due_at is None
    assert len(world.provider.asked) == 2


@pytest.mark.parametrize("notice", [False, True])
async def test_the_task_of_a_job_cancelled_during_the_create_call_has_a_late_cost_too(
    world: World,
    engine: Engine,
    notice: bool,  # noqa: FBT001 - a case
) -> None:
    world.provider.create_gate.shut()
    job = await engine.order(world.order(notice=notice))
    await world.provider.create_gate.holds()
    canceller = world.engine()
    await canceller.cancel(job.id, "the user")
    await idle(canceller)
    world.provider.create_gate.open()
    await idle(engine)
    world.provider.reports["task-1"] = replace(failure("task-1"), cost=7)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.task_id, job.cost, job.due_at) == (State.CANCELLED, "task-1", 7, None)


async def test_a_job_whose_result_is_being_delivered_cannot_be_cancelled(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)
    with pytest.raises(ActionNotAllowed, match=f"job {job.id} has already ended \\(succeeded\\)"):
        await engine.cancel(job.id, "the user")
    assert await world.spent() == PRICE


async def test_an_exhausted_rate_limit_does_not_expire_a_job_at_its_deadline(world: World) -> None:
    """A job expires only after a status query: the provider may have finished and billed its task."""
    engine = world.engine(EngineRules(limits={"status:fake": RateLimit(interval=10_000.0)}))
    await engine.ctx.limits.acquire("status:fake")
    job = await world.running(engine, deadline_seconds=60)
    world.clock.advance(61)
    [taken] = await world.store.claim_jobs(1, engine.ctx.lease)

    engine.worker.start(taken)
    await idle(engine)
    job = await world.see(job)
    assert job.state is State.RUNNING
    assert job.due_at is not None
    assert job.due_at > world.clock.now()

    world.clock.advance(engine.ctx.rules.last_answer_seconds)
    await work(engine)
    assert (await world.see(job)).state is State.EXPIRED


async def test_a_stored_callback_does_not_contain_its_secret(world: World) -> None:
    engine = world.engine()
    job = await world.running(engine)
    token = world.provider.token(job)
    body = b'{"taskId":"task-1","param":"http://host/callbacks/fake/' + token.encode() + b'"}'
    callback = await engine.callback("fake", token, body)
    await idle(engine)
    assert token.partition(".")[2].encode() not in callback.body
    assert callback.job_id == job.id
