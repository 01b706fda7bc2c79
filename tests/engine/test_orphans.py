"""Orphans: an unauthenticated callback causes a status query; one without a job is kept until its job is known."""

from datetime import UTC, timedelta

import pytest

from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, State
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.faults import FaultProxy
from tests.engine.world import World, die, idle, process_stored, work

FORGED = "https://evil.example/fox.png"


async def states(world: World) -> dict[InboxState, int]:
    return {state: found for state in InboxState if (found := len(await world.store.callbacks(state, 100)))}


@pytest.mark.parametrize("endpoint", ["open", "wrong secret", "secret of another job", "unknown job"])
async def test_an_unauthenticated_callback_causes_a_status_query_and_nothing_else(
    world: World, engine: Engine, endpoint: str
) -> None:
    job, other = await world.running(engine), await world.running(engine)
    secret = world.provider.token(other).partition(".")[2]
    token = {
        "open": None,
        "wrong secret": f"{job.id}.wrong",
        "secret of another job": f"{job.id}.{secret}",
        "unknown job": "999999.wrong",
    }[endpoint]

    callback = await engine.callback("fake", token, callback_body(task=job.task_id, urls=[FORGED], cost=1))
    await idle(engine)

    assert callback.job_id is None
    hinted = await world.see(job)
    assert (hinted.state, hinted.cost, hinted.parts) == (State.RUNNING, None, ())
    assert hinted.due_at == world.clock.now()
    assert await states(world) == {InboxState.MATCHED: 1}
    assert [row.id for row in await work(engine)] == [job.id]
    assert world.provider.asked == [job.task_id]
    assert (await world.see(job)).state is State.RUNNING
    assert (await world.see(other)).due_at == other.due_at
    assert world.channel.shown == []


