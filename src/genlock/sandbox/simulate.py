"""temp"""

import asyncio
from collections.abc import Callable
from genlock.sandbox.scenario import Run, Scenario
from genlock.sandbox.virtual_time import VirtualClock, VirtualLoop
from genlock.sandbox.world import World, Recorder
from genlock.stores.sqlite import SqliteStore
from genlock.stores.store import SqlStore


def run_seed(seed: int, tamper: Callable[[SqlStore], None] | None = None) -> Run:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_run(seed, tamper))


async def _run(seed, tamper):
    world = World(seed)
    store = await SqliteStore.open(":memory:", clock=VirtualClock(world.loop), observer=Recorder(world, "store"))
    if tamper:
        tamper(store)
    scenario = Scenario(world, store)
    violations = await scenario.run()
    world.over = True
    return Run(
        seed=seed, violations=violations, history=world.history, faults=world.faults, virtual_seconds=world.loop.time()
    )
