"""Bulk actions: what is done to many jobs is done once to each, wherever an instance crashes."""

import asyncio
import json
from dataclasses import replace
from itertools import count
from typing import Any, cast

import pytest

from genlock.domain.bulk import BulkAction, BulkFailure, BulkKind, BulkReason, BulkSelection, BulkState
from genlock.domain.delivery import plan
from genlock.domain.errors import ChannelBusy, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State, hash_secret
from genlock.domain.job_search import CountKind, JobCount, JobFilter
from genlock.domain.money import HoldState
from genlock.domain.operator import OperatorRole
from genlock.engine import bulk, operate
from genlock.engine.bulk import BulkWork
from genlock.engine.engine import Engine
from genlock.ports import EndJob, FinishDelivery, Reschedule
from tests.engine.crash_points import CrashPoint, new_world
from tests.engine.fake_provider import success
from tests.engine.faults import FaultProxy
from tests.engine.world import PRICE, World, work

NUMBERS = count(1)
ALL = JobFilter()


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.engine.bulk.STEP_JOBS", 2)


async def running_job(world: World) -> Job:
    number = next(NUMBERS)
    order = world.order(request_key=f"bulk-{number}", placeholder=world.channel.new_message())
    lease = world.engine().ctx.lease
    job = (await world.store.accept_job(order, lease)).job
    assert await world.store.begin_submit(job.id, job.lease_token, hash_secret("x"), None)
    assert await world.store.mark_submitted(job.id, job.lease_token, f"bulk-task-{number}", 100.0)
    return await world.see(job)


async def delivered_job(world: World) -> Job:
    job = await running_job(world)
    assert job.task_id
    parts = plan(success(job.task_id, f"https://files.example/{job.id}.png").pieces)
    ending = EndJob(job_id=job.id, state=State.SUCCEEDED, parts=parts, task_id=job.task_id)
    lease = world.engine().ctx.lease
    ended = (await world.store.end_job(ending, lease)).job
    assert ended
    finish = FinishDelivery(job_id=job.id, token=ended.lease_token, delivery=Delivery.DELIVERED, parts=parts)
    assert await world.store.finish_delivery(finish, lease)
    assert await world.store.begin_notice(job.id, ended.lease_token)
    return await world.see(job)


def bulk_work(engine: Engine, store: object | None = None) -> BulkWork:
    return BulkWork(engine.ctx, engine.leader, cast("Any", store or engine.ctx.store), pause_seconds=0.0)


async def begin(
    world: World, kind: BulkKind, filters: JobFilter | None = None, job_ids: tuple[int, ...] = ()
) -> BulkAction:
    selection = BulkSelection(job_ids=job_ids) if job_ids else BulkSelection(filters=filters or mine(world))
    expected = JobCount(number=3, kind=CountKind.EXACT)
    return await world.store.begin_bulk_action(
        kind, selection, author="telegram:1", request_key=f"request-{next(NUMBERS)}", expected=expected
    )


def mine(world: World) -> JobFilter:
    return JobFilter(account_id=world.account)


async def see(world: World, action: BulkAction) -> BulkAction:
    found = await world.store.bulk_action(action.id)
    assert found is not None
    return found


async def run(world: World, action: BulkAction) -> BulkAction:
    """Let one instance work until nothing is left."""
    engine = world.engine()
    await engine.leader.elect()
    await bulk_work(engine, world.store).round()
    await engine.leader.resign()
    return await see(world, action)


async def failures(world: World, action: BulkAction) -> dict[int, BulkReason]:
    return {failure.job_id: failure.reason for failure in await world.store.bulk_failures(action.id, 100)}


# what is done


