"""Deliveries that take long."""

import math

from genlock.domain.job import Job
from genlock.engine.engine import Engine
from tests.engine.world import World


def age_running_jobs(engine: Engine) -> None:
    """Make everything the instance works on look as if it had begun long ago."""
    for running in engine.worker._jobs.values():
        running.since = -math.inf


async def deliver_slowly(world: World, engine: Engine) -> Job:
    """A delivery in mid-air. An instance that was started may have claimed it by itself."""
    world.channel.gate.shut()
    job = await world.ended(engine)
    for taken in await world.store.claim_jobs(1, engine.ctx.lease):
        engine.worker.start(taken)
    await world.channel.gate.holds()
    return await world.see(job)
