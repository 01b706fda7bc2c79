"""A4 to A8: callbacks and polls end in one door, the first terminal report wins, time runs out once."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.errors import ActionNotAllowed, ProviderBusy, SubmitUnknown
from genlock.domain.events import Event
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.result import Outcome, Piece, Report
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import RateLimit
from genlock.stores.callbacks import CALLBACK_HOLD_SECONDS
from tests.engine.world import PRICE, URL, Wire, World, callback_body, failure, idle, success, take_in, work

POLL = 10.0


async def poll(world: World, engine: Engine) -> list[Job]:
    world.clock.turn(POLL)
    return await work(engine)


# A4


async def test_a_callback_brings_the_result_into_the_chat_and_takes_the_money(world: World, engine: Engine) -> None:
    job = await world.running(engine)

    callback = await world.call_back(engine, job, cost=40)

    job = await world.see(job)
    assert (job.state, job.delivery, job.hold_state, job.cost) == (
        *(State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED),
        40,
    )
    assert world.chat.shown == [(job.placeholder, f"address {URL}")]
    assert world.chat.notices == [job.id]
    assert await world.spent() == PRICE
    [stored] = await world.store.callbacks(InboxState.DONE, 10)
    assert (stored.id, stored.job_id, stored.note) == (callback.id, job.id, "won")


async def test_a_callback_is_kept_in_the_commit_of_the_end_it_brings(world: World) -> None:
    wire = Wire(world.store)
    engine = world.engine(store=wire)
    job = await world.running(engine)

    await world.call_back(engine, job)
    repeated = await world.call_back(engine, job)

    assert wire.gate("store_callback").arrived == 0
    late, first = await world.store.callbacks(InboxState.DONE, 10)
    assert (first.job_id, first.task_id, first.note) == (job.id, "task-1", "won")
    assert late == repeated
    assert late.note == "duplicate"


async def test_a_poll_brings_the_result_into_the_chat_and_takes_the_money(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.mill.reports["task-1"] = success("task-1", cost=40)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.delivery, job.hold_state, job.cost) == (
        *(State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED),
        40,
    )
    assert world.chat.showing(URL) == [job.placeholder]
    assert await world.spent() == PRICE


async def test_a_failure_gives_the_money_back_and_tells_the_person(world: World, engine: Engine) -> None:
    by_callback = await world.running(engine)
    await world.call_back(engine, by_callback, state="failed", code="nsfw", urls=[])
    by_poll = await world.running(engine)
    world.mill.reports["task-2"] = failure("task-2", "broken")
    await poll(world, engine)

    for job, code in ((by_callback, "nsfw"), (by_poll, "broken")):
        ended = await world.see(job)
        assert (ended.state, ended.error_code, ended.hold_state) == (State.FAILED, code, HoldState.RELEASED)
        assert ended.delivery is Delivery.DELIVERED
        assert world.chat.showing(code) == [ended.placeholder]
    assert await world.spent() == 0


async def test_a_poll_after_the_callback_changes_nothing(world: World, engine: Engine) -> None:
    """The query was already on the wire when the callback came."""
    job = await world.running(engine)
    poller = world.engine()
    world.mill.reports["task-1"] = success("task-1", "https://files.example/other.png")
    world.mill.status_gate.shut()
    world.clock.turn(POLL)
    await world.take(poller)
    await world.mill.status_gate.holds()
    await world.call_back(engine, job)
    delivered = await world.see(job)

    world.mill.status_gate.open()
    await idle(poller)

    assert await world.see(job) == delivered
    assert len(world.chat.shown) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1
    assert len(world.recorder.of(Event.DELIVER_LOCK_SKIP, job=job.id)) == 1
    assert await world.spent() == PRICE


async def test_a_callback_after_the_poll_changes_nothing(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.mill.reports["task-1"] = success("task-1")
    await poll(world, engine)
    delivered = await world.see(job)

    await world.call_back(world.engine(), job)

    assert replace(await world.see(job), read_at=delivered.read_at) == delivered
    assert len(world.chat.shown) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1
    assert await world.spent() == PRICE


@pytest.mark.parametrize("state", ["success", "failed"])
async def test_callbacks_that_come_together_to_many_instances_have_one_effect(world: World, state: str) -> None:
    engines = [world.engine() for _ in range(3)]
    job = await world.running(engines[0])
    body = callback_body(task="task-1", state=state, urls=[URL])

    calls = [engine.callback("mill", world.mill.token(job), body) for engine in engines for _ in range(5)]
    await asyncio.gather(*calls)
    await idle(*engines)

    assert len(world.chat.shown) == 1
    assert world.chat.notices == [job.id]
    assert len(world.recorder.of(Event.JOB_ENDED)) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE)) == 14
    lines = [line.kind for line in await world.store.ledger_entries(world.person, 10) if line.job_id == job.id]
    assert sorted(lines) == sorted([EntryKind.HOLD, EntryKind.CAPTURE if state == "success" else EntryKind.RELEASE])


@pytest.mark.parametrize(("first", "second"), [("success", "failed"), ("failed", "success")])
async def test_a_report_that_says_the_opposite_raises_an_alarm_and_changes_nothing(
    world: World, engine: Engine, first: str, second: str
) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job, state=first)
    settled = await world.see(job)

    await world.call_back(engine, job, state=second)

    assert await world.see(job) == settled
    assert len(world.recorder.of(Event.RESULT_CONTRADICTION, job=job.id)) == 1
    assert len(world.chat.shown) == 1
    assert await world.spent() == (PRICE if first == "success" else 0)


async def test_a_result_recorded_before_the_first_poll_is_not_polled_for(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)
    world.clock.turn(1000)
    assert await work(engine) == []
    assert world.mill.asked == []


async def test_polls_go_on_while_the_task_runs_and_become_rarer(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=900)
    pauses = []
    while (now := world.clock.now()) < job.deadline_at:
        row = await world.see(job)
        assert row.due_at is not None
        pauses.append((row.due_at - now).total_seconds())
        world.clock.turn(pauses[-1])
        await work(engine)

    assert len(world.mill.asked) == len(pauses)
    assert max(pauses[:4]) < 7
    assert min(pauses[-4:-1]) > 20
    assert 25 < len(pauses) < 60


async def test_a_query_that_fails_is_asked_again_later_each_time(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.mill.faults.add("status", *(TimeoutError() for _ in range(6)))
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
    world.mill.reports["task-1"] = success("task-1")
    world.clock.turn(80)
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_busy_provider_is_asked_again_when_it_said(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.mill.faults.add("status", ProviderBusy(33))
    await poll(world, engine)

    row = await world.see(job)
    assert row.due_at is not None
    assert (row.due_at - world.clock.now()).total_seconds() == 33
    assert (row.state, row.attempts) == (State.RUNNING, 0)


# what is said at a job's address about another task


@pytest.mark.parametrize("endpoint", ["short", "long"])
@pytest.mark.parametrize("state", ["success", "failed"])
async def test_a_callback_at_a_jobs_address_about_another_jobs_task_ends_neither_and_is_told(
    world: World, engine: Engine, endpoint: str, state: str
) -> None:
    """The short way is one commit at the door; on the long way the callback is kept first and understood later."""
    mine, others = [await world.running(engine) for _ in range(2)]
    world.mill.reports |= {
        job.task_id: success(job.task_id, f"{URL}?{job.id}") for job in (mine, others) if job.task_id
    }
    body = callback_body(task=others.task_id, state=state, urls=[f"{URL}?{others.id}"], cost=9)
    if endpoint == "short":
        await engine.callback("mill", world.mill.token(mine), body)
    else:
        await take_in(engine, world.mill.token(mine), body)
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
        assert world.chat.showing(f"{URL}?{job.id}") == [job.placeholder], "each gets its own"


async def test_a_result_for_a_job_whose_task_is_not_known_is_believed_unless_the_task_is_anothers(
    world: World, engine: Engine
) -> None:
    others = await world.running(engine)
    world.mill.faults.add("create", SubmitUnknown())
    mine = await engine.order(world.order())
    await idle(engine)

    await world.call_back(engine, mine, task=others.task_id)
    assert (await world.see(mine)).state is State.SUBMITTING
    await world.call_back(engine, mine, task="task-2")

    row = await world.see(mine)
    assert (row.delivery, row.task_id) == (Delivery.DELIVERED, "task-2")
    assert (await world.see(others)).state is State.RUNNING


async def test_an_answer_about_another_task_than_the_one_asked_after_is_none(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.mill.reports["task-1"] = success("task-2")

    await poll(world, engine)
    row = await world.see(job)
    assert (row.state, row.attempts, row.lease_owner) == (State.RUNNING, 1, None)
    assert world.recorder.total("provider_errors", call="status", reason="ProviderError") == 1

    world.clock.turn(60 + EngineRules().last_answer_seconds)
    await work(engine)
    assert (await world.see(job)).state is State.EXPIRED, "it does not wait for ever"
    assert await world.spent() == 0


# A5


@pytest.mark.parametrize("way", ["callback", "poll"])
async def test_an_unknown_word_keeps_the_job_running_and_is_counted(world: World, engine: Engine, way: str) -> None:
    job = await world.running(engine)
    if way == "callback":
        await world.call_back(engine, job, state="Partying")
    else:
        world.mill.reports["task-1"] = Report(outcome=Outcome.UNKNOWN, task_id="task-1", word="Partying")
        await poll(world, engine)

    row = await world.see(job)
    assert (row.state, row.delivery, row.attention_reason) == (State.RUNNING, Delivery.NONE, None)
    assert row.due_at is not None
    assert world.recorder.total("unknown_states", word="Partying") == 1
    assert len(world.recorder.of(Event.UNKNOWN_STATE, word="Partying")) == 1
    await world.call_back(engine, job)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_an_unknown_word_does_not_loop_for_ever(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=300)
    world.mill.reports["task-1"] = Report(outcome=Outcome.UNKNOWN, task_id="task-1", word="partying")
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
        world.mill.reports["task-1"] = Report(outcome=Outcome.SUCCESS, task_id="task-1", pieces=pieces)
        await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.error_code, job.hold_state) == (State.FAILED, "empty_result", HoldState.RELEASED)
    assert world.chat.showing("empty_result") == [job.placeholder]
    assert await world.spent() == 0


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\x00", b"[]", b"{}", b"null", b'"text"'])
async def test_a_callback_that_cannot_be_read_is_kept_and_changes_nothing(
    world: World, engine: Engine, body: bytes
) -> None:
    job = await world.running(engine)
    await engine.callback("mill", world.mill.token(job), body)
    await idle(engine)

    assert await world.see(job) == job
    [kept] = await world.store.callbacks(InboxState.UNREADABLE, 10)
    assert (kept.body, kept.job_id) == (body, job.id)
    assert len(world.recorder.of(Event.CALLBACK_UNREADABLE, callback=kept.id)) == 1
    assert await world.store.claim_callbacks(10, 1) == []


async def test_a_callback_for_a_provider_we_do_not_have_is_left_to_others(world: World, engine: Engine) -> None:
    """In a deploy the new instances may know a provider that the old ones do not."""
    await engine.callback("other", None, b"{}")
    await idle(engine)
    assert len(await world.store.callbacks(InboxState.NEW, 10)) == 1


async def test_a_callback_for_a_provider_that_nobody_has_comes_to_the_operator_in_the_end(
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
async def test_a_callback_about_a_running_task_ends_the_doubt_about_its_submit(
    world: World, engine: Engine, word: str
) -> None:
    world.mill.faults.add("create", SubmitUnknown())
    job = await engine.order(world.order())
    await idle(engine)

    await world.call_back(engine, job, state=word, task="task-1", urls=[])

    job = await world.see(job)
    assert (job.state, job.task_id, job.due_at) == (State.RUNNING, "task-1", world.clock.now())
    world.mill.reports["task-1"] = success("task-1")
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert len(world.mill.created) == 1


async def test_a_callback_about_a_running_task_changes_nothing_where_the_task_is_known(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job, state="running", task="task-77", urls=[])
    assert await world.see(job) == job


async def test_a_callback_that_breaks_its_stage_is_set_aside_and_the_others_go_on(world: World, engine: Engine) -> None:
    """A text that no database takes cannot be recorded, however often one tries."""
    other = await world.running(engine)
    world.mill.faults.add("create", SubmitUnknown())
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


async def test_at_the_deadline_the_provider_is_asked_a_last_time(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.clock.turn(59)
    await work(engine)
    asked = len(world.mill.asked)
    world.mill.reports["task-1"] = success("task-1")

    world.clock.turn(1)
    await work(engine)

    assert len(world.mill.asked) == asked + 1
    assert (await world.see(job)).state is State.SUCCEEDED
    assert await world.spent() == PRICE


@pytest.mark.parametrize("answer", [None, TimeoutError(), ProviderBusy(30)], ids=["running", "time-out", "busy"])
async def test_past_the_deadline_the_job_fails_and_the_money_is_back(
    world: World, engine: Engine, answer: Exception | None
) -> None:
    job = await world.running(engine, deadline_seconds=60)
    if answer:
        world.mill.faults.add("status", answer)
    world.clock.turn(60)
    await work(engine)
    if answer:  # nobody could say that it is still running: one more answer is waited for, but not for ever
        assert (await world.see(job)).state is State.RUNNING
        world.mill.faults.add("status", answer)
        world.clock.turn(EngineRules().last_answer_seconds)
        await work(engine)

    job = await world.see(job)
    assert (job.state, job.error_code, job.hold_state) == (State.EXPIRED, "deadline", HoldState.RELEASED)
    assert (job.delivery, job.attention_reason) == (Delivery.DELIVERED, None)
    assert world.chat.showing("deadline") == [job.placeholder]
    assert await world.spent() == 0


async def test_no_wait_goes_beyond_the_deadline(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.mill.faults.add("status", ProviderBusy(1000))
    await poll(world, engine)
    assert (await world.see(job)).due_at == job.deadline_at


async def test_a_result_after_the_deadline_is_shown_for_free_on_a_message_of_its_own_and_logged(
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
    assert world.chat.shown == [(told, "text deadline"), (job.placeholder, f"address {URL}")]
    assert len(world.recorder.of(Event.RESULT_LATE, job=job.id)) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1
    assert await world.spent() == 0


async def test_a_failure_after_the_deadline_says_nothing_new(world: World, engine: Engine) -> None:
    job = await world.running(engine, deadline_seconds=60)
    world.clock.turn(60)
    await work(engine)
    await world.call_back(engine, job, state="failed")
    assert len(world.chat.shown) == 1
    assert len(world.recorder.of(Event.RESULT_DUPLICATE, job=job.id)) == 1


async def test_a_result_that_comes_while_the_person_is_told_of_the_deadline_waits_its_turn(world: World) -> None:
    """Words that are still on the wire must not land on top of the result."""
    engine, endpoint = world.engine(), world.engine()
    job = await world.running(engine, deadline_seconds=60)
    world.clock.turn(60)
    world.chat.gate.shut()
    await world.take(engine)
    await world.chat.gate.holds()

    await endpoint.callback("mill", world.mill.token(job), callback_body(task="task-1", urls=[URL]))
    await idle(endpoint)
    assert not (await world.see(job)).late
    world.chat.gate.open()
    await idle(engine)
    world.clock.turn(CALLBACK_HOLD_SECONDS)
    await endpoint.sweeper.sweep()
    await idle(endpoint)

    job = await world.see(job)
    assert (job.late, job.delivery) == (True, Delivery.DELIVERED)
    assert world.chat.showing(URL) == [job.placeholder]
    assert world.chat.notices == [job.id, job.id]
    assert await world.spent() == 0


# A8


async def check_cancelled(world: World, job: Job) -> None:
    job = await world.see(job)
    assert (job.state, job.hold_state, job.delivery) == (State.CANCELLED, HoldState.RELEASED, Delivery.DELIVERED)
    assert world.chat.showing("cancelled") == [job.placeholder]
    assert await world.spent() == 0


async def test_a_queued_job_can_be_cancelled_and_is_never_submitted(world: World, engine: Engine) -> None:
    job = await world.engine(EngineRules(capacity=0)).order(world.order())
    await engine.cancel(job.id, "the person")
    await idle(engine)
    world.clock.turn(1000)
    await work(engine)

    await check_cancelled(world, job)
    assert world.mill.created == []


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same instance", "other instance"])
async def test_a_job_can_be_cancelled_while_the_create_call_is_on_the_wire(
    world: World, engine: Engine, *, elsewhere: bool
) -> None:
    world.mill.create_gate.shut()
    job = await engine.order(world.order())
    await world.mill.create_gate.holds()

    canceller = world.engine() if elsewhere else engine
    await canceller.cancel(job.id, "the person")
    await world.recorder.until(Event.NOTICE_SENT)
    world.mill.create_gate.open()
    await idle(engine, canceller)
    await world.call_back(engine, job, task="task-1", cost=30)

    await check_cancelled(world, job)
    assert (await world.see(job)).cost == 30
    assert world.chat.showing(URL) == []


async def test_a_running_job_can_be_cancelled_and_its_bill_is_recorded_as_a_loss(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
    await idle(engine)

    await world.call_back(engine, job, cost=30)

    await check_cancelled(world, job)
    row = await world.see(job)
    assert (row.cost, row.hold_state) == (30, HoldState.RELEASED)
    assert len(world.recorder.of(Event.LOSS_RECORDED, job=job.id)) == 1
    assert world.chat.showing(URL) == []
    assert world.chat.notices == [job.id]


async def test_without_a_callback_the_bill_of_a_cancelled_job_is_asked_for(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
    await idle(engine)
    await poll(world, engine)
    assert (await world.see(job)).cost is None
    world.mill.reports["task-1"] = success("task-1", cost=40)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.cost, job.hold_state, job.due_at) == (State.CANCELLED, 40, HoldState.RELEASED, None)
    assert world.mill.asked == ["task-1", "task-1"]
    assert len(world.recorder.of(Event.LOSS_RECORDED, job=job.id)) == 1
    assert world.chat.showing(URL) == []
    await check_cancelled(world, job)


async def test_a_bill_that_a_callback_brought_is_not_asked_for(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
    await idle(engine)
    assert (await world.see(job)).due_at is not None

    await world.call_back(engine, job, cost=40)

    job = await world.see(job)
    assert (job.cost, job.due_at) == (40, None)


async def test_a_bill_that_came_while_somebody_asked_is_not_asked_for_again(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
    await idle(engine)
    world.mill.status_gate.shut()
    await world.take(engine)
    await world.mill.status_gate.holds()
    await engine.callback("mill", world.mill.token(job), callback_body(task="task-1", urls=[URL], cost=40))
    world.mill.status_gate.open()
    await idle(engine)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.cost, job.due_at) == (40, None)
    assert world.mill.asked == ["task-1"]


@pytest.mark.parametrize("answer", [ProviderBusy(1.0, "later"), RuntimeError("unforeseen"), None])
async def test_a_bill_is_asked_for_until_the_deadline(world: World, engine: Engine, answer: Exception | None) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "the person")
    await idle(engine)
    if answer:
        world.mill.faults.add("status", answer, answer)
    await work(engine)
    assert (await world.see(job)).due_at is not None

    world.clock.turn((job.deadline_at - world.clock.now()).total_seconds())
    await work(engine)

    assert (await world.see(job)).due_at is None
    assert len(world.mill.asked) == 2


@pytest.mark.parametrize("notice", [False, True])
async def test_the_task_of_a_job_cancelled_on_the_wire_has_a_bill_too(
    world: World,
    engine: Engine,
    notice: bool,  # noqa: FBT001 - a case
) -> None:
    world.mill.create_gate.shut()
    job = await engine.order(world.order(notice=notice))
    await world.mill.create_gate.holds()
    canceller = world.engine()
    await canceller.cancel(job.id, "the person")
    await idle(canceller)
    world.mill.create_gate.open()
    await idle(engine)
    world.mill.reports["task-1"] = replace(failure("task-1"), cost=7)

    await poll(world, engine)

    job = await world.see(job)
    assert (job.state, job.task_id, job.cost, job.due_at) == (State.CANCELLED, "task-1", 7, None)


async def test_a_result_that_is_being_shown_cannot_be_cancelled_away(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)
    with pytest.raises(ActionNotAllowed, match=f"job {job.id} has already ended \\(succeeded\\)"):
        await engine.cancel(job.id, "the person")
    assert await world.spent() == PRICE


async def test_a_full_limit_does_not_end_a_job_at_its_deadline(world: World) -> None:
    """Nobody gives up on a task without having asked: the provider may have finished and billed it."""
    engine = world.engine(EngineRules(limits={"status:mill": RateLimit(interval=10_000.0)}))
    await engine.ctx.limits.acquire("status:mill")
    job = await world.running(engine, deadline_seconds=60)
    world.clock.turn(61)
    [taken] = await world.store.claim(1, engine.ctx.lease)

    engine.worker.start(taken)
    await idle(engine)
    job = await world.see(job)
    assert job.state is State.RUNNING
    assert job.due_at is not None
    assert job.due_at > world.clock.now()

    world.clock.turn(engine.ctx.rules.last_answer_seconds)
    await work(engine)
    assert (await world.see(job)).state is State.EXPIRED


async def test_what_is_kept_of_a_callback_does_not_tell_its_secret(world: World) -> None:
    engine = world.engine()
    job = await world.running(engine)
    token = world.mill.token(job)
    body = b'{"taskId":"task-1","param":"http://host/callbacks/mill/' + token.encode() + b'"}'
    callback = await engine.callback("mill", token, body)
    await idle(engine)
    assert token.partition(".")[2].encode() not in callback.body
    assert callback.job_id == job.id
