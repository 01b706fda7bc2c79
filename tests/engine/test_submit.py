"""Submitting: the row is written before the call, the call is made once, an unknown outcome is never repeated."""

import asyncio

import pytest

from genlock.domain.errors import ChannelBusy, ProviderBusy, StoreError, StoreUnavailable, SubmitRefused, SubmitUnknown
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.engine.context import EngineRules, UnknownSubmit
from genlock.engine.engine import Engine
from tests.engine.fake_provider import URL, callback_body
from tests.engine.faults import FaultProxy
from tests.engine.world import PRICE, World, die, idle, work

GRACE = EngineRules().grace_seconds


async def test_a_job_is_submitted_at_once_and_then_has_no_task(world: World, engine: Engine) -> None:
    job = await world.running(engine)

    assert job.task_id == "task-1"
    assert job.lease_owner is None
    assert job.due_at is not None
    assert 3 < (job.due_at - world.clock.now()).total_seconds() < 7


async def test_the_intent_is_committed_before_the_provider_is_called(world: World, engine: Engine) -> None:
    rows: list[Job] = []

    async def look(job: Job) -> None:
        rows.append(await world.see(job))

    world.provider.on_create = look
    await engine.order(world.order())
    await idle(engine)

    [row] = rows
    assert row.state is State.SUBMITTING
    assert row.hold_state is HoldState.HELD
    assert row.submitted_at == world.clock.now()


async def test_the_callback_url_carries_a_secret_that_the_database_does_not_contain(
    world: World, engine: Engine
) -> None:
    jobs = [await world.running(engine) for _ in range(2)]

    tokens = [world.provider.token(job) for job in jobs]
    assert [token.partition(".")[0] for token in tokens] == [str(job.id) for job in jobs]
    secrets = [token.partition(".")[2] for token in tokens]
    assert secrets[0] != secrets[1]
    assert all(len(secret) >= 32 for secret in secrets)
    assert not any(secret in repr(job) for secret in secrets for job in jobs)
    assert world.provider.created[0][1] == f"https://bot.example/callbacks/fake/{tokens[0]}"


async def test_without_a_public_url_there_is_no_callback_url(world: World) -> None:
    await world.running(world.engine(public_url=None))
    assert [url for _, url in world.provider.created] == [None]


async def test_a_callback_before_the_answer_of_the_create_call_finds_its_job(world: World, engine: Engine) -> None:
    """Both reach the same instance."""
    world.provider.create_gate.shut()
    job = await engine.order(world.order())
    await world.provider.create_gate.holds()

    await engine.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await world.recorder.until(Event.MARK_DELIVERED)
    world.provider.create_gate.open()
    await idle(engine)

    job = await world.see(job)
    assert (job.state, job.delivery, job.task_id) == (State.SUCCEEDED, Delivery.DELIVERED, "task-1")
    assert world.channel.showing(URL) == [job.placeholder]
    assert await world.spent() == PRICE


async def test_the_answer_of_the_create_call_changes_nothing_after_its_callback_was_processed_elsewhere(
    world: World, engine: Engine
) -> None:
    endpoint = world.engine()
    world.provider.create_gate.shut()
    job = await engine.order(world.order())
    await world.provider.create_gate.holds()
    await world.call_back(endpoint, job, task="task-1")
    delivered = await world.see(job)

    world.provider.create_gate.open()
    await idle(engine)

    after = await world.see(job)
    assert after == delivered
    assert after.delivery is Delivery.DELIVERED
    assert len(world.recorder.of(Event.LEASE_LOST, job=job.id)) == 1
    assert len(world.channel.shown) == 1


@pytest.mark.parametrize("fault", [SubmitUnknown(), TimeoutError(), ConnectionResetError(), ValueError("bad JSON")])
async def test_a_submit_without_a_clear_answer_waits_and_is_not_repeated(
    world: World, engine: Engine, fault: Exception
) -> None:
    world.provider.faults.add("create", fault)
    job = await engine.order(world.order())
    await idle(engine)

    waiting = await world.see(job)
    assert (waiting.state, waiting.lease_owner) == (State.SUBMITTING, None)
    assert waiting.grace_until == waiting.due_at
    world.clock.advance(GRACE - 1)
    assert await work(engine) == []
    assert len(world.provider.created) == 1
    assert (await world.wallet()).held == PRICE
    assert world.recorder.total("submits_unknown") == 1


async def test_a_provider_that_repeats_a_task_id_leaves_the_outcome_unknown(world: World, engine: Engine) -> None:
    await world.running(engine)
    world.provider.created.clear()  # the provider counts from the beginning again
    job = await engine.order(world.order())
    await idle(engine)

    waiting = await world.see(job)
    assert (waiting.state, waiting.task_id, waiting.lease_owner) == (State.SUBMITTING, None, None)
    assert [seen.facts["reason"] for seen in world.recorder.of(Event.SUBMIT_UNKNOWN, job=job.id)] == ["TaskIdConflict"]
    assert world.recorder.of(Event.STAGE_ERROR) == []
    world.clock.advance(GRACE + 1)
    await work(engine)
    assert (await world.see(job)).hold_state is HoldState.RELEASED


