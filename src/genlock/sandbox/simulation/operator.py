"""The operator of a simulation: reads, tops up a wallet, and retries, resends and cancels jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

from genlock.domain.errors import GenlockError, StoreError
from genlock.domain.inbox import InboxState
from genlock.domain.money import EntryKind
from genlock.engine import operate
from genlock.ports import Store, Violation
from genlock.sandbox.simulation.fleet import Fleet, Instance
from genlock.sandbox.simulation.instances import NoAnswer
from genlock.sandbox.simulation.users import Users
from genlock.sandbox.simulation.world import World


class Operator:
    def __init__(self, world: World, fleet: Fleet, users: Users, *, rng: Random) -> None:
        self._world = world
        self._truth = world.truth
        self._fleet = fleet
        self._users = users
        self._rng = rng

    async def work(self) -> None:
        """Read something, or act on a job, again and again."""
        reads: list[Callable[[Store], Awaitable[Any]]] = [
            lambda store: store.counts(),
            lambda store: store.jobs_needing_attention(10),
            lambda store: store.jobs(limit=10),
            lambda store: store.callbacks(InboxState.ORPHAN, 10),
            lambda store: store.wallet(self._users.account_ids[1]),
            lambda store: store.ledger_entries(self._users.account_ids[1], 10),
            lambda store: store.violations(settled=False),
            lambda store: store.ensure_account("chat", "bot", "u1"),
        ]
        for turn in range(24):
            await asyncio.sleep(self._rng.uniform(0.2, 2.5))
            if self._rng.random() < 0.05:
                await self._top_up()
            instance = self._fleet.random_instance()
            if instance is None:
                continue
            try:
                if self._users.jobs and self._rng.random() < 0.5:
                    await instance.lifecycle.serve(self._act(instance))
                else:
                    await instance.lifecycle.serve(self._read(instance, reads[(self._world.seed + turn) % len(reads)]))
            except (NoAnswer, GenlockError):
                continue

    async def resend_after_progress(self) -> None:
        """Resend jobs that have ended while a progress edit of theirs may still take effect, each once."""
        rng, resent = self._world.stream("resends"), set[int]()
        while not self._world.faults_over:
            await asyncio.sleep(rng.uniform(0.2, 1.0))
            for job_id in sorted(set(self._truth.late_progress) - resent):
                instance = self._fleet.random_instance()
                if instance is None:
                    break
                try:
                    await instance.lifecycle.serve(operate.resend(instance.engine.ctx, job_id, "operator"))
                except (NoAnswer, GenlockError):
                    continue
                resent.add(job_id)

    async def _read(self, instance: Instance, read: Callable[[Store], Awaitable[Any]]) -> None:
        found = await read(instance.store)
        if found and isinstance(found, list) and isinstance(found[0], Violation):
            self._truth.violations += found

    async def _top_up(self) -> None:
        """Top up once; repeat the request until it is answered."""
        account = self._users.account_ids[1]
        self._truth.granted[account] += 500
        key = f"topup:{self._truth.granted[account]}"
        while True:
            try:
                await self._fleet.ask(lambda instance: instance.store.transfer(account, EntryKind.TOPUP, 500, key))
            except (NoAnswer, StoreError):
                await asyncio.sleep(1.0)
            else:
                return

    async def _act(self, instance: Instance) -> None:
        ctx = instance.engine.ctx
        job_id = self._rng.choice(self._users.jobs[-5:])
        roll = self._rng.random()
        if roll < 0.6:
            await operate.resend(ctx, job_id, "operator")
        elif roll < 0.65:
            await operate.cancel(ctx, job_id, "operator")
            self._truth.cancelled.add(job_id)
        else:
            await operate.retry(ctx, job_id, "operator", resubmit=True)
