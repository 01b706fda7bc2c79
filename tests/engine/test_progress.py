"""Progress: shown by the lease holder at a few points, and never in the way of the result."""

import asyncio

import pytest

from genlock.domain.errors import ChannelBusy
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from tests.engine.world import URL, FaultProxy, World, idle, work

EXPECTED = 100.0
#: quick enough to wait for
QUICK = EngineRules(progress_seconds=0.05)


@pytest.fixture
def engine(world: World) -> Engine:
    world.channel.fractions = (0.1, 0.5, 0.9)
    return world.engine(expected=EXPECTED)


async def due_in(world: World, job_id: int) -> float:
    row = await world.see(job_id)
    assert row.due_at is not None
    return (row.due_at - world.clock.now()).total_seconds()


def said(world: World) -> list[str]:
    return [call.operation for call in world.channel.calls]


async def test_a_job_is_due_at_its_progress_points_whatever_the_poll_interval(world: World, engine: Engine) -> None:
    for _ in range(3):
        engine.ctx.poll_interval("fake").record_result(
            by_callback=True
        )  # callbacks have proven to come: polls are far apart
    job = await world.running(engine)
    shown = []
    while (world.clock.now() - job.created_at).total_seconds() < EXPECTED:
        world.clock.turn(await due_in(world, job.id))
        await work(engine)
        if (text := world.channel.messages[job.placeholder or ""]) not in shown:
            shown.append(text)
    assert shown == ["progress 0.10", "progress 0.50", "progress 0.90"]
    assert said(world) == ["progress"] * 3


async def test_no_progress_is_shown_without_an_expected_duration(world: World) -> None:
    world.channel.fractions = (0.1,)
    engine = world.engine()
    job = await world.running(engine)
    for _ in range(10):
        world.clock.turn(await due_in(world, job.id))
        await work(engine)
    assert said(world) == []


async def test_a_missed_progress_point_is_dropped(world: World, engine: Engine) -> None:
    await world.running(engine)
    world.clock.turn(20)
    await work(engine)
    assert said(world) == []


async def test_a_short_job_shows_little_progress(world: World) -> None:
    world.channel.fractions = (0.1, 0.3, 0.5, 0.7, 0.9)
    engine = world.engine(expected=8.0)
    job = await world.running(engine)
    while (world.clock.now() - job.created_at).total_seconds() < 10:
        world.clock.turn(await due_in(world, job.id))
        await work(engine)
    assert said(world) == ["progress"] * 2


@pytest.mark.parametrize("error", [ChannelBusy(5), RuntimeError("bug")], ids=repr)
async def test_a_failing_progress_edit_delays_nothing(world: World, engine: Engine, error: Exception) -> None:
    job = await world.running(engine)
    world.channel.faults.add("progress", error)
    world.clock.turn(10)
    await work(engine)
    row = await world.see(job)
    assert (row.state, row.lease_owner, row.attempts) == (State.RUNNING, None, 0)


async def test_an_instance_without_the_lease_shows_no_progress(world: World, engine: Engine) -> None:
    """It queried the provider, was paused, and another instance claimed the job meanwhile."""
    job = await world.running(engine)
    world.clock.turn(10)
    world.provider.status_gate.shut()
    await world.claim_one(engine)
    await world.provider.status_gate.holds()
    world.clock.turn(60)
    await world.store.claim_jobs(1, world.engine().ctx.lease)
    world.provider.status_gate.open()
    await idle(engine)
    assert said(world) == []
    assert len(world.recorder.of(Event.LEASE_LOST, job=job.id)) == 1


async def test_a_result_during_a_progress_edit_is_put_at_once_and_again_afterwards(
    world: World,
) -> None:
    """The progress edit arrives after the result, where nothing would stop it; the second put repairs that."""
    world.channel.fractions = (0.1,)
    slow, quick = (world.engine(QUICK, expected=EXPECTED) for _ in range(2))
    job = await world.running(slow, notice=False)
    world.clock.turn(10)
    world.channel.progress_gate.shut()
    await world.claim_one(slow)
    await world.channel.progress_gate.holds()

    callback = asyncio.create_task(world.call_back(quick, job))
    await world.channel.gate.reached(1)
    world.channel.progress_gate.open()
    await callback
    await idle(slow)

    assert said(world) == ["progress", "put", "put"]
    assert world.channel.messages[job.placeholder or ""] == f"address {URL}"
    assert (await world.see(job)).delivery is Delivery.DELIVERED


async def test_a_result_that_interrupts_no_worker_is_put_once(world: World, engine: Engine) -> None:
    job = await world.running(engine, notice=False)
    world.clock.turn(10)
    await work(engine)
    await world.call_back(engine, job)
    assert said(world) == ["progress", "put"]


async def test_the_poll_that_finds_the_result_interrupts_no_worker(world: World, engine: Engine) -> None:
    from tests.engine.world import success  # noqa: PLC0415

    job = await world.running(engine, notice=False)
    assert job.task_id
    world.provider.reports[job.task_id] = success(job.task_id)
    world.clock.turn(10)
    await work(engine)
    assert said(world) == ["put"]


async def test_the_instance_that_takes_over_an_interrupted_delivery_puts_the_first_part_again(world: World) -> None:
    """The deliverer died between its two puts: the journal says that the first part is still to be put."""
    world.channel.fractions = (0.1,)
    slow = world.engine(EngineRules(progress_seconds=5.0), expected=EXPECTED)
    proxy = FaultProxy(world.store)
    job = await world.running(slow, notice=False)
    world.clock.turn(10)
    [taken] = await world.store.claim_jobs(1, slow.ctx.lease)
    dying = world.engine(EngineRules(progress_seconds=5.0), store=proxy, expected=EXPECTED)
    urls = [URL, f"{URL}2"]
    callback = asyncio.create_task(world.call_back(dying, job, urls=urls))
    await world.channel.gate.reached(3)
    await asyncio.sleep(0)
    row = await world.see(job)
    assert taken.lease_token + 1 == row.lease_token
    assert [part.step for part in row.parts] == ["put", "put"]
    assert row.parts[0].message == job.placeholder
    callback.cancel()
