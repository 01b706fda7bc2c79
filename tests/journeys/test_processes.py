"""Engine processes on PostgreSQL that are killed, paused and replaced while they work."""

import asyncio
import json
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
from tests.fork_server import ForkServer
from tests.journeys import engine_process
from tests.journeys.engine_process import READY, SCHEMA, Config, Lines

PRICE = 100
FUNDS = 1_000_000
PATIENCE_SECONDS = 40
#: tolerance for a busy machine
ALLOWANCE_SECONDS = 1.0


class Process:
    """An engine process and its log."""

    def __init__(self, config: Config, log: Path, server: ForkServer) -> None:
        self.name = config.name
        self._log = log
        with log.open("wb") as output:
            command = [sys.executable, "-m", engine_process.__name__, json.dumps(asdict(config))]
            self._process = server.launch(command, stdout=output)

    def signal(self, signal: Signals) -> None:
        self._process.send_signal(signal)

    def logged(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        lines = self._log.read_text().splitlines()
        events = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [line for line in events if line["event"] == event and fields.items() <= line.items()]

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        assert self._process.poll() is None, f"{self.name} ended unexpectedly:\n{self._log.read_text()[-3000:]}"


@dataclass
class Fleet:
    """The database, the processes on it, and one account that orders."""

    url: str
    folder: Path
    store: PostgresStore
    database: "asyncpg.Pool[asyncpg.Record]"
    account: int
    server: ForkServer
    processes: list[Process] = field(default_factory=list)
    jobs: list[int] = field(default_factory=list)

    async def start(self, name: str, *, hold: bool = False, faults: float = 0.0, **rules: float) -> Process:
        config = Config(url=self.url, name=f"{name}-{uuid4().hex}", hold=hold, faults=faults, rules=rules)
        process = Process(config, self.folder / f"{name}.log", self.server)
        self.processes.append(process)
        await self.until(lambda: self._is_ready(process))
        return process

    async def _is_ready(self, process: Process) -> bool:
        process.check()
        return bool(process.logged(READY))

    async def order(self, count: int) -> None:
        """Accept orders that any instance may process."""
        orders = [
            NewJob(
                account_id=self.account,
                request_key=f"key-{number}",
                provider="instant",
                channel="chat",
                address="42",
                model="flux",
                input="{}",
                price=PRICE,
                deadline_seconds=600,
                placeholder=f"message-{number}",
                correlation_id=f"correlation-{number}",
            )
            for number in range(len(self.jobs), len(self.jobs) + count)
        ]
        accepted = await asyncio.gather(*(self.store.accept_job(order, None) for order in orders))
        self.jobs += [accepted_job.job.id for accepted_job in accepted]

    async def until(self, condition: Callable[[], Awaitable[bool]], patience: float = PATIENCE_SECONDS) -> float:
        """Wait for a condition that another process fulfils; return the seconds it took."""
        start = monotonic()
        async with asyncio.timeout(patience):
            while not await condition():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.02)
        return monotonic() - start

    async def calls(self, operation: str, process: Process | None = None) -> Counter[int]:
        """Number of provider or channel calls by job."""
        rows = await self.database.fetch(
            "SELECT job FROM outside.calls WHERE operation = $1 AND ($2::text IS NULL OR instance = $2)",
            *(operation, process.name if process else None),
        )
        return Counter(row["job"] for row in rows)

    async def wait_for_deliveries(self, process: Process, count: int) -> None:
        """Wait until a process has begun `count` deliveries."""

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
        """All rows of jobs and ledger, and all outside effects."""
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
        wallet = await self.store.wallet(self.account)
        paid = PRICE * sum(job.hold_state is HoldState.CAPTURED for job in jobs)
        assert (wallet.held, wallet.available) == (0, FUNDS - paid)


@pytest.fixture
async def fleet(postgres_url: str, tmp_path: Path, fork_server: ForkServer) -> AsyncIterator[Fleet]:
    store = await PostgresStore.open(postgres_url, observer=Lines())
    database = await asyncpg.create_pool(postgres_url, min_size=1, max_size=2)
    await database.execute(SCHEMA)
    account = await store.ensure_account("chat", "bot", "42")
    await store.transfer(account, EntryKind.TOPUP, FUNDS, "funds")
    fleet = Fleet(postgres_url, tmp_path, store, database, account, fork_server)
    yield fleet
    for process in fleet.processes:
        process.end()
    await database.close()
    await store.close()


