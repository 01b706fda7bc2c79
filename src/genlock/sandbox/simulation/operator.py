"""The operator of a simulation, who looks around, tops up a wallet, and interferes with jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from genlock.domain.errors import GenlockError, StoreError
from genlock.domain.inbox import InboxState
from genlock.domain.money import EntryKind
from genlock.engine import operate
from genlock.ports import Store, Violation
from genlock.sandbox.simulation.crashes import CutOff
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.people import People
from genlock.sandbox.simulation.world import World


class Operator:
    def __init__(self, world: World, fleet: Fleet, people: People, *, rng: Random) -> None:
        self._world = world
        self._truth = world.truth
        self._fleet = fleet
        self._people = people
        self._rng = rng

    async def work(self) -> None:
        """Looks around, and sometimes does something."""
        looks: list[Callable[[Store], Awaitable[Any]]] = [
            lambda store: store.counts(),
            lambda store: store.jobs_needing_attention(10),
            lambda store: store.jobs(limit=10),
            lambda store: store.callbacks(InboxState.ORPHAN, 10),
            lambda store: store.wallet(self._people.numbers[1]),
            lambda store: store.ledger_entries(self._people.numbers[1], 10),
            lambda store: store.violations(settled=False),
            lambda store: store.ensure_account("chat", "bot", "u1"),
        ]
        for turn in range(24):
            await asyncio.sleep(self._rng.uniform(0.2, 2.5))
            if self._rng.random() < 0.05:
                await self._top_up()
            instance = self._fleet.someone()
            if instance is None:
                continue
            try:
                if self._people.jobs and self._rng.random() < 0.5:
                    await instance.life.serve(self._interfere(instance))
                else:
                    await instance.life.serve(self._look(instance, looks[(self._world.seed + turn) % len(looks)]))
            except (CutOff, GenlockError):
                continue

    async def _look(self, instance: Instance, look: Callable[[Store], Awaitable[Any]]) -> None:
        found = await look(instance.store)
        if found and isinstance(found, list) and isinstance(found[0], Violation):
            self._truth.broken += found

    async def _top_up(self) -> None:
        """Pay once; ask again until it is certain."""
        person = self._people.numbers[1]
        self._truth.granted[person] += 500
        key = f"topup:{self._truth.granted[person]}"
        while True:
            try:
                await self._fleet.ask(lambda instance: instance.store.transfer(person, EntryKind.TOPUP, 500, key))
            except (CutOff, StoreError):
                await asyncio.sleep(1.0)
            else:
                return

    async def _interfere(self, instance: Instance) -> None:
        ctx = instance.engine.ctx
        job_id = self._rng.choice(self._people.jobs[-5:])
        roll = self._rng.random()
        if roll < 0.6:
            await operate.resend(ctx, job_id, "operator")
        elif roll < 0.65:
            await operate.cancel(ctx, job_id, "operator")
            self._truth.cancelled.add(job_id)
        else:
            await operate.retry(ctx, job_id, "operator")
