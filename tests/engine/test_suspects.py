"""Poison: a job that every process dies of is found among all that were in hand, and left to the operator."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.delivery import Part, Step
from genlock.domain.errors import ActionNotAllowed
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, Notice, State
from genlock.domain.money import HoldState
from genlock.domain.poison import ISOLATED_FROM, SLOTS, free_slots
from genlock.engine import operate
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports import FinishDelivery, Placed
from tests.engine.world import PRICE, URL, Chat, World, callback_body, die, idle, success, tasks_of, work

POISON = "https://files.example/poison.png"
DEATHS_MAX = EngineRules().crashes_max


class DeadlyChat(Chat):
    """Whoever shows the poison is dead at once, with all else that is in hand."""

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


async def rise(world: World) -> Engine:
    """A fresh process, as the supervisor starts it: it takes over and claims; seconds pass until it does."""
    engine = world.engine()
    world.clock.turn(EngineRules().silent_seconds + 1)
    await engine.worker.heartbeat()
    return engine


async def live(world: World, engine: Engine, chat: DeadlyChat) -> bool:
    """Work until nothing is due, or until this process is dead. Returns whether it lives."""
    while True:
        for job in await world.store.claim(engine.worker.free_capacity, engine.ctx.lease):
            engine.worker.start(job)
        await engine.worker.claim_poison_jobs()
        if not tasks_of(engine.worker):
            return True
        while tasks_of(engine.worker) and not chat.dead.is_set():
            await asyncio.wait(tasks_of(engine.worker), timeout=0.05)
        if chat.dead.is_set():
            await die(engine)
            await chat.revive()
            return False


async def test_one_poison_among_hundreds_is_found_and_nobody_else_is_given_up(world: World) -> None:
    """The worst case: it is begun before all others each time, so that nobody ends anything in a life it shares."""
    chat = DeadlyChat()
    world.chat = chat
    first = world.engine()
    poison = await world.ended(first, POISON)
    others = [await world.ended(first) for _ in range(150)]
    crash_count = 0
    engine = await rise(world)
    while not await live(world, engine, chat):
        crash_count += 1
        assert crash_count <= DEATHS_MAX
        engine = await rise(world)
    for _ in range(DEATHS_MAX):  # the pauses between its last tries
        world.clock.turn(70)
        crash_count += not await live(world, engine, chat)
        engine = await rise(world)

    assert crash_count == DEATHS_MAX
    [listed] = await world.store.jobs_needing_attention(10)
    assert (listed.id, listed.delivery, listed.hold_state) == (poison.id, Delivery.UNDELIVERABLE, HoldState.RELEASED)
    assert listed.attention_reason == f"its work ended the process {DEATHS_MAX} times"
    assert {(await world.see(job)).delivery for job in others} == {Delivery.DELIVERED}
    assert await world.spent() == PRICE * len(others)
    assert await world.store.violations(settled=True) == []
    suspected = {seen.facts["job"] for seen in world.recorder.of(Event.POISON_SUSPECTED)}
    assert poison.id in suspected
    assert len(suspected) <= 1 + SLOTS[1]


async def dead_with(world: World, job: Job, times: int) -> Job:
    """So many instances in a row died with the job in hand; it is due."""
    for _ in range(times):
        [held] = [
            one
            for one in (
                *await world.store.claim(10, world.engine().ctx.lease),
                *await world.store.claim_poison_jobs(SLOTS, world.engine().ctx.lease),
            )
            if one.id == job.id
        ]
        assert held.lease_owner is not None
        assert await world.store.release_leases(held.lease_owner, died=True) == 1
        world.clock.turn(100)
    return await world.see(job)


async def test_a_job_that_survives_in_the_end_is_not_given_up(world: World, engine: Engine) -> None:
    job = await dead_with(world, await world.ended(engine), DEATHS_MAX - 1)

    await work(engine)

    job = await world.see(job)
    assert (job.delivery, job.crash_count) == (Delivery.DELIVERED, 0)


async def test_a_clean_stop_with_work_in_hand_counts_for_nothing(world: World) -> None:
    engine = world.engine(EngineRules(stop_seconds=0.01))
    await engine.start()
    world.chat.gate.shut()
    job = await world.ended(engine)
    await world.chat.gate.holds()

    await engine.stop()

    job = await world.see(job)
    assert (job.delivery, job.lease_owner, job.crash_count) == (Delivery.SENDING, None, 0)
    assert await world.store.heartbeat("the next", 0.0) == []


async def test_whoever_does_not_know_a_jobs_provider_does_not_clear_it_of_suspicion(world: World) -> None:
    job = await dead_with(world, await world.ended(world.engine()), DEATHS_MAX)
    stranger = world.engine()
    stranger.ctx = stranger.worker._ctx = replace(stranger.ctx, providers={})

    await work(stranger)

    job = await world.see(job)
    assert (job.lease_owner, job.crash_count) == (None, DEATHS_MAX)


async def test_a_send_that_may_have_been_made_is_unknown_though_the_process_died_of_it(
    world: World, engine: Engine
) -> None:
    job = await world.ended(engine)
    [held] = await world.store.claim(1, engine.ctx.lease)
    sending = (Part(kind=held.parts[0].kind, value=URL, gone=True, step=Step.SEND),)
    assert await world.store.save_parts(job.id, held.lease_token, sending, engine.ctx.lease)
    await world.store.release_leases(engine.ctx.instance)
    job = await dead_with(world, job, DEATHS_MAX)

    await work(engine)

    assert (await world.see(job)).delivery is Delivery.UNKNOWN
    assert world.chat.calls == []


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
async def test_an_open_job_that_processes_die_of_waits_for_the_operator_with_its_money(
    world: World, engine: Engine, state: State
) -> None:
    if state is State.QUEUED:
        job = (await world.store.accept(world.order(), None)).job
    else:
        job = await world.running(engine)
        world.clock.turn(30)
    before = len(world.mill.created), len(world.mill.asked)
    job = await dead_with(world, job, DEATHS_MAX)

    await work(engine)

    [listed] = await world.store.jobs_needing_attention(10)
    assert (listed.id, listed.state, listed.hold_state, listed.due_at) == (job.id, state, HoldState.HELD, None)
    assert (len(world.mill.created), len(world.mill.asked)) == before, "nobody works on it any more"
    assert len(world.recorder.of(Event.ATTENTION, job=job.id)) == 1
    await engine.cancel(job.id, "operator")
    await idle(engine)
    assert await world.spent() == 0


async def test_an_operator_may_try_again_what_was_given_up(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.clock.turn(30)
    await dead_with(world, job, DEATHS_MAX)
    await work(engine)
    world.mill.reports["task-1"] = success("task-1")

    assert await world.store.retry(job.id)
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED
    assert await world.store.jobs_needing_attention(10) == []


async def test_the_bill_of_a_cancelled_job_that_processes_die_of_is_not_asked_for_any_more(
    world: World, engine: Engine
) -> None:
    job = await world.running(engine)
    await engine.cancel(job.id, "person")
    await idle(engine)
    job = await dead_with(world, job, DEATHS_MAX)

    await work(engine)

    job = await world.see(job)
    assert (job.delivery, job.due_at, job.attention_reason) == (Delivery.DELIVERED, None, None)
    assert world.mill.asked == []


async def test_a_notice_goes_out_however_often_processes_died(world: World, engine: Engine) -> None:
    """It is written down before it is sent, so nobody dies of it twice."""
    job = await world.ended(engine)
    [held] = await world.store.claim(1, engine.ctx.lease)
    shown = (replace(held.parts[0], step=Step.DONE, message="m1"),)
    finish = FinishDelivery(job_id=job.id, token=held.lease_token, delivery=Delivery.DELIVERED, parts=shown)
    assert await world.store.finish_delivery(finish, engine.ctx.lease)
    await world.store.release_leases(engine.ctx.instance)
    job = await dead_with(world, job, DEATHS_MAX)

    await work(engine)

    assert ((await world.see(job)).notice, world.chat.notices) == (Notice.SENT, [job.id])


async def test_an_unknown_submit_is_settled_by_its_own_rule_however_often_processes_died(
    world: World, engine: Engine
) -> None:
    world.mill.create_gate.shut()
    job = await engine.order(world.order())
    await world.mill.create_gate.holds()
    await die(engine)
    await world.store.release_leases(engine.ctx.instance, died=True)
    job = await dead_with(world, job, DEATHS_MAX)
    other = world.engine()

    for _ in range(2):
        await work(other)
        world.clock.turn(EngineRules().grace_seconds + 1)
    await work(other)

    job = await world.see(job)
    assert (job.state, job.hold_state, job.attention_reason) == (State.EXPIRED, HoldState.RELEASED, None)
    assert len(world.mill.created) == 1


async def test_only_an_operator_may_show_again_what_processes_die_of(world: World, engine: Engine) -> None:
    job = await dead_with(world, await world.ended(engine), DEATHS_MAX)
    await work(engine)
    assert (await world.see(job)).delivery is Delivery.UNDELIVERABLE

    with pytest.raises(ActionNotAllowed, match="only an operator"):
        await operate.show_again(engine.ctx, job.id, "person 1")
    assert (await world.see(job)).due_at is None
    await operate.resend(engine.ctx, job.id, "operator")
    await work(engine)

    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_callback_ends_a_job_that_was_given_up(world: World, engine: Engine) -> None:
    job = await world.running(engine)
    world.clock.turn(30)
    await dead_with(world, job, DEATHS_MAX)
    await work(engine)

    await engine.callback("mill", world.mill.token(job), callback_body(task="task-1", urls=[URL]))
    await idle(engine)

    job = await world.see(job)
    assert (job.delivery, job.attention_reason, job.hold_state) == (Delivery.DELIVERED, None, HoldState.CAPTURED)


def test_the_more_deaths_the_less_room() -> None:
    assert free_slots([]) == list(SLOTS)
    assert free_slots([0, 0, 1, 1, 2]) == [SLOTS[0] - 2, SLOTS[1] - 1, 1]
    assert free_slots([ISOLATED_FROM + 4, 2])[-1] == 0
    assert free_slots([ISOLATED_FROM] * 3) == [*SLOTS[:-1], 0]
    assert sorted(SLOTS, reverse=True) == list(SLOTS)
    assert SLOTS[-1] == 1
