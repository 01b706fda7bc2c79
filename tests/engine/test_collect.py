"""Collecting results: callbacks and polls end a job in one way, and the first terminal report wins."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.errors import ActionNotAllowed, JobWasSubmitted, ProviderBusy, SubmitUnknown
from genlock.domain.events import Event
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.result import Outcome, Piece, Report
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports.provider import RateLimit
from genlock.stores.callbacks import CALLBACK_HOLD_SECONDS
from tests.engine.world import (
    PRICE,
    URL,
    FaultProxy,
    World,
    callback_body,
    failure,
    idle,
    process_stored,
    success,
    work,
)

POLL = 10.0


async def poll(world: World, engine: Engine) -> list[Job]:
    world.clock.turn(POLL)
    return await work(engine)


# A4


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
    world.clock.turn(POLL)
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
    world.clock.turn(60)
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
        world.clock.turn(60)
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
    world.clock.turn(1000)
    assert await work(engine) == []
    assert world.provider.asked == []


async def test_polls_continue_while_the_task_runs_and_become_rarer(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=900)
    pauses = []
    while (now := world.clock.now()) < job.deadline_at:
        row = await world.see(job)
        assert row.due_at is not None
        pauses.append((row.due_at - now).total_seconds())
        world.clock.turn(pauses[-1])
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
        world.clock.turn(60)
        await work(engine)
        row = await world.see(job)
        assert row.due_at is not None
        pauses.append((row.due_at - world.clock.now()).total_seconds())

    assert (await world.see(job)).attempts == 6
    assert pauses[0] < 3
    assert pauses[-1] > 40
    world.provider.reports["task-1"] = success("task-1")
    world.clock.turn(80)
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


# what is said at a job's address about another task


@pytest.mark.parametrize("endpoint", ["short", "long"])
@pytest.mark.parametrize("state", ["success", "failed"])
async def test_a_callback_to_a_jobs_url_about_another_jobs_task_ends_neither_and_is_reported(
    world: World, engine: Engine, endpoint: str, state: str
) -> None:
    """A terminal callback ends its job in one commit; any other is stored first and processed afterwards."""
    mine, others = [await world.running(engine) for _ in range(2)]
    world.provider.reports |= {
        job.task_id: success(job.task_id, f"{URL}?{job.id}") for job in (mine, others) if job.task_id
    }
    body = callback_body(task=others.task_id, state=state, urls=[f"{URL}?{others.id}"], cost=9)
    if endpoint == "short":
        await engine.callback("fake", world.provider.token(mine), body)
    else:
        await process_stored(engine, world.provider.token(mine), body)
    await idle(engine)

    for job in (mine, others):
        row = await world.see(job)
        assert (row.state, row.delivery, row.cost, row.task_id) == (State.RUNNING, Delivery.NONE, None, job.task_id)
    assert len(world.recorder.of(Event.RESULT_WRONG_TASK, job=mine.id, task_id=others.task_id)) == 1
    assert world.recorder.total("callbacks", outcome="wrong_task") == 1
    [kept] = await world.store.callbacks(InboxState.DONE, 10)
    assert (kept.job_id, kept.task_id, kept.note) == (mine.id, others.task_id, "wrong_task")

    await poll(world, engine)
    for job in (mine, others):
        assert world.channel.showing(f"{URL}?{job.id}") == [job.placeholder], "each gets its own"


async def test_a_result_for_a_job_without_a_known_task_is_accepted_unless_the_task_is_another_jobs(
    world: World, engine: Engine
) -> None:
    others = await world.running(engine)
    world.provider.faults.add("create", SubmitUnknown())
    mine = await engine.order(world.order())
    await idle(engine)

    await world.call_back(engine, mine, task=others.task_id)
    assert (await world.see(mine)).state is State.SUBMITTING
    await world.call_back(engine, mine, task="task-2")

    row = await world.see(mine)
    assert (row.delivery, row.task_id) == (Delivery.DELIVERED, "task-2")
    assert (await world.see(others)).state is State.RUNNING


async def test_a_status_answer_about_another_task_is_ignored(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.provider.reports["task-1"] = success("task-2")

    await poll(world, engine)
    row = await world.see(job)
    assert (row.state, row.attempts, row.lease_owner) == (State.RUNNING, 1, None)
    assert world.recorder.total("provider_errors", call="status", reason="ProviderError") == 1

    world.clock.turn(60 + EngineRules().last_answer_seconds)
    await work(engine)
    assert (await world.see(job)).state is State.EXPIRED, "it does not wait forever"
    assert await world.spent() == 0


# A5


@pytest.mark.parametrize("way", ["callback", "poll"])
async def test_an_unknown_state_word_keeps_the_job_running_and_is_counted(
    world: World, engine: Engine, way: str
) -> None:
    job = await world.running(engine)
    if way == "callback":
        await world.call_back(engine, job, state="Partying")
    else:
        world.provider.reports["task-1"] = Report(outcome=Outcome.UNKNOWN, task_id="task-1", word="Partying")
        await poll(world, engine)

    row = await world.see(job)
    assert (row.state, row.delivery, row.attention_reason) == (State.RUNNING, Delivery.NONE, None)
    assert row.due_at is not None
    assert world.recorder.total("unknown_states", word="Partying") == 1
    assert len(world.recorder.of(Event.UNKNOWN_STATE, word="Partying")) == 1
    await world.call_back(engine, job)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_job_with_an_unknown_state_word_expires_at_its_deadline(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=300)
    world.provider.reports["task-1"] = Report(outcome=Outcome.UNKNOWN, task_id="task-1", word="partying")
    for _ in range(60):
        world.clock.turn(6)
        await work(engine)

    assert (await world.see(job)).state is State.EXPIRED
    assert await world.spent() == 0


async def test_a_callback_that_says_running_changes_nothing(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job, state="generating")
    assert await world.see(job) == job
    [stored] = await world.store.callbacks(InboxState.DONE, 10)
    assert stored.note == "running"


# A6


@pytest.mark.parametrize("urls", [[], [""], [" ", "\n"]], ids=["none", "empty", "blank"])
@pytest.mark.parametrize("way", ["callback", "poll"])
async def test_a_success_without_a_result_is_a_failure(world: World, engine: Engine, way: str, urls: list[str]) -> None:
    job = await world.running(engine)
    if way == "callback":
        await world.call_back(engine, job, urls=urls)
    else:
        pieces = tuple(Piece(value=url) for url in urls)
        world.provider.reports["task-1"] = Report(outcome=Outcome.SUCCESS, task_id="task-1", pieces=pieces)
        await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.error_code, job.hold_state) == (State.FAILED, "empty_result", HoldState.RELEASED)
    assert world.channel.showing("empty_result") == [job.placeholder]
    assert await world.spent() == 0


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\x00", b"[]", b"{}", b"null", b'"text"'])
async def test_an_unreadable_callback_is_kept_and_changes_nothing(world: World, engine: Engine, body: bytes) -> None:
    job = await world.running(engine)
    await engine.callback("fake", world.provider.token(job), body)
    await idle(engine)

    assert await world.see(job) == job
    [kept] = await world.store.callbacks(InboxState.UNREADABLE, 10)
    assert (kept.body, kept.job_id) == (body, job.id)
    assert len(world.recorder.of(Event.CALLBACK_UNREADABLE, callback=kept.id)) == 1
    assert await world.store.claim_callbacks(10, 1) == []


async def test_a_callback_of_a_provider_not_configured_here_is_left_to_other_instances(
    world: World, engine: Engine
) -> None:
    """In a deploy the new instances may know a provider that the old ones do not."""
    await engine.callback("other", None, b"{}")
    await idle(engine)
    assert len(await world.store.callbacks(InboxState.NEW, 10)) == 1


async def test_a_callback_of_a_provider_configured_nowhere_expires_for_the_operator(
    world: World, engine: Engine
) -> None:
    callback = await engine.callback("other", None, b"{}")
    await idle(engine)

    world.clock.turn(engine.ctx.rules.unknown_provider_expire_seconds + 1)
    await engine.sweeper.claim_callbacks()
    await idle(engine)

    [kept] = await world.store.callbacks(InboxState.EXPIRED, 10)
    assert (kept.id, kept.note) == (callback.id, "no instance has the provider 'other' configured")
    assert len(world.recorder.of(Event.ORPHAN_EXPIRED, callback=callback.id)) == 1


@pytest.mark.parametrize("word", ["running", "a new word"])
async def test_a_callback_about_a_running_task_settles_its_unknown_submit(
    world: World, engine: Engine, word: str
) -> None:
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)

    await world.call_back(engine, job, state=word, task="task-1", urls=[])

    job = await world.see(job)
    assert (job.state, job.task_id, job.due_at) == (State.RUNNING, "task-1", world.clock.now())
    world.provider.reports["task-1"] = success("task-1")
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.provider.created) == 1


async def test_a_callback_about_a_running_task_changes_nothing_where_the_task_is_known(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job, state="running", task="task-77", urls=[])
    assert await world.see(job) == job


async def test_a_callback_that_raises_is_kept_as_unreadable_and_others_are_processed(
    world: World, engine: Engine
) -> None:
    """A text that no database takes cannot be recorded, however often one tries."""
    other = await world.running(engine)
    world.provider.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)

    await world.call_back(engine, job, task="task\0")
    await world.call_back(engine, other)
    world.clock.turn(60)
    await engine.sweeper.claim_callbacks()
    await idle(engine)

    assert len(world.recorder.of(Event.STAGE_ERROR)) == 1
    [kept] = await world.store.callbacks(InboxState.UNREADABLE, 10)
    assert kept.job_id == job.id
    assert kept.note
    assert (await world.see(other)).delivery is Delivery.DELIVERED
    assert (await world.see(job)).state is State.SUBMITTING


# A7


async def test_at_the_deadline_the_status_is_queried_a_last_time(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.clock.turn(59)
    await work(engine)
    asked = len(world.provider.asked)
    world.provider.reports["task-1"] = success("task-1")

    world.clock.turn(1)
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
    world.clock.turn(60)
    await work(engine)
    if answer:  # no query was answered, so the job waits for one more answer, for a limited time
        assert (await world.see(job)).state is State.RUNNING
        world.provider.faults.add("status", answer)
        world.clock.turn(EngineRules().last_answer_seconds)
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
    world.clock.turn(60)
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
    world.clock.turn(60)
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
    world.clock.turn(60)
    world.channel.gate.shut()
    await world.claim_one(engine)
    await world.channel.gate.holds()

    await endpoint.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await idle(endpoint)
    assert not (await world.see(job)).late
    world.channel.gate.open()
    await idle(engine)
    world.clock.turn(CALLBACK_HOLD_SECONDS)
    await endpoint.sweeper.sweep()
    await idle(endpoint)

    job = await world.see(job)
    assert (job.late, job.delivery) == (True, Delivery.DELIVERED)
    assert world.channel.showing(URL) == [job.placeholder]
    assert world.channel.notices == [job.id, job.id]
    assert await world.spent() == 0


# A8


async def check_cancelled(world: World, job: Job) -> None:
    job = await world.see(job)
    assert (job.state, job.hold_state, job.delivery) == (State.CANCELLED, HoldState.RELEASED, Delivery.DELIVERED)
    assert world.channel.showing("cancelled") == [job.placeholder]
    assert await world.spent() == 0


async def test_a_queued_job_can_be_cancelled_and_is_never_submitted(world: World, engine: Engine) -> None:
    job = await world.engine(EngineRules(capacity=0)).order(world.order())
    await engine.cancel(job.id, "the person")
    await idle(engine)
    world.clock.turn(1000)
    await work(engine)

    await check_cancelled(world, job)
    assert world.provider.created == []


async def test_a_cancellation_of_a_queued_job_does_not_end_one_that_was_submitted_meanwhile(
    world: World, engine: Engine
) -> None:
    """What is submitted may cost the operator: the caller must ask the quota first."""
    seen = await world.engine(EngineRules(capacity=0)).order(world.order())
    world.clock.turn(1)
    await work(engine)
    running = await world.see(seen)
    assert running.state is State.RUNNING

    with pytest.raises(JobWasSubmitted):
        await engine.cancel(seen.id, "the person", attempt=seen.attempt)
    assert await world.see(seen) == running

    await engine.cancel(seen.id, "the person")
    await idle(engine)
    await check_cancelled(world, seen)


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same instance", "other instance"])
async def test_a_job_can_be_cancelled_during_the_create_call(world: World, engine: Engine, *, elsewhere: bool) -> None:
    world.provider.create_gate.shut()
    job = await engine.order(world.order())
    await world.provider.create_gate.holds()

    canceller = world.engine() if elsewhere else engine
    await canceller.cancel(job.id, "the person")
    await world.recorder.until(Event.NOTICE_SENT)
    world.provider.create_gate.open()
    await idle(engine, canceller)
    await world.call_back(engine, job, task="task-1", cost=30)

    await check_cancelled(world, job)
    assert (await world.see(job)).cost == 30
    assert world.channel.showing(URL) == []


async def test_a_running_job_can_be_cancelled_and_its_cost_is_recorded_as_a_loss(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
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
    await engine.cancel(job.id, "the person")
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


async def test_a_late_cost_that_a_callback_reported_is_not_queried(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
    await idle(engine)
    assert (await world.see(job)).due_at is not None

    await world.call_back(engine, job, cost=40)

    job = await world.see(job)
    assert (job.cost, job.due_at) == (40, None)


async def test_a_late_cost_reported_during_a_query_is_not_queried_again(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
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
    await engine.cancel(job.id, "the person")
    await idle(engine)
    if answer:
        world.provider.faults.add("status", answer, answer)
    await work(engine)
    assert (await world.see(job)).due_at is not None

    world.clock.turn((job.deadline_at - world.clock.now()).total_seconds())
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
    await canceller.cancel(job.id, "the person")
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
        await engine.cancel(job.id, "the person")
    assert await world.spent() == PRICE


async def test_an_exhausted_rate_limit_does_not_expire_a_job_at_its_deadline(world: World) -> None:
    """A job expires only after a status query: the provider may have finished and billed its task."""
    engine = world.engine(EngineRules(limits={"status:fake": RateLimit(interval=10_000.0)}))
    await engine.ctx.limits.acquire("status:fake")
    job = await world.running(engine, deadline_seconds=60)
    world.clock.turn(61)
    [taken] = await world.store.claim_jobs(1, engine.ctx.lease)

    engine.worker.start(taken)
    await idle(engine)
    job = await world.see(job)
    assert job.state is State.RUNNING
    assert job.due_at is not None
    assert job.due_at > world.clock.now()

    world.clock.turn(engine.ctx.rules.last_answer_seconds)
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
