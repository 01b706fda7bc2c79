"""A turn at the provider is used in time or given up, and never waited for without end."""

from genlock.domain.job import State
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.engine.limits import PERMITS_MISSED_MAX
from genlock.ports.provider import RateLimit
from tests.engine.faults import FaultProxy, Gate
from tests.engine.world import World, idle, work
from tests.loop_clock import LoopClock

LATE_SECONDS = 30.0
RULES = EngineRules(limits={"create:fake": RateLimit(interval=0.01, late=LATE_SECONDS)})


def slow_to_commit(world: World) -> tuple[Engine, Gate]:
    proxy = FaultProxy(world.store)
    gate = proxy.gate("begin_submit")
    return world.engine(RULES, store=proxy), gate


async def hold_up(engine: Engine, gate: Gate, loop_clock: LoopClock) -> None:
    await gate.holds()
    loop_clock.advance(LATE_SECONDS + 1)
    gate.open()
    await idle(engine)
    gate.shut()


async def test_an_order_that_missed_its_permit_during_the_commit_waits_for_another(
    world: World, loop_clock: LoopClock
) -> None:
    engine, gate = slow_to_commit(world)
    gate.shut()
    job = await engine.order(world.order())
    await hold_up(engine, gate, loop_clock)
    assert (await world.see(job)).state is State.QUEUED
    assert world.provider.created == []

    gate.open()
    world.clock.advance(1)
    await work(engine)
    assert (await world.see(job)).state is State.RUNNING
    assert len(world.provider.created) == 1


async def test_an_order_is_submitted_even_if_every_permit_is_missed(world: World, loop_clock: LoopClock) -> None:
    engine, gate = slow_to_commit(world)
    gate.shut()
    job = await engine.order(world.order())
    for _ in range(PERMITS_MISSED_MAX):
        await hold_up(engine, gate, loop_clock)
        assert world.provider.created == []
        world.clock.advance(1)
        await world.claim_one(engine)
    await hold_up(engine, gate, loop_clock)
    assert (await world.see(job)).state is State.RUNNING
    assert len(world.provider.created) == 1