async def test_an_untrusted_callback_delivers_what_the_status_query_answers(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.provider.reports["task-1"] = success("task-1")
    await engine.callback("fake", None, callback_body(task="task-1", urls=[FORGED]))
    await idle(engine)
    await work(engine)

    assert world.channel.showing(URL) == [job.placeholder]
    assert world.channel.showing(FORGED) == []


async def test_an_untrusted_callback_about_an_ended_job_changes_nothing(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await world.call_back(engine, job)
    done = await world.see(job)
    await engine.callback("fake", None, callback_body(task="task-1", state="failed"))
    await idle(engine)
    assert await world.see(job) == done
    assert await work(engine) == []


async def test_an_untrusted_callback_without_a_task_id_is_kept_as_unreadable(world: World, engine: Engine) -> None:
    await engine.callback("fake", None, callback_body())
    await idle(engine)
    assert await states(world) == {InboxState.UNREADABLE: 1}


async def test_an_orphan_is_matched_at_once_when_the_answer_of_the_create_call_names_its_task(
    world: World, engine: Engine
) -> None:
    world.provider.create_gate.shut()
    job = await engine.order(world.order())
    await world.provider.create_gate.holds()
    await engine.callback("fake", None, callback_body(task="task-1", urls=[FORGED]))
    await world.recorder.until(Event.ORPHAN_STORED)
    assert await states(world) == {InboxState.ORPHAN: 1}

    world.provider.reports["task-1"] = success("task-1")
    world.provider.create_gate.open()
    await idle(engine)

    assert await states(world) == {InboxState.MATCHED: 1}
    assert (await world.see(job)).due_at == world.clock.now()
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert world.channel.showing(URL) == [job.placeholder]


async def test_an_orphan_that_crossed_with_its_task_id_is_matched_by_the_sweep_of_any_instance(
    world: World, engine: Engine
) -> None:
    """It was looked up just before the task id was committed, and kept as an orphan just after."""
    job = await world.running(engine)
    callback = await world.store.store_callback("fake", None, "", callback_body(task="task-1", urls=[FORGED]))
    await world.store.settle_callback(callback.id, InboxState.ORPHAN, "task-1")
    world.provider.reports["task-1"] = success("task-1")
    passive = world.engine()

    await passive.sweeper.sweep()

    assert await states(world) == {InboxState.MATCHED: 1}
    assert (await world.store.callbacks(InboxState.MATCHED, 1))[0].job_id == job.id
    assert len(world.recorder.of(Event.ORPHAN_MATCHED, callback=callback.id, job=job.id)) == 1
    await work(passive)
    assert world.channel.showing(URL) == [job.placeholder]
    assert world.channel.showing(FORGED) == []


async def test_an_orphan_of_a_job_that_ended_meanwhile_is_matched_without_an_effect(
    world: World, engine: Engine
) -> None:
    world.provider.faults.add("create", TimeoutError())
    job = await engine.order(world.order())
    await idle(engine)
    await engine.callback("fake", None, callback_body(task="task-1", state="failed"))
    await idle(engine)
    await world.call_back(engine, job, task="task-1")
    done = await world.see(job)
    assert await states(world) == {InboxState.ORPHAN: 1, InboxState.DONE: 1}

    await engine.sweeper.sweep()

    assert await states(world) == {InboxState.MATCHED: 1, InboxState.DONE: 1}
    assert await world.see(job) == done


async def test_the_sweeper_runs_at_least_every_minute() -> None:
    assert EngineRules().sweep_seconds <= 60


async def test_an_orphan_without_a_job_is_expired_after_an_hour_and_kept(world: World, engine: Engine) -> None:
    body = callback_body(task="task-77", urls=[URL])
    callback = await engine.callback("fake", None, body)
    await idle(engine)
    await engine.leader.elect()

    world.clock.advance(EngineRules().orphan_expire_seconds)
    await engine.leader.elect()
    await engine.sweeper.expire_orphans()
    assert await states(world) == {InboxState.ORPHAN: 1}
    world.clock.advance(1)
    await engine.sweeper.expire_orphans()
    await engine.sweeper.expire_orphans()

    [kept] = await world.store.callbacks(InboxState.EXPIRED, 10)
    assert (kept.id, kept.body, kept.task_id) == (callback.id, body, "task-77")
    assert len(world.recorder.of(Event.ORPHAN_EXPIRED, callback=callback.id)) == 1


async def test_only_the_leader_expires_orphans(world: World, engine: Engine) -> None:
    passive = world.engine()
    await engine.leader.elect()
    await passive.leader.elect()
    await passive.callback("fake", None, callback_body(task="task-77"))
    await idle(passive)
    world.clock.advance(EngineRules().orphan_expire_seconds + 1)

    await passive.sweeper.expire_orphans()
    assert await states(world) == {InboxState.ORPHAN: 1}
    await engine.sweeper.expire_orphans()
    assert await states(world) == {InboxState.EXPIRED: 1}


# callbacks that no instance processed


async def test_a_callback_whose_instance_crashed_is_processed_by_another(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    proxy = FaultProxy(world.store)
    dying = world.engine(store=proxy)
    proxy.gate("end_job").shut()
    await process_stored(dying, world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await proxy.gate("end_job").holds()
    await die(dying)

    await engine.sweeper.sweep()
    assert (await world.see(job)).state is State.RUNNING, "it is still the other one's turn"
    world.clock.advance(4)
    await engine.sweeper.sweep()
    await idle(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert await states(world) == {InboxState.DONE: 1}


async def test_a_callback_without_free_capacity_waits_in_the_inbox(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    full = world.engine(EngineRules(capacity=0))
    await full.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await idle(full)
    assert await states(world) == {InboxState.NEW: 1}

    world.clock.advance(4)
    await engine.sweeper.sweep()
    await idle(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_callback_whose_processing_met_a_database_failure_is_processed_again(world: World) -> None:
    proxy = FaultProxy(world.store)
    engine = world.engine(store=proxy)
    job = await world.running(engine)
    proxy.faults.add("end_job", StoreUnavailable())
    await process_stored(engine, world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await idle(engine)
    assert (await world.see(job)).state is State.RUNNING

    world.clock.advance(4)
    await engine.sweeper.sweep()
    await idle(engine)
    assert (await world.see(job)).delivery is Delivery.DELIVERED


@pytest.mark.parametrize("done", [False, True])
async def test_a_callback_that_could_not_be_stored_is_accepted_when_it_is_repeated(
    world: World,
    done: bool,  # noqa: FBT001 - a case
) -> None:
    """What was not acknowledged is repeated, whether it had its effect or not."""
    proxy = FaultProxy(world.store)
    engine = world.engine(store=proxy)
    job = await world.running(engine)
    proxy.faults.add("end_job", StoreUnavailable(), done=done)
    with pytest.raises(StoreUnavailable):
        await world.call_back(engine, job)

    await world.call_back(engine, job)
    world.clock.advance(engine.ctx.rules.lease_seconds)
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert world.channel.showing(URL) == [job.placeholder]
    assert await states(world) == {InboxState.DONE: 2 if done else 1}


# C2


async def test_all_times_are_aware_and_utc(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    callback = await world.call_back(engine, job)
    job = await world.see(job)

    times = [job.created_at, job.submitted_at, job.ended_at, job.delivered_at, job.deadline_at, job.read_at]
    times += [callback.received_at, (await world.store.ledger_entries(world.account, 1))[0].at]
    for time in times:
        assert time is not None
        assert time.utcoffset() == timedelta(0)
        assert time.tzinfo is not None
        assert time.astimezone(UTC) == time
    assert job.delivered_at == world.clock.now()
