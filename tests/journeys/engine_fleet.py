"""Engine processes on one PostgreSQL, and what they did."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from signal import Signals
from time import monotonic
from typing import Any
from uuid import uuid4

import asyncpg

from genlock.domain.job import Job, NewJob
from genlock.domain.money import HoldState
from genlock.engine.invariants import End, ends
from genlock.stores.postgres import PostgresStore
from tests.changes import poll_until
from tests.fork_server import ForkServer
from tests.journeys import engine_process
from tests.journeys.engine_process import READY, Config

PRICE = 100
FUNDS = 1_000_000
PATIENCE_SECONDS = 40


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

    @property
    def log_lines(self) -> list[dict[str, Any]]:
        lines = self._log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    def logged(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        return [line for line in self.log_lines if line["event"] == event and fields.items() <= line.items()]

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
        await poll_until(condition, patience)
        return monotonic() - start

    async def calls(self, operation: str, process: Process | None = None) -> Counter[int]:
        """Number of provider or channel calls by job."""
        rows = await self.database.fetch(
            "SELECT job FROM outside.calls WHERE operation = $1 AND ($2::text IS NULL OR instance = $2)",
            *(operation, process.name if process else None),
        )
        return Counter(row["job"] for row in rows)

    async def wait_for_deliveries(self, process: Process | None, count: int) -> None:
        """Wait until a process, or all together, have begun `count` deliveries."""

        async def condition() -> bool:
            for running in [process] if process else self.processes:
                running.check()
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