async def test_an_unknown_submit_is_released_after_the_grace_period_and_the_user_informed(
    world: World, engine: Engine
) -> None:
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)

    world.clock.advance(GRACE + 1)
    await work(engine)

    job = await world.see(job)
    assert (job.state, job.error_code, job.hold_state) == (State.EXPIRED, "submit_unknown", HoldState.RELEASED)
    assert (job.delivery, job.notice) == (Delivery.DELIVERED, Notice.SENT)
    assert world.channel.showing("submit_unknown") == [job.placeholder]
    assert await world.spent() == 0
    assert len(world.provider.created) == 1


async def test_a_callback_within_the_grace_period_ends_the_job(world: World, engine: Engine) -> None:
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)

    world.clock.advance(GRACE - 1)
    await world.call_back(engine, job, task="task-1")
    world.clock.advance(GRACE)
    await work(engine)

    job = await world.see(job)
    assert (job.state, job.delivery, job.task_id) == (State.SUCCEEDED, Delivery.DELIVERED, "task-1")
    assert await world.spent() == PRICE


async def test_a_callback_after_the_grace_period_is_delivered_free(world: World, engine: Engine) -> None:
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)
    world.clock.advance(GRACE + 1)
    await work(engine)

    await world.call_back(engine, job, task="task-1", cost=5)

    job = await world.see(job)
    assert (job.state, job.late, job.delivery, job.cost) == (State.EXPIRED, True, Delivery.DELIVERED, 5)
    assert world.channel.showing(URL) == [job.placeholder]
    assert await world.spent() == 0


@pytest.mark.parametrize("answered", [False, True], ids=["before the answer", "after the answer"])
async def test_a_submit_whose_instance_crashed_waits_for_its_callback_and_is_not_repeated(
    world: World, engine: Engine, *, answered: bool
) -> None:
    proxy = FaultProxy(world.store)
    dying = world.engine(store=proxy)
    if answered:
        proxy.gate("mark_submitted").shut()
    else:
        world.provider.create_gate.shut()
    job = await dying.order(world.order())
    await (proxy.gate("mark_submitted").holds() if answered else world.provider.create_gate.holds())
    await die(dying)
    world.provider.create_gate.open()

    world.clock.advance(EngineRules().lease_seconds + 1)
    assert [taken.id for taken in await work(engine)] == [job.id]

    waiting = await world.see(job)
    assert (waiting.state, waiting.lease_owner) == (State.SUBMITTING, None)
    assert waiting.due_at is not None
    assert (waiting.due_at - world.clock.now()).total_seconds() == GRACE
    assert len(world.recorder.of(Event.SUBMIT_UNKNOWN, reason="taken over")) == 1
    world.clock.advance(GRACE + 1)
    await work(engine)
    assert (await world.see(job)).state is State.EXPIRED
    assert len(world.provider.created) == 1
    assert await world.spent() == 0


@pytest.mark.parametrize(
    "error", [StoreUnavailable(), StoreError("SQLite could not commit: database or disk is full")], ids=["away", "full"]
)
async def test_a_database_failure_after_the_create_call_does_not_lose_the_task(world: World, error: StoreError) -> None:
    """The task's id is all we have of something that is being billed."""
    proxy = FaultProxy(world.store)
    for _ in range(3):
        proxy.faults.add("mark_submitted", error)
    engine = world.engine(store=proxy)
    job = await engine.order(world.order())
    await idle(engine)
    job = await world.see(job)
    assert (job.state, job.task_id) == (State.RUNNING, "task-1")
    assert len(world.provider.created) == 1


async def test_a_submitter_that_lost_its_lease_during_the_call_still_stores_the_task_id(world: World) -> None:
    slow, other = world.engine(), world.engine()
    world.provider.create_gate.shut()
    job = await slow.order(world.order())
    await world.provider.create_gate.holds()
    await world.store.release_leases(slow.ctx.instance)
    await work(other)
    assert (await world.see(job)).grace_until is not None

    world.provider.create_gate.open()
    await idle(slow)

    job = await world.see(job)
    assert (job.state, job.task_id) == (State.RUNNING, "task-1")


async def test_an_unknown_submit_can_be_parked_for_the_operator_instead(world: World) -> None:
    engine = world.engine(EngineRules(unknown_submit=UnknownSubmit.PARK))
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)

    world.clock.advance(GRACE + 1)
    await work(engine)
    world.clock.advance(1_000_000)
    assert await work(engine) == []

    [parked] = await world.store.jobs_needing_attention(10)
    assert (parked.id, parked.state, parked.attention_reason) == (job.id, State.SUBMITTING, "submit_unknown")
    assert (await world.wallet()).held == PRICE
    assert len(world.recorder.of(Event.ATTENTION, reason="submit_unknown")) == 1
    await world.call_back(engine, job, task="task-1")
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert await world.store.jobs_needing_attention(10) == []


