"""Reports that say nothing usable: about another task, with an unknown word, without a result, unreadable."""

import pytest

from genlock.domain.errors import SubmitUnknown
from genlock.domain.events import Event
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, State
from genlock.domain.money import HoldState
from genlock.domain.result import Outcome, Piece, Report
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.steps import poll
from tests.engine.world import World, idle, process_stored, work

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

    world.clock.advance(60 + EngineRules().last_answer_seconds)
    await work(engine)
    assert (await world.see(job)).state is State.EXPIRED, "it does not wait forever"
    assert await world.spent() == 0


# unknown words


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
        world.clock.advance(6)
        await work(engine)

    assert (await world.see(job)).state is State.EXPIRED
    assert await world.spent() == 0


async def test_a_callback_that_says_running_changes_nothing(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job, state="generating")
    assert await world.see(job) == job
    [stored] = await world.store.callbacks(InboxState.DONE, 10)
    assert stored.note == "running"


# without a result, unreadable


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

    world.clock.advance(engine.ctx.rules.unknown_provider_expire_seconds + 1)
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
    world.clock.advance(60)
    await engine.sweeper.claim_callbacks()
    await idle(engine)

    assert len(world.recorder.of(Event.STAGE_ERROR)) == 1
    [kept] = await world.store.callbacks(InboxState.UNREADABLE, 10)
    assert kept.job_id == job.id
    assert kept.note
    assert (await world.see(other)).delivery is Delivery.DELIVERED
    assert (await world.see(job)).state is State.SUBMITTING
