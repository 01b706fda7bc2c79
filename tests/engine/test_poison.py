"""Poison jobs: a job that crashes every process is found among all that were processed, and left to the operator."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.delivery import Part, Step
from genlock.domain.errors import ActionNotAllowed, ChannelOutcomeUnknown
from genlock.domain.events import Event
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State, Verdict
from genlock.domain.money import HoldState
from genlock.domain.poison import ISOLATED_FROM, SLOTS, free_slots
from genlock.domain.result import PartKind
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports import EndJob, FinishDelivery, Placed
from tests.engine.fake_channel import FakeChannel
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.world import PRICE, World, die, idle, tasks_of, work

POISON = "https://files.example/poison.png"
CRASHES_MAX = EngineRules().crashes_max
#: the longest wait before a job whose worker crashed is claimed again, in seconds
WAIT_MAX = 32.0


class CrashingChannel(FakeChannel):
    """Crashes the instance that shows the poison, with every other job it processes."""

    def __init__(self) -> None:
        super().__init__()
        self.dead = asyncio.Event()

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        if part.value == POISON:
            self.gate.shut()
            self.dead.set()
        return await super().put(job, index, part)

    async def revive(self) -> None:
        self.gate.open()
        self.dead.clear()


async def start_fresh(world: World) -> Engine:
    """Start a new instance a few seconds later, as a supervisor does; it takes over."""
    engine = world.engine()
    world.clock.advance(EngineRules().silent_seconds + 1)
    await engine.worker.heartbeat()
    return engine


async def work_until_crash(world: World, engine: Engine, channel: CrashingChannel) -> bool:
    """Process jobs until none is due or the instance crashes. Returns whether it survived."""
    while True:
        for job in await world.store.claim_jobs(engine.worker.free_capacity, engine.ctx.lease):
            engine.worker.start(job)
        await engine.worker.claim_poison_jobs()
        if not tasks_of(engine.worker):
            return True
        crash = asyncio.create_task(channel.dead.wait())
        while not crash.done() and (tasks := tasks_of(engine.worker)):
            await asyncio.wait({*tasks, crash}, return_when=asyncio.FIRST_COMPLETED)
        crash.cancel()
        if channel.dead.is_set():
            await die(engine)
            await channel.revive()
            return False


@pytest.mark.slow
async def test_one_poison_job_among_hundreds_is_found_and_no_other_is_given_up(world: World) -> None:
    """The worst case: the poison job is started first each time, so that no other job ends in the same process."""
    channel = CrashingChannel()
    world.channel = channel
    first = world.engine()
    poison = await world.ended(first, POISON)
    others = [await world.ended(first) for _ in range(150)]
    crash_count = 0
    engine = await start_fresh(world)
    while not await work_until_crash(world, engine, channel):
        crash_count += 1
        assert crash_count <= CRASHES_MAX
        engine = await start_fresh(world)
    for _ in range(CRASHES_MAX):  # the back-off between its last attempts
        world.clock.advance(70)
        crash_count += not await work_until_crash(world, engine, channel)
        engine = await start_fresh(world)

    assert crash_count == CRASHES_MAX
    [listed] = await world.store.jobs_needing_attention(10)
    assert (listed.id, listed.delivery, listed.hold_state) == (poison.id, Delivery.UNDELIVERABLE, HoldState.RELEASED)
    assert listed.attention_reason == f"the worker crashed {CRASHES_MAX} times while processing it"
    assert {(await world.see(job)).delivery for job in others} == {Delivery.DELIVERED}
    assert await world.spent() == PRICE * len(others)
    assert await world.store.violations(settled=True) == []
    suspected = {seen.facts["job"] for seen in world.recorder.of(Event.POISON_SUSPECTED)}
    assert poison.id in suspected
    assert len(suspected) <= 1 + SLOTS[1]


async def after_crashes(world: World, job: Job, times: int) -> Job:
    """Let `times` instances in a row crash while processing the job; it is due afterwards."""
    for _ in range(times):
        [held] = [
            claimed
            for claimed in (
                *await world.store.claim_jobs(10, world.engine().ctx.lease),
                *await world.store.claim_poison_jobs(SLOTS, world.engine().ctx.lease),
            )
            if claimed.id == job.id
        ]
        assert held.lease_owner is not None
        assert await world.store.release_leases(held.lease_owner, crashed=True) == 1
        world.clock.advance(100)
    return await world.see(job)


async def test_jobs_of_a_crashed_instance_are_claimed_when_it_is_found_dead_and_when_a_slot_is_free(
    world: World, engine: Engine
) -> None:
    """The claim of jobs whose worker crashed is rare, so it does not wait for its period then."""
    crashed, found = world.engine(), engine.worker.crashes_found
    await world.ended(crashed)
    await world.store.claim_jobs(1, crashed.ctx.lease)
    world.channel.gate.shut()

    assert not found.is_set()
    await engine.worker.take_over([crashed.ctx.instance])
    assert found.is_set()

    found.clear()
    await engine.worker.claim_poison_jobs()
    assert found.is_set(), "more may be due than were claimed"
    found.clear()
    await engine.worker.claim_poison_jobs()
    assert not found.is_set(), "no more are due"
    world.channel.gate.open()
    await idle(engine)
    assert found.is_set(), "its slot is free"


async def test_a_job_that_finally_succeeds_is_not_given_up(world: World, engine: Engine) -> None:
    job = await after_crashes(world, await world.ended(engine), CRASHES_MAX - 1)

    await work(engine)

    job = await world.see(job)
    assert (job.delivery, job.crash_count) == (Delivery.DELIVERED, 0)


async def test_a_clean_stop_during_work_counts_no_crash(world: World) -> None:
    engine = world.engine(EngineRules(stop_seconds=0.01))
    await engine.start()
    world.channel.gate.shut()
    job = await world.ended(engine)
    await world.channel.gate.holds()

    await engine.stop()

    job = await world.see(job)
    assert (job.delivery, job.lease_owner, job.crash_count) == (Delivery.SENDING, None, 0)
    assert await world.store.heartbeat("the next", 0.0) == []


async def test_an_instance_without_a_jobs_provider_does_not_reset_its_crash_count(world: World) -> None:
    job = await after_crashes(world, await world.ended(world.engine()), CRASHES_MAX)
    other = world.engine()
    other.ctx = other.worker._ctx = replace(other.ctx, providers={})

    await work(other)

    job = await world.see(job)
    assert (job.lease_owner, job.crash_count) == (None, CRASHES_MAX)


async def test_a_send_that_may_have_been_made_ends_as_unknown_for_a_poison_job(world: World, engine: Engine) -> None:
    job = await world.ended(engine)
    [held] = await world.store.claim_jobs(1, engine.ctx.lease)
    sending = (Part(kind=held.parts[0].kind, value=URL, gone=True, step=Step.SEND),)
    assert await world.store.save_parts(job.id, held.lease_token, sending, engine.ctx.lease)
    await world.store.release_leases(engine.ctx.instance)
    job = await after_crashes(world, job, CRASHES_MAX)

    await work(engine)

    assert (await world.see(job)).delivery is Delivery.UNKNOWN
    assert [call.operation for call in world.channel.calls] == ["notify"]


async def test_a_poison_job_of_which_a_part_was_shown_is_paid_for(world: World, engine: Engine) -> None:
    job = await world.ended(engine, URL, f"{URL}2")
    [held] = await world.store.claim_jobs(1, engine.ctx.lease)
    parts = (replace(held.parts[0], step=Step.DONE, message=job.placeholder), held.parts[1])
    assert await world.store.save_parts(job.id, held.lease_token, parts, engine.ctx.lease)
    await world.store.release_leases(engine.ctx.instance)
    job = await after_crashes(world, job, CRASHES_MAX)

    await work(engine)

    row = await world.see(job)
    assert (row.delivery, row.hold_state) == (Delivery.DELIVERED, HoldState.CAPTURED)
    assert row.attention_code is AttentionCode.POISON


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
async def test_an_open_poison_job_waits_for_the_operator_with_its_hold(
    world: World, engine: Engine, state: State
) -> None:
    if state is State.QUEUED:
        job = (await world.store.accept_job(world.order(), None)).job
    else:
        job = await world.running(engine)
        world.clock.advance(30)
    before = len(world.provider.created), len(world.provider.asked)
    job = await after_crashes(world, job, CRASHES_MAX)

    await work(engine)

    [listed] = await world.store.jobs_needing_attention(10)
    assert (listed.id, listed.state, listed.hold_state, listed.due_at) == (job.id, state, HoldState.HELD, None)
    assert (len(world.provider.created), len(world.provider.asked)) == before, "no instance processes it any more"
    assert len(world.recorder.of(Event.ATTENTION, job=job.id)) == 1
    await engine.cancel(job.id, "operator")
    await idle(engine)
    assert await world.spent() == 0


async def test_an_operator_may_retry_a_poison_job(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.clock.advance(30)
    await after_crashes(world, job, CRASHES_MAX)
    await work(engine)
    world.provider.reports["task-1"] = success("task-1")

    assert await world.store.retry_job(job.id)
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert await world.store.jobs_needing_attention(10) == []


async def test_the_late_cost_of_a_cancelled_poison_job_is_no_longer_queried(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "user")
    await idle(engine)
    job = await after_crashes(world, job, CRASHES_MAX)

    await work(engine)

    job = await world.see(job)
    assert (job.delivery, job.due_at, job.attention_reason) == (Delivery.DELIVERED, None, None)
    assert world.provider.asked == []


async def test_a_notice_is_sent_however_many_instances_crashed(world: World, engine: Engine) -> None:
    """It is journaled before it is sent, so it cannot crash two instances."""
    job = await world.ended(engine)
    [held] = await world.store.claim_jobs(1, engine.ctx.lease)
    shown = (replace(held.parts[0], step=Step.DONE, message="m1"),)
    finish = FinishDelivery(job_id=job.id, token=held.lease_token, delivery=Delivery.DELIVERED, parts=shown)
    assert await world.store.finish_delivery(finish, engine.ctx.lease)
    await world.store.release_leases(engine.ctx.instance)
    job = await after_crashes(world, job, CRASHES_MAX)

    await work(engine)

    assert ((await world.see(job)).notice, world.channel.notices) == (Notice.SENT, [job.id])


async def test_an_unknown_submit_is_settled_by_its_policy_however_many_instances_crashed(
    world: World, engine: Engine
) -> None:
    world.provider.create_gate.shut()
    job = await engine.order(world.order())
    await world.provider.create_gate.holds()
    await die(engine)
    await world.store.release_leases(engine.ctx.instance, crashed=True)
    job = await after_crashes(world, job, CRASHES_MAX)
    other = world.engine()

    for _ in range(2):
        await work(other)
        world.clock.advance(EngineRules().grace_seconds + 1)
    await work(other)

    job = await world.see(job)
    assert (job.state, job.hold_state, job.attention_reason) == (State.EXPIRED, HoldState.RELEASED, None)
    assert len(world.provider.created) == 1


async def test_only_an_operator_may_resend_a_poison_job(world: World, engine: Engine) -> None:
    job = await after_crashes(world, await world.ended(engine), CRASHES_MAX)
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.UNDELIVERABLE

    with pytest.raises(ActionNotAllowed, match="only an operator"):
        await operate.resend_for_user(engine.ctx, job.id, "user 1")
    assert (await world.see(job)).due_at is None
    await operate.resend(engine.ctx, job.id, "operator")
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_callback_ends_a_poison_job_on_the_operators_list(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.clock.advance(30)
    await after_crashes(world, job, CRASHES_MAX)
    await work(engine)

    await engine.callback("fake", world.provider.token(job), callback_body(task="task-1", urls=[URL]))
    await idle(engine)

    job = await world.see(job)
    assert (job.delivery, job.attention_reason, job.hold_state) == (Delivery.DELIVERED, None, HoldState.CAPTURED)


def test_jobs_with_more_crashes_get_fewer_slots() -> None:
    assert free_slots([]) == list(SLOTS)
    assert free_slots([0, 0, 1, 1, 2]) == [SLOTS[0] - 2, SLOTS[1] - 1, 1]
    assert free_slots([ISOLATED_FROM + 4, 2])[-1] == 0
    assert free_slots([ISOLATED_FROM] * 3) == [*SLOTS[:-1], 0]
    assert sorted(SLOTS, reverse=True) == list(SLOTS)
    assert SLOTS[-1] == 1


@pytest.mark.parametrize("price", [PRICE, 0])
async def test_a_poison_result_is_not_put_again_after_a_late_progress_edit(world: World, price: int) -> None:
    channel = CrashingChannel()
    world.channel = channel
    channel.fractions = (0.1,)
    first = world.engine(expected=100.0)
    job = await world.running(first, price=price)
    channel.faults.add("progress", ChannelOutcomeUnknown())
    world.clock.advance(10.0)
    await work(first)
    assert (await world.see(job)).progress_message == job.placeholder
    ending = EndJob(job_id=job.id, state=State.SUCCEEDED, parts=(Part(kind=PartKind.FILE, value=POISON),))
    assert (await world.store.end_job(ending, None)).verdict is Verdict.WON

    crash_count = 0
    engine = await start_fresh(world)
    while not await work_until_crash(world, engine, channel):
        crash_count += 1
        engine = await start_fresh(world)
        world.clock.advance(WAIT_MAX)
    world.clock.advance(WAIT_MAX)
    assert await work_until_crash(world, engine, channel)

    assert crash_count == CRASHES_MAX
    row = await world.see(job)
    assert (row.delivery, row.attention_code, row.due_at) == (Delivery.UNDELIVERABLE, AttentionCode.POISON, None)
    assert channel.shown == []