async def test_all_that_match_are_resent_free_of_charge(world: World, engine: Engine) -> None:
    jobs = [await delivered_job(world) for _ in range(3)]
    waiting = await running_job(world)
    before = await world.wallet()

    action = await run(world, await begin(world, BulkKind.RESEND))

    assert (action.state, action.done, action.failed) == (BulkState.DONE, 3, 1)
    assert await failures(world, action) == {waiting.id: BulkReason.NO_RESULT}
    await work(engine)
    for job in jobs:
        assert (await world.see(job)).delivery is Delivery.DELIVERED
        assert len(world.channel.showing(job.parts[0].value)) == 1
    assert await world.wallet() == before
    [line] = await world.store.audit(10)
    assert (line.actor, line.action, line.subject) == ("telegram:1", "bulk_resend_done", f"bulk {action.id}")
    assert json.loads(line.detail) == {"jobs": 4, "done": 3, "left_out": 1}


async def test_paid_jobs_are_refunded_once_and_their_users_told(world: World) -> None:
    await world.store.set_account_address(world.account, "42")
    first, second, other = [await delivered_job(world) for _ in range(3)]
    await operate.refund(world.engine().ctx, second.id, "ann")
    waiting = await running_job(world)

    action = await run(world, await begin(world, BulkKind.REFUND))

    assert (action.done, action.failed) == (2, 2)
    assert await failures(world, action) == {second.id: BulkReason.REFUNDED, waiting.id: BulkReason.NOT_PAID}
    assert sorted(text.split(":")[0] for _, text in world.channel.told) == [
        f"↩️ <b>Order #{job.id} refunded" for job in (first, other)
    ]
    again = await run(world, await begin(world, BulkKind.REFUND))
    assert (again.done, again.failed) == (0, 4)
    wallet = await world.wallet()
    assert (wallet.held, wallet.available + wallet.held) == (PRICE, 1_000_000)


async def test_a_retry_of_many_jobs_submits_none_that_the_provider_may_have_accepted(world: World) -> None:
    order = world.order(request_key=f"bulk-{next(NUMBERS)}")
    job = (await world.store.accept_job(order, world.engine().ctx.lease)).job
    assert await world.store.begin_submit(job.id, job.lease_token, hash_secret("x"), None)
    parked = Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="submit_unknown")
    assert await world.store.reschedule(parked)

    action = await run(world, await begin(world, BulkKind.RETRY))

    assert (action.done, await failures(world, action)) == (0, {job.id: BulkReason.PARKED})
    assert (await world.see(job)).state is State.SUBMITTING


async def test_open_jobs_are_cancelled_and_retried(world: World, engine: Engine) -> None:
    ended, open_ = await delivered_job(world), await running_job(world)

    retried = await run(world, await begin(world, BulkKind.RETRY))
    assert (retried.done, await failures(world, retried)) == (1, {ended.id: BulkReason.ENDED})
    assert (await world.see(open_)).due_at == world.clock.now()

    cancelled = await run(world, await begin(world, BulkKind.CANCEL))
    assert (cancelled.done, await failures(world, cancelled)) == (1, {ended.id: BulkReason.ENDED})
    job = await world.see(open_)
    assert (job.state, job.hold_state) == (State.CANCELLED, HoldState.RELEASED)
    await work(engine)
    assert len(world.channel.showing("cancelled")) == 1  # the user is informed


async def test_jobs_that_were_named_and_do_not_exist_are_listed(world: World) -> None:
    jobs = [await running_job(world) for _ in range(3)]
    other = await running_job(world)
    missing = other.id + 1000
    action = await run(
        world, await begin(world, BulkKind.CANCEL, job_ids=(*(job.id for job in jobs), jobs[0].id, missing))
    )

    assert (action.done, await failures(world, action)) == (3, {missing: BulkReason.MISSING})
    assert (await world.see(other)).state is State.RUNNING


async def test_jobs_that_are_ordered_later_are_left_alone(world: World) -> None:
    await running_job(world)
    action = await begin(world, BulkKind.CANCEL)
    later = await running_job(world)

    assert (await run(world, action)).done == 1
    assert (await world.see(later)).state is State.RUNNING


async def test_a_job_that_is_being_processed_is_not_retried(world: World) -> None:
    job = await running_job(world)
    world.clock.advance(200)
    await world.store.claim_jobs(10, world.engine().ctx.lease)

    action = await run(world, await begin(world, BulkKind.RETRY))

    assert await failures(world, action) == {job.id: BulkReason.LEASED}


