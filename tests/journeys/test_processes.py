"""The promise with real processes on PostgreSQL: killed, paused, replaced while they work."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, SIGUSR1, Signals
from time import monotonic
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from genlock.domain.events import Event
from genlock.domain.job import Job, NewJob
from genlock.domain.money import EntryKind, HoldState
from genlock.engine.invariants import End, ends
from genlock.stores.postgres import PostgresStore
from tests.journeys import engine_process
from tests.journeys.engine_process import READY, SCHEMA, Config, Lines

PRICE = 100
FUNDS = 1_000_000
PATIENCE_SECONDS = 40
#: how far a busy machine may be behind
ALLOWANCE_SECONDS = 1.0


class Process:
    """An engine that runs in a process, with what it said."""

    def __init__(self, config: Config, log: Path) -> None:
        self.name = config.name
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(engine_process.__file__), json.dumps(asdict(config))],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def signal(self, signal: Signals) -> None:
        self._process.send_signal(signal)

    def said(self, event: str, **facts: Any) -> list[dict[str, Any]]:
        lines = self._log.read_text().splitlines()
        told = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [line for line in told if line["event"] == event and facts.items() <= line.items()]

    @property
    def over(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        assert self._process.poll() is None, f"{self.name} ended by itself:\n{self._log.read_text()[-3000:]}"


@dataclass
class Fleet:
    """The database, the processes on it, and one person who orders."""

    url: str
    folder: Path
    store: PostgresStore
    database: "asyncpg.Pool[asyncpg.Record]"
    person: int
    processes: list[Process] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)

    async def start(self, name: str, *, hold: bool = False, faults: float = 0.0, **rules: float) -> Process:
        config = Config(url=self.url, name=f"{name}-{uuid4().hex}", hold=hold, faults=faults, rules=rules)
        process = Process(config, self.folder / f"{name}.log")
        self.processes.append(process)
        await self.until(lambda: self._is_ready(process))
        return process

    async def _is_ready(self, process: Process) -> bool:
        process.check()
        return bool(process.said(READY))

    async def order(self, count: int) -> None:
        """Orders that any instance may take."""
        orders = [
            NewJob(
                account_id=self.person,
                request_key=f"key-{number}",
                provider="mill",
                channel="chat",
                address="42",
                model="flux",
                input="{}",
                price=PRICE,
                deadline_seconds=600,
                placeholder=f"message-{number}",
            )
            for number in range(len(self.jobs), len(self.jobs) + count)
        ]
        accepted = await asyncio.gather(*(self.store.accept_job(order, None) for order in orders))
        self.jobs += [acceptance.job.id for acceptance in accepted]

    async def until(self, condition: Callable[[], Awaitable[bool]], patience: float = PATIENCE_SECONDS) -> float:
        """Wait for something another process does; the seconds it took."""
        start = monotonic()
        async with asyncio.timeout(patience):
            while not await condition():  # noqa: ASYNC110 - nobody tells us when another process has written
                await asyncio.sleep(0.02)
        return monotonic() - start

    async def calls(self, operation: str, process: Process | None = None) -> Counter[int]:
        """How often something was done outside, by job."""
        rows = await self.database.fetch(
            "SELECT job FROM outside.calls WHERE operation = $1 AND ($2::text IS NULL OR instance = $2)",
            *(operation, process.name if process else None),
        )
        return Counter(row["job"] for row in rows)

    async def holds(self, process: Process, count: int) -> None:
        """Wait until a process has so many deliveries in its hands."""

        async def condition() -> bool:
            process.check()
            return len(await self.calls("put", process)) >= count

        await self.until(condition)

    async def active(self, process: Process) -> bool:
        holder = await self.database.fetchval("SELECT holder FROM roles WHERE name = 'active' AND until > now()")
        return bool(holder == process.name)

    async def settled(self) -> bool:
        return not await self.database.fetchval(
            "SELECT EXISTS (SELECT FROM jobs WHERE due_at IS NOT NULL) "
            "OR EXISTS (SELECT FROM inbox WHERE due_at IS NOT NULL)"
        )

    async def _notified(self) -> bool:
        return len(await self.calls("notify")) == len(self.jobs)

    async def all_jobs(self) -> list[Job]:
        return [job for job_id in self.jobs if (job := await self.store.job(job_id))]

    async def rows(self) -> list[Any]:
        """Everything the engine keeps, as it is."""
        tables = [await self.database.fetch(f"SELECT * FROM {table} ORDER BY 1") for table in ("jobs", "ledger")]  # noqa: S608
        return [*tables, await self.calls("notify"), await self.shown()]

    async def shown(self) -> dict[str, str]:
        return {row["id"]: row["shown"] for row in await self.database.fetch("SELECT * FROM outside.messages")}

    async def check_all_delivered_once(self) -> None:
        jobs = await self.all_jobs()
        assert {tuple(ends(job)) for job in jobs} == {(End.DELIVERED,)}
        assert await self.shown() == {job.placeholder: f"result of {job.id}" for job in jobs}
        once = Counter(self.jobs)
        await self.until(self._notified)  # a job is settled just before its notice goes out
        assert await self.calls("notify") == once
        assert await self.calls("create") == once
        await self.check_money(jobs)

    async def check_money(self, jobs: list[Job]) -> None:
        assert await self.store.violations(settled=True) == []
        wallet = await self.store.wallet(self.person)
        paid = PRICE * sum(job.hold_state is HoldState.CAPTURED for job in jobs)
        assert (wallet.held, wallet.available) == (0, FUNDS - paid)


@pytest.fixture
async def fleet(postgres_url: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    store = await PostgresStore.open(postgres_url, observer=Lines())
    database = await asyncpg.create_pool(postgres_url, min_size=1, max_size=2)
    await database.execute(SCHEMA)
    person = await store.ensure_account("chat", "bot", "42")
    await store.transfer(person, EntryKind.TOPUP, FUNDS, "funds")
    fleet = Fleet(postgres_url, tmp_path, store, database, person)
    yield fleet
    for process in fleet.processes:
        process.end()
    await database.close()
    await store.close()


async def test_a_killed_instance_is_replaced_within_five_seconds(fleet: Fleet) -> None:
    """With the default rules: it held the active role and twenty deliveries."""
    victim = await fleet.start("victim", hold=True)
    await fleet.order(20)
    await fleet.holds(victim, 20)
    heir = await fleet.start("heir")
    assert await fleet.active(victim)

    victim.signal(SIGKILL)
    took_role, took_work = await asyncio.gather(fleet.until(lambda: fleet.active(heir)), fleet.until(fleet.settled))

    assert max(took_role, took_work) <= 5 + ALLOWANCE_SECONDS
    await fleet.check_all_delivered_once()
    assert heir.said(Event.INSTANCE_DEAD, peer=victim.name, jobs=20)


async def test_a_stopped_instance_is_replaced_at_once(fleet: Fleet) -> None:
    """It could not finish its deliveries in the time it was given."""
    leaver = await fleet.start("leaver", hold=True, stop_seconds=0.1)
    await fleet.order(20)
    await fleet.holds(leaver, 20)
    heir = await fleet.start("heir")
    assert await fleet.active(leaver)

    leaver.signal(SIGTERM)
    took_role, took_work = await asyncio.gather(fleet.until(lambda: fleet.active(heir)), fleet.until(fleet.settled))

    assert max(took_role, took_work) <= 1 + ALLOWANCE_SECONDS
    await fleet.until(lambda: is_over(leaver))
    assert leaver.over == 0
    await fleet.check_all_delivered_once()
    assert heir.said(Event.INSTANCE_DEAD) == []


async def test_an_instance_that_wakes_up_after_it_was_replaced_changes_nothing(fleet: Fleet) -> None:
    sleeper = await fleet.start("sleeper", hold=True)
    await fleet.order(10)
    await fleet.holds(sleeper, 10)
    heir = await fleet.start("heir")
    sleeper.signal(SIGSTOP)
    await fleet.until(fleet.settled)
    await fleet.until(lambda: fleet.active(heir))
    await fleet.check_all_delivered_once()
    before = await fleet.rows()

    sleeper.signal(SIGUSR1)
    sleeper.signal(SIGCONT)
    await fleet.until(lambda: has_said(sleeper, Event.LEASE_LOST, 10))
    await fleet.until(lambda: has_said(sleeper, Event.LOCK_PASSIVE, 1))

    assert await fleet.rows() == before
    assert await fleet.active(heir)
    sleeper.signal(SIGTERM)
    await fleet.until(lambda: is_over(sleeper))
    assert sleeper.over == 0
    assert await fleet.rows() == before


@pytest.mark.parametrize("signal", [SIGTERM, SIGKILL], ids=lambda signal: signal.name)
async def test_instances_that_replace_each_other_under_load_deliver_everything_once(
    fleet: Fleet, signal: Signals
) -> None:
    """A rolling deploy: the old one goes while the new one works; the channel loses every tenth answer."""
    old = await fleet.start("old", faults=0.2, grace_seconds=2.0)
    await fleet.order(100)
    await fleet.holds(old, 20)
    await fleet.start("new", faults=0.2, grace_seconds=2.0)
    for _ in range(4):
        await fleet.order(50)
    await fleet.holds(old, 60)
    old.signal(signal)
    await fleet.until(lambda: is_over(old))
    await fleet.order(100)
    await fleet.until(fleet.settled)

    if signal is SIGTERM:
        assert old.over == 0
        await fleet.check_all_delivered_once()
        return
    # Killed in the middle of create calls: those end with the money back and the person told.
    jobs = await fleet.all_jobs()
    assert len(jobs) == 400
    assert max((await fleet.calls("create")).values()) == 1
    assert max((await fleet.calls("notify")).values()) == 1
    shown = await fleet.shown()
    for job in jobs:
        [end] = ends(job)
        assert shown[str(job.placeholder)] == (f"result of {job.id}" if end is End.DELIVERED else "submit_unknown")
    assert len(shown) == 400
    await fleet.check_money(jobs)


async def is_over(process: Process) -> bool:
    return process.over is not None


async def has_said(process: Process, event: Event, times: int) -> bool:
    return len(process.said(event)) >= times