async def test_a_killed_instance_is_replaced_within_five_seconds(fleet: Fleet) -> None:
    """With the default rules. The killed instance is the leader and holds twenty deliveries."""
    killed = await fleet.start("killed", hold=True)
    await fleet.order(20)
    await fleet.wait_for_deliveries(killed, 20)
    successor = await fleet.start("successor")
    assert await fleet.active(killed)

    killed.signal(SIGKILL)
    took_role, took_work = await asyncio.gather(
        fleet.until(lambda: fleet.active(successor)), fleet.until(fleet.settled)
    )

    assert max(took_role, took_work) <= 5 + ALLOWANCE_SECONDS
    await fleet.check_all_delivered_once()
    assert successor.logged(Event.INSTANCE_DEAD, peer=killed.name, jobs=20)


async def test_a_stopped_instance_is_replaced_at_once(fleet: Fleet) -> None:
    """The stopping instance cannot finish its deliveries in time."""
    stopping = await fleet.start("stopping", hold=True, stop_seconds=0.1)
    await fleet.order(20)
    await fleet.wait_for_deliveries(stopping, 20)
    successor = await fleet.start("successor")
    assert await fleet.active(stopping)

    stopping.signal(SIGTERM)
    took_role, took_work = await asyncio.gather(
        fleet.until(lambda: fleet.active(successor)), fleet.until(fleet.settled)
    )

    assert max(took_role, took_work) <= 1 + ALLOWANCE_SECONDS
    await fleet.until(lambda: has_ended(stopping))
    assert stopping.status == 0
    await fleet.check_all_delivered_once()
    assert successor.logged(Event.INSTANCE_DEAD) == []


async def test_a_paused_instance_that_resumes_after_a_takeover_changes_nothing(fleet: Fleet) -> None:
    paused = await fleet.start("paused", hold=True)
    await fleet.order(10)
    await fleet.wait_for_deliveries(paused, 10)
    successor = await fleet.start("successor")
    paused.signal(SIGSTOP)
    await fleet.until(fleet.settled)
    await fleet.until(lambda: fleet.active(successor))
    await fleet.check_all_delivered_once()
    before = await fleet.rows()

    paused.signal(SIGUSR1)
    paused.signal(SIGCONT)
    await fleet.until(lambda: has_logged(paused, Event.LEASE_LOST, 10))
    await fleet.until(lambda: has_logged(paused, Event.LOCK_PASSIVE, 1))

    assert await fleet.rows() == before
    assert await fleet.active(successor)
    paused.signal(SIGTERM)
    await fleet.until(lambda: has_ended(paused))
    assert paused.status == 0
    assert await fleet.rows() == before


@pytest.mark.parametrize("signal", [SIGTERM, SIGKILL], ids=lambda signal: signal.name)
async def test_instances_that_replace_each_other_under_load_deliver_everything_once(
    fleet: Fleet, signal: Signals
) -> None:
    """A rolling deploy: the old instance ends while the new one works; every tenth put loses its answer."""
    old = await fleet.start("old", faults=0.2, grace_seconds=2.0)
    await fleet.order(100)
    await fleet.wait_for_deliveries(old, 20)
    await fleet.start("new", faults=0.2, grace_seconds=2.0)
    for _ in range(4):
        await fleet.order(50)
    await fleet.wait_for_deliveries(old, 60)
    old.signal(signal)
    await fleet.until(lambda: has_ended(old))
    await fleet.order(100)
    await fleet.until(fleet.settled)

    if signal is SIGTERM:
        assert old.status == 0
        await fleet.check_all_delivered_once()
        return
    # Killed during create calls: those jobs fail, their hold is released and the user is notified.
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


async def has_ended(process: Process) -> bool:
    return process.status is not None


async def has_logged(process: Process, event: Event, times: int) -> bool:
    return len(process.logged(event)) >= times