# stopping, turns and errors


async def test_a_stopped_bulk_action_begins_no_further_step(world: World, engine: Engine) -> None:
    jobs = [await running_job(world) for _ in range(4)]
    action = await begin(world, BulkKind.CANCEL)
    await bulk_work(engine, world.store).advance(action)
    assert await world.store.stop_bulk_action(action.id)

    stopped = await run(world, action)

    assert (stopped.state, stopped.done) == (BulkState.STOPPED, 2)
    assert [(await world.see(job)).state for job in jobs] == [State.RUNNING] * 2 + [State.CANCELLED] * 2
    [line] = await world.store.audit(10)
    assert line.action == "bulk_cancel_stopped"


async def test_a_step_that_had_begun_before_the_stop_is_finished(world: World, engine: Engine) -> None:
    jobs = [await running_job(world) for _ in range(4)]
    action = await begin(world, BulkKind.CANCEL)
    targets, _ = await bulk_work(engine, world.store)._divide(BulkKind.CANCEL, jobs[2:])
    assert await world.store.begin_bulk_step(action, targets, jobs[2].id, [])
    assert await world.store.stop_bulk_action(action.id)

    stopped = await run(world, action)

    assert (stopped.state, stopped.done) == (BulkState.STOPPED, 2)


async def test_a_short_bulk_action_does_not_wait_for_a_long_one(world: World, engine: Engine) -> None:
    jobs = [await running_job(world) for _ in range(7)]
    long, short = await begin(world, BulkKind.RETRY), await begin(world, BulkKind.CANCEL, job_ids=(jobs[0].id,))
    working = bulk_work(engine, world.store)
    for action in await world.store.open_bulk_actions(bulk.AT_ONCE):
        await working.advance(action)

    assert (await see(world, long)).ended_at is None
    assert (await see(world, short)).state is BulkState.DONE


async def test_one_broken_job_does_not_stop_the_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [await running_job(world) for _ in range(3)]
    cancel = operate.cancel

    async def broken(ctx: Any, job_id: int, by: str) -> Job:
        if job_id == jobs[1].id:
            raise RuntimeError("secret boom")
        return await cancel(ctx, job_id, by)

    monkeypatch.setattr(operate, "cancel", broken)

    action = await run(world, await begin(world, BulkKind.CANCEL))

    assert (action.done, action.failed) == (2, 1)
    assert await world.store.bulk_failures(action.id, 10) == [
        BulkFailure(job_id=jobs[1].id, reason=BulkReason.ERROR, detail="RuntimeError: secret boom")
    ]
    assert len(world.recorder.of(Event.STAGE_ERROR, step="bulk", job=jobs[1].id)) == 1


async def test_a_user_who_is_not_reached_is_refunded_all_the_same(world: World) -> None:
    await world.store.set_account_address(world.account, "42")
    await delivered_job(world)
    world.channel.faults.add("tell", ChannelBusy(after=60.0))

    assert (await run(world, await begin(world, BulkKind.REFUND))).done == 1
    assert await world.spent() == 0


async def test_a_database_that_does_not_answer_interrupts_the_step(world: World) -> None:
    for _ in range(2):
        await running_job(world)
    proxy = FaultProxy(world.store)
    engine = world.engine(store=proxy)
    await engine.leader.elect()
    action = await begin(world, BulkKind.CANCEL)
    proxy.faults.add("end_job", None, StoreUnavailable("gone"), done=True)

    with pytest.raises(StoreUnavailable):
        await bulk_work(engine, proxy).round()

    assert len((await see(world, action)).step) == 2
    await engine.leader.resign()
    finished = await run(world, action)
    assert (finished.done, finished.failed) == (2, 0)


# crashes


