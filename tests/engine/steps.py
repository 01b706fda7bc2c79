"""Steps that tests of the engine repeat: poll a task, look at a pause, let an instance die at a gate."""

from genlock.domain.job import Job
from genlock.engine.engine import Engine
from tests.engine.faults import Gate
from tests.engine.world import World, die, work

URLS = [f"https://files.example/{number}.png" for number in range(4)]
POLL = 10.0


async def poll(world: World, engine: Engine) -> list[Job]:
    world.clock.advance(POLL)
    return await work(engine)


async def pause(world: World, job: Job) -> float:
    """Return the seconds until the job is due."""
    row = await world.see(job)
    assert row.due_at is not None
    return (row.due_at - world.clock.now()).total_seconds()


async def die_at(gate: Gate, world: World, dying: Engine) -> None:
    """Let an instance take the job, reach the gate, and die there."""
    gate.shut()
    await world.claim_one(dying)
    await gate.holds()
    await die(dying)