async def test_a_refused_submit_releases_the_hold_and_informs_the_user(world: World, engine: Engine) -> None:
    world.provider.faults.add("create", SubmitRefused("nsfw", "not that"))
    job = await engine.order(world.order())
    await idle(engine)

    job = await world.see(job)
    assert (job.state, job.error_code, job.error_text) == (State.FAILED, "nsfw", "not that")
    assert (job.hold_state, job.delivery, job.notice) == (HoldState.RELEASED, Delivery.DELIVERED, Notice.SENT)
    assert world.channel.showing("nsfw") == [job.placeholder]
    assert await world.spent() == 0


async def test_a_refusal_that_quotes_the_callback_url_is_stored_without_its_secret(
    world: World, engine: Engine
) -> None:
    secret = "secret-of-the-callback-url"
    object.__setattr__(engine.ctx, "make_secret", lambda: secret)
    world.provider.faults.add(
        "create", SubmitRefused("422", f"callBackUrl https://bot/callbacks/fake/1.{secret} is bad")
    )
    job = await engine.order(world.order())
    await idle(engine)

    assert secret not in (await world.see(job)).error_text


async def test_a_busy_provider_is_called_again_when_it_asked(world: World, engine: Engine) -> None:
    world.provider.faults.add("create", ProviderBusy(17))
    job = await engine.order(world.order())
    await idle(engine)

    waiting = await world.see(job)
    assert (waiting.state, waiting.lease_owner, waiting.attempts) == (State.QUEUED, None, 0)
    world.clock.advance(16.9)
    assert await work(engine) == []
    world.clock.advance(0.1)
    await work(engine)
    assert (await world.see(job)).state is State.RUNNING


async def test_a_job_of_a_provider_that_stays_busy_expires_at_the_deadline(world: World, engine: Engine) -> None:
    world.provider.faults.add("create", *(ProviderBusy(50) for _ in range(10)))
    job = await engine.order(world.order(deadline_seconds=120))
    await idle(engine)

    for _ in range(3):
        world.clock.advance(50)
        await work(engine)

    job = await world.see(job)
    assert (job.state, job.error_code) == (State.EXPIRED, "deadline")
    assert len(world.provider.created) == 3
    assert await world.spent() == 0


async def test_a_job_that_waited_in_the_queue_past_its_deadline_is_not_submitted(world: World, engine: Engine) -> None:
    full = world.engine(EngineRules(capacity=0))
    job = await full.order(world.order(deadline_seconds=60))

    world.clock.advance(61)
    await work(engine)

    job = await world.see(job)
    assert (job.state, job.error_code, job.delivery) == (State.EXPIRED, "deadline", Delivery.DELIVERED)
    assert world.provider.created == []
    assert world.channel.showing("deadline") == [job.placeholder]
    assert await world.spent() == 0


async def test_an_order_without_a_placeholder_gets_one_before_it_is_submitted(world: World, engine: Engine) -> None:
    job = await world.running(engine, placeholder=None)
    assert job.placeholder is not None
    assert world.channel.messages == {"m1": "", job.placeholder: ""}

    await world.call_back(engine, job)

    assert world.channel.showing(URL) == [job.placeholder]


async def test_a_job_is_submitted_even_if_its_placeholder_cannot_be_created(world: World, engine: Engine) -> None:
    world.channel.faults.add("create_placeholder", ChannelBusy(60))
    job = await world.running(engine, placeholder=None)
    assert job.placeholder is None

    await world.call_back(engine, job)

    job = await world.see(job)
    assert job.delivery is Delivery.DELIVERED
    assert world.channel.showing(URL) == [job.placeholder]


async def test_a_task_id_of_another_job_is_not_accepted(world: World, engine: Engine) -> None:
    """Two jobs with one task would get one result twice."""
    first = await world.running(engine)
    world.provider.created.clear()  # it counts from one again
    second = await engine.order(world.order())
    await idle(engine)
    assert (await world.see(second)).state is State.SUBMITTING

    world.clock.advance(5)
    await work(engine)
    world.clock.advance(GRACE + 1)
    await work(engine)

    assert (await world.see(first)).state is State.RUNNING
    assert (await world.see(second)).state is State.EXPIRED
    assert len(world.provider.created) == 1


async def test_orders_are_submitted_in_parallel(world: World, engine: Engine) -> None:
    world.provider.create_gate.shut()
    jobs = await asyncio.gather(*(engine.order(world.order()) for _ in range(20)))
    await world.provider.create_gate.holds(20)
    world.provider.create_gate.open()
    await idle(engine)

    assert {(await world.see(job)).state for job in jobs} == {State.RUNNING}