async def crash_during(world: World, kind: BulkKind, crash: CrashPoint) -> BulkAction:
    """Let an instance work on a new bulk action until it ends or the instance crashes."""
    make = delivered_job if kind in (BulkKind.RESEND, BulkKind.REFUND) else running_job
    for _ in range(2):
        await make(world)
    await world.store.set_account_address(world.account, "42")
    action = await begin(world, kind)
    store, channel = FaultProxy(world.store), FaultProxy(world.channel)
    # Crashing after a call is crashing before the next one.
    store.tap = channel.tap = lambda when, operation: crash(when, operation) if when == "before" else None
    engine = world.engine(store=store, channel=channel)
    try:
        while open_ := await world.store.open_bulk_actions(10):
            await bulk_work(engine, store).advance(open_[0])
    except asyncio.CancelledError:
        assert crash.dead
    return action


async def check_each_job_once(world: World, kind: BulkKind, action: BulkAction) -> None:
    assert (action.state, action.done, action.failed) == (BulkState.DONE, 2, 0)
    jobs = await world.store.jobs(account_id=world.account)
    match kind:
        case BulkKind.RESEND:
            await work(world.engine())  # the first delivery was written by hand, and is not in the channel
            assert [len(world.channel.showing(job.parts[0].value)) for job in jobs] == [1, 1]
        case BulkKind.REFUND:
            assert await world.spent() == 0
            told = [text for _, text in world.channel.told]
            assert len(told) == len(set(told)) <= 2
        case BulkKind.CANCEL:
            assert {job.state for job in jobs} == {State.CANCELLED}
            assert await world.spent() == 0
        case BulkKind.RETRY:
            assert {job.due_at for job in jobs} == {world.clock.now()}
    lines = [line for line in await world.store.audit(100) if line.subject == f"bulk {action.id}"]
    assert len(lines) == 1


@pytest.mark.parametrize("kind", list(BulkKind))
async def test_an_instance_may_crash_at_any_call_of_a_bulk_action(
    world: World, kind: BulkKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.engine.bulk.STEP_JOBS", 1)
    whole = CrashPoint()
    first = await new_world(world)
    await check_each_job_once(first, kind, await see(world, await crash_during(first, kind, whole)))
    assert len(whole.calls) >= 12

    for call in range(len(whole.calls)):
        after = await new_world(world)
        crash = CrashPoint(call)
        action = await crash_during(after, kind, crash)
        assert crash.dead, whole.calls[call]
        if kind is BulkKind.RESEND:
            await work(after.engine())  # what was resent before the crash has arrived when the step is repeated
        await check_each_job_once(after, kind, await run(after, action))


async def test_a_bulk_action_stops_when_its_author_has_lost_the_role(world: World, engine: Engine) -> None:
    roles = [OperatorRole.OWNER]

    async def role_of(_: str) -> OperatorRole:
        return roles[0]

    jobs = [await delivered_job(world) for _ in range(bulk.STEP_JOBS + 1)]
    action = await begin(world, BulkKind.REFUND, job_ids=tuple(sorted((job.id for job in jobs), reverse=True)))
    work = replace(bulk_work(engine, world.store), role_of=role_of)
    await work.advance(await see(world, action))
    roles[:] = [OperatorRole.VIEWER]
    await work.advance(await see(world, action))

    ended = await see(world, action)
    assert (ended.state, ended.done) == (BulkState.STOPPED, bulk.STEP_JOBS)
    assert await world.store.open_bulk_actions(10) == []
    assert (await world.store.audit(1))[0].action == "bulk_refund_stopped"


async def test_refunds_in_bulk_count_under_the_limit_of_support(world: World, engine: Engine) -> None:
    async def role_of(_: str) -> OperatorRole:
        return OperatorRole.SUPPORT

    jobs = [await delivered_job(world) for _ in range(3)]
    action = await begin(world, BulkKind.REFUND, job_ids=tuple(sorted((job.id for job in jobs), reverse=True)))
    work = replace(bulk_work(engine, world.store), role_of=role_of, support_credits_max=2 * jobs[0].price)
    while await world.store.open_bulk_actions(10):
        await work.advance(await see(world, action))

    assert (await see(world, action)).done == 2
    assert list((await failures(world, action)).values()) == [BulkReason.ALLOWANCE]
