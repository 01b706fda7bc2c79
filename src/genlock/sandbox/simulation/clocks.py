"""Clocks that are set forward and back by minutes while the instances work: the database's, and those of instances."""

import asyncio

from genlock.sandbox.simulation.addition import Addition
from genlock.sandbox.simulation.fleet import Fleet
from genlock.sandbox.simulation.virtual_time import VirtualLoop
from genlock.sandbox.simulation.world import World

#: how wrong a clock is at most, in either direction. A receiver of webhooks accepts five minutes
WRONG_SECONDS_MAX = 90.0


class Clocks(Addition):
    def __init__(self, world: World, fleet: Fleet) -> None:
        self._world = world
        self._fleet = fleet
        self._rng = world.stream("clocks")

    async def work(self) -> None:
        while True:
            await asyncio.sleep(self._rng.uniform(1.0, 15.0))
            if self._world.faults_over:
                return
            wrong = self._rng.uniform(-WRONG_SECONDS_MAX, WRONG_SECONDS_MAX)
            instance = self._fleet.random_instance()
            if self._rng.random() < 0.3 and instance is not None:
                instance.lifecycle.clock_offset = wrong
                self._world.note(instance.lifecycle.name, "CLOCK_SET", by=wrong)
            else:
                assert isinstance(self._world.loop, VirtualLoop)
                self._world.loop.clock_offset = wrong
                self._world.clock_set_at = self._world.loop.time()
                self._world.note("database", "CLOCK_SET", by=wrong)
