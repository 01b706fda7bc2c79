"""Collecting results: callbacks and polls end a job in one way, and the first terminal report wins."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.errors import ProviderBusy
from genlock.domain.events import Event
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, State
from genlock.domain.money import EntryKind, HoldState
from genlock.engine import operate
from genlock.engine.engine import Engine
from tests.engine.fake_provider import URL, callback_body, failure, success
from tests.engine.faults import FaultProxy
from tests.engine.steps import POLL, poll
from tests.engine.world import PRICE, World, idle, work


async def test_a_callback_delivers_the_result_and_captures_the_hold(world: World, engine: Engine) -> None:
    job = await world.running(engine)

    callback = await world.call_back(engine, job, cost=40)

    job = await world.see(job)
    assert (job.state, job.delivery, job.hold_state, job.cost) == (
        *(State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED),
        40,
    )
    assert world.channel.shown == [(job.placeholder, f"address {URL}")]
    assert world.channel.notices == [job.id]
    assert await world.spent() == PRICE
    [stored] = await world.store.callbacks(InboxState.DONE, 10)
    assert (stored.id, stored.job_id, stored.note) == (callback.id, job.id, "won")


async def test_a_callback_is_stored_in_the_commit_that_ends_its_job(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(store=proxy)
    job = await world.running(engine)

    await world.call_back(engine, job)
    repeated = await world.call_back(engine, job)

    assert proxy.gate("store_callback").arrived == 0
    late, first = await world.store.callbacks(InboxState.DONE, 10)
    assert (first.job_id, first.task_id, first.note) == (job.id, "task-1", "won")
    assert late == repeated
    assert late.note == "duplicate"


async def test_a_poll_delivers_the_result_and_captures_the_hold(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.provider.reports["task-1"] = success("task-1", cost=40)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.delivery, job.hold_state, job.cost) == (
        *(State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED),
        40,
    )
    assert world.channel.showing(URL) == [job.placeholder]
    assert await world.spent() == PRICE


async def test_a_failure_releases_the_hold_and_informs_the_user(world: World, engine: Engine) -> None:
    by_callback = await world.running(engine)
    await world.call_back(engine, by_callback, state="failed", code="nsfw", urls=[])
    by_poll = await world.running(engine)
    world.provider.reports["task-2"] = failure("task-2", "broken")
    await poll(world, engine)

    for job, code in ((by_callback, "nsfw"), (by_poll, "broken")):
        ended = await world.see(job)
        assert (ended.state, ended.error_code, ended.hold_state) == (State.FAILED, code, HoldState.RELEASED)
        assert ended.delivery is Delivery.DELIVERED
        assert world.channel.showing(code) == [ended.placeholder]
    assert await world.spent() == 0


async def test_a_poll_after_the_callback_changes_nothing(world: World, engine: Engine) -> None:
    """The query was already on the proxy when the callback came."""
    job = await world.running(engine)
    poller = world.engine()
    world.provider.reports["task-1"] = success("task-1", "https://files.example/other.png")
    world.provider.status_gate.shut()
    world.clock.advance(POLL)
    await world.claim_one(poller)
    await world.provider.status_gate.holds()
    await world.call_back(engine, job)
    delivered = await world.see(job)

    world.provider.status_gate.open()
    await idle(poller)

    assert await world.see(job) == delivered
    assert len(world.channel.shown) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1
    assert len(world.recorder.of(Event.DELIVER_LOCK_SKIP, job=job.id)) == 1
    assert await world.spent() == PRICE


async def test_a_callback_after_the_poll_changes_nothing(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.provider.reports["task-1"] = success("task-1")
    await poll(world, engine)
    delivered = await world.see(job)

    await world.call_back(world.engine(), job)

    assert replace(await world.see(job), read_at=delivered.read_at) == delivered
    assert len(world.channel.shown) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1
    assert await world.spent() == PRICE


@pytest.mark.parametrize("state", ["success", "failed"])
async def test_simultaneous_callbacks_to_many_instances_have_one_effect(world: World, state: str) -> None:
    engines = [world.engine() for _ in range(3)]
    job = await world.running(engines[0])
    body = callback_body(task="task-1", state=state, urls=[URL])

    calls = [engine.callback("fake", world.provider.token(job), body) for engine in engines for _ in range(5)]
    await asyncio.gather(*calls)
    await idle(*engines)

    assert len(world.channel.shown) == 1
    assert world.channel.notices == [job.id]
    assert len(world.recorder.of(Event.JOB_ENDED)) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE)) == 14
    lines = [line.kind for line in await world.store.ledger_entries(world.account, 10) if line.job_id == job.id]
    assert sorted(lines) == sorted([EntryKind.HOLD, EntryKind.CAPTURE if state == "success" else EntryKind.RELEASE])


async def test_a_failure_after_a_success_raises_an_alarm_and_changes_nothing(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)
    settled = await world.see(job)

    await world.call_back(engine, job, state="failed")

    assert await world.see(job) == settled
    assert len(world.recorder.of(Event.RESULT_CONTRADICTION, job=job.id)) == 1
    assert len(world.channel.shown) == 1
    assert await world.spent() == PRICE


async def test_a_success_after_a_told_failure_is_shown_once_late_and_free_and_raises_an_alarm(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job, state="failed", code="nsfw")
    told = job.placeholder

    for state in ("success", "success", "failed", "success"):
        await world.call_back(engine, job, state=state, cost=12)

    row = await world.see(job)
    assert (row.state, row.late, row.delivery) == (State.FAILED, True, Delivery.DELIVERED)
    assert (row.hold_state, row.cost, row.error_code) == (HoldState.RELEASED, 12, "nsfw")
    assert world.channel.shown == [(told, "text nsfw"), (row.placeholder, f"address {URL}")]
    assert world.channel.notices == [job.id, job.id]
    assert len(world.recorder.of(Event.RESULT_LATE, job=job.id)) == 1
    assert len(world.recorder.of(Event.RESULT_CONTRADICTION, job=job.id)) == 1
    assert await world.spent() == 0


async def test_simultaneous_successes_after_a_failure_show_one_result(world: World) -> None:
    engines = [world.engine() for _ in range(3)]
    job = await world.running(engines[0])
    await world.call_back(engines[0], job, state="failed")

    await asyncio.gather(*(world.call_back(engine, job) for engine in engines for _ in range(2)))
    world.clock.advance(60)
    for callback in await world.store.claim_callbacks(10, 10.0):
        engines[0].worker.start_callback(callback)
    await idle(*engines)

    assert len(world.channel.showing(URL)) == 1
    assert len(world.recorder.of(Event.RESULT_LATE, job=job.id)) == 1
    assert await world.spent() == 0


async def test_a_success_while_an_operator_resends_the_failure_is_shown(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job, state="failed")
    await operate.resend(engine.ctx, job.id, "operator")

    await world.call_back(engine, job)
    await work(engine)

    row = await world.see(job)
    assert (row.late, row.delivery, row.hold_state) == (True, Delivery.DELIVERED, HoldState.RELEASED)
    assert len(world.channel.showing(URL)) == 1
    assert await world.spent() == 0


async def test_a_success_after_a_cancellation_is_not_shown(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "user")
    await idle(engine)

    await world.call_back(engine, job)

    row = await world.see(job)
    assert (row.state, row.late) == (State.CANCELLED, False)
    assert world.channel.showing(URL) == []


async def test_a_repeated_success_whose_result_is_invalid_is_not_shown_again(world: World, engine: Engine) -> None:
    world.channel.broken = {URL}
    job = await world.running(engine)
    for _ in range(2):
        await world.call_back(engine, job)

    assert [text for _, text in world.channel.shown] == ["text broken_result"]
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1


@pytest.mark.parametrize("first", ["failed", "expired"])
async def test_a_late_result_that_is_invalid_leaves_a_message_in_its_place(
    world: World, engine: Engine, first: str
) -> None:
    world.channel.broken = {URL}
    job = await world.running(engine, deadline_seconds=60)
    if first == "failed":
        await world.call_back(engine, job, state="failed", code="nsfw")
    else:
        world.clock.advance(60)
        await work(engine)

    await world.call_back(engine, job)

    row = await world.see(job)
    assert (row.state, row.late, row.error_code) == (State.FAILED, False, "broken_result")
    assert world.channel.messages[row.placeholder or ""] == "text broken_result"
    assert row.placeholder != job.placeholder
    assert await world.spent() == 0


async def test_a_result_recorded_before_the_first_poll_is_not_polled_for(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)
    world.clock.advance(1000)
    assert await work(engine) == []
    assert world.provider.asked == []


async def test_polls_continue_while_the_task_runs_and_become_rarer(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=900)
    pauses = []
    while (now := world.clock.now()) < job.deadline_at:
        row = await world.see(job)
        assert row.due_at is not None
        pauses.append((row.due_at - now).total_seconds())
        world.clock.advance(pauses[-1])
        await work(engine)

    assert len(world.provider.asked) == len(pauses)
    assert max(pauses[:4]) < 7
    assert min(pauses[-4:-1]) > 20
    assert 25 < len(pauses) < 60


async def test_a_failing_status_query_is_repeated_with_back_off(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.provider.faults.add("status", *(TimeoutError() for _ in range(6)))
    pauses = []
    for _ in range(6):
        world.clock.advance(60)
        await work(engine)
        row = await world.see(job)
        assert row.due_at is not None
        pauses.append((row.due_at - world.clock.now()).total_seconds())

    assert (await world.see(job)).attempts == 6
    assert pauses[0] < 3
    assert pauses[-1] > 40
    world.provider.reports["task-1"] = success("task-1")
    world.clock.advance(80)
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_busy_provider_is_queried_again_when_it_asked(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.provider.faults.add("status", ProviderBusy(33))
    await poll(world, engine)

    row = await world.see(job)
    assert row.due_at is not None
    assert (row.due_at - world.clock.now()).total_seconds() == 33
    assert (row.state, row.attempts) == (State.RUNNING, 0)
