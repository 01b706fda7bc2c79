"""Disruptions during a chaos run: kill, pause and restart instances, restart the database, inject faults."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from time import time
from typing import Any

from genlock.sandbox.fleet import Fleet
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.faults import Fault as KieFault
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import ProgramFailed
from genlock.sandbox.telegram.faults import Fault as TelegramFault

#: A paused process must sleep longer than its lease, so chaos uses the shortest lease allowed.
LEASE_SECONDS = 5.0
PAUSE_SECONDS = LEASE_SECONDS + 3.0
PAUSE_EVERY_SECONDS = 12.0
RESTART_EVERY_SECONDS = 30.0
KIE_PROBABILITIES = {
    KieFault.CREATE_429: 0.02,
    KieFault.CREATE_CUT: 0.02,
    KieFault.CREATE_GARBLED: 0.01,
    KieFault.CREATE_502: 0.01,
    KieFault.STATUS_502: 0.05,
    KieFault.STATUS_CUT: 0.05,
    KieFault.STATUS_WORD: 0.02,
    KieFault.TASK_FAIL: 0.02,
    KieFault.CALLBACK_LOST: 0.05,
    KieFault.CALLBACK_TWICE: 0.05,
    KieFault.CALLBACK_EARLY: 0.05,
    KieFault.CALLBACK_LATE: 0.02,
    KieFault.CALLBACK_CONTRADICTING: 0.01,
    KieFault.CALLBACK_FORGED: 0.02,
    KieFault.CALLBACK_UNPARSABLE: 0.01,
}
TELEGRAM_PROBABILITIES = {
    TelegramFault.DROP_BEFORE: 0.02,
    TelegramFault.DROP_AFTER: 0.02,
    TelegramFault.SERVER_ERROR: 0.01,
    TelegramFault.SERVER_ERROR_AFTER: 0.01,
    TelegramFault.BAD_GATEWAY: 0.01,
    TelegramFault.BAD_GATEWAY_AFTER: 0.01,
    TelegramFault.UNDECODABLE: 0.01,
    TelegramFault.TOO_MANY: 0.005,
}
TOO_MANY_SECONDS = 2.0
SUPERVISE_SECONDS = 1.0
#: how long the only ready instance is left alone, and how often a starting instance is picked instead of a ready one
LIFE_SECONDS = 1.0
START_SHARE = 0.25
STARTS_MAX = 10


@dataclass(frozen=True, kw_only=True)
class Disruption:
    """One event in the life of an instance."""

    #: "kill", "pause", or "end" (the process ended by itself)
    what: str
    instance: str
    at: float


@dataclass(kw_only=True)
class Disruptor:
    fleet: Fleet
    database: PostgresServer | None
    rng: Random
    kill_every: float | None
    pause: bool
    restart_db: bool
    #: called when a background task of the disruptor failed
    failed: Callable[[BaseException], None]
    disruptions: list[Disruption] = field(default_factory=list)
    restarts: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _restart: asyncio.Task[None] | None = None

    def set_faults(self) -> None:
        for fault, probability in KIE_PROBABILITIES.items():
            self.fleet.kie.faults.set_probability(fault, probability)
        for failure, probability in TELEGRAM_PROBABILITIES.items():
            self.fleet.telegram.faults.switch(failure, probability=probability, seconds=TOO_MANY_SECONDS)

    def begin(self) -> None:
        self._spawn(self._supervise())
        if self.kill_every:
            self._spawn(self._kill_some(self.kill_every))
        if self.pause:
            self._spawn(self._pause_some())
        if self.restart_db and self.database:
            self._spawn(self._restart_database(self.database))

    async def end(self) -> None:
        """Stop disrupting, clear all faults and bring every instance up again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._restart:
            await self._restart
        self.fleet.kie.faults.clear()
        self.fleet.telegram.faults.clear()
        await asyncio.gather(*(_bring_up(instance) for instance in self.fleet.instances))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._watch)

    def _watch(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed(error)

    async def _supervise(self) -> None:
        """Restart instances that ended, as every hosting platform does."""
        while True:
            for instance in self.fleet.instances:
                if not instance.running:
                    self._note("end", instance)
                    instance.start()
            await asyncio.sleep(SUPERVISE_SECONDS)

    async def _pick_instance(self) -> Instance:
        """Pick mostly a ready instance, sometimes a starting one; wait while none is ready."""
        while not (
            working := [
                instance for instance in self._running_instances() if self.fleet.balancer.is_ready(instance.port)
            ]
        ):
            await self.fleet.balancer.wait_until_ready()
            await asyncio.sleep(LIFE_SECONDS)
        starting = [instance for instance in self._running_instances() if instance not in working]
        return self.rng.choice(starting if starting and self.rng.random() < START_SHARE else working)

    def _running_instances(self) -> list[Instance]:
        return [instance for instance in self.fleet.instances if instance.running and not instance.paused]

    def _note(self, what: str, instance: Instance) -> None:
        self.disruptions.append(Disruption(what=what, instance=instance.name, at=time()))

    async def _kill_some(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            victim = await self._pick_instance()
            self._note("kill", victim)
            victim.kill()
            victim.start()

    async def _pause_some(self) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 1.0) * PAUSE_EVERY_SECONDS)
            victim = await self._pick_instance()
            self._note("pause", victim)
            victim.pause()
            await asyncio.sleep(PAUSE_SECONDS)
            victim.resume()

    async def _restart_database(self, database: PostgresServer) -> None:
        """Restart repeatedly, alternating a clean shutdown and a crash."""
        while True:
            await asyncio.sleep(self.rng.uniform(0.3, 1.0) * RESTART_EVERY_SECONDS)
            self._restart = asyncio.get_running_loop().create_task(self._restart_once(database))
            await asyncio.shield(self._restart)  # a cancelled wait must not leave the database down

    async def _restart_once(self, database: PostgresServer) -> None:
        await asyncio.to_thread(database.stop if self.restarts % 2 else database.crash)
        await asyncio.to_thread(database.start)
        self.restarts += 1


async def _bring_up(instance: Instance) -> None:
    """Make it run; retry, because the database may still be starting."""
    if instance.paused:
        instance.resume()
    for left in reversed(range(STARTS_MAX)):
        if not instance.running:
            instance.start()
        try:
            await instance.wait_until_ready()
        except ProgramFailed:
            if not left:
                raise
            await asyncio.sleep(SUPERVISE_SECONDS)
        else:
            return
