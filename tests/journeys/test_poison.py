"""Real processes that crash: repeatedly because of one job, and once on SQLite with an immediate takeover."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from genlock.app.clock import SystemClock
from genlock.app.databases import open_store
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.ports import Database
from genlock.stores.sqlite import SqliteStore
from tests.journeys import crashing_process
from tests.journeys.crashing_process import POISON, PUT, Config
from tests.journeys.engine_process import Lines
from tests.stores.builders import PRICE, RESULT, account_with, end, running

PATIENCE_SECONDS = 60
CRASHES_MAX = 5
FUNDS = 1_000_000
RULES = {"heartbeat_seconds": 0.2, "silent_seconds": 1.0, "claim_seconds": 0.1, "crashes_max": CRASHES_MAX}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/genlock.db"
    return str(request.getfixturevalue("postgres_url"))


@asynccontextmanager
async def opened_store(url: str) -> AsyncIterator[Database]:
    path = url.removeprefix("sqlite:///")
    if os.path.exists(path):  # noqa: ASYNC240, PTH110 - opening beside the owner: the process may be restarting
        store: Database = await SqliteStore.open(path, clock=SystemClock(), observer=Lines(), without_lock=True)
    else:
        store = await open_store(url, observer=Lines())
    try:
        yield store
    finally:
        await store.close()


@dataclass
class Supervisor:
    """Restarts a process whenever it crashed, as systemd or a container platform does."""

    config: Config
    crash_count: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)
    process: Process | None = None

    async def run(self) -> None:
        while True:
            status = await self.once()
            assert status == -SIGKILL, self.lines[-10:]
            self.crash_count += 1

    async def once(self) -> int:
        """Run the process once; return its exit status."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", crashing_process.__name__, json.dumps(asdict(self.config)), stdin=DEVNULL, stdout=PIPE
        )
        try:
            assert self.process.stdout is not None
            async for line in self.process.stdout:
                self.lines.append(json.loads(line))
        except asyncio.CancelledError:
            self.process.kill()
            await self.process.wait()
            raise
        return await self.process.wait()

    def events(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]


@asynccontextmanager
async def supervised(config: Config, count: int) -> AsyncIterator[list[Supervisor]]:
    supervisors = [Supervisor(config) for _ in range(count)]
    tasks = [asyncio.create_task(supervisor.run()) for supervisor in supervisors]
    try:
        yield supervisors
    finally:
        for task in tasks:
            task.cancel()
        for done in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(done, asyncio.CancelledError), done


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await condition():  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.05)


async def result(store: Database, account_id: int, value: str = RESULT[0].value) -> Job:
    """A job with a result that any instance may deliver."""
    job = await running(store, account_id=account_id)
    ended = await end(store, job, State.SUCCEEDED, None, parts=(replace(RESULT[0], value=value),))
    assert ended.job is not None
    return ended.job


async def test_a_job_that_crashes_every_process_goes_to_the_attention_list_while_others_are_delivered(
    url: str,
) -> None:
    async with opened_store(url) as store:
        account = await account_with(store, FUNDS)
        others = [(await result(store, account)).id for _ in range(20)]
        poison = await result(store, account, POISON)
        others += [(await result(store, account)).id for _ in range(20)]

    async with supervised(Config(url=url, rules=RULES), 1 if url.startswith("sqlite") else 2) as supervisors:

        async def is_given_up() -> bool:
            async with opened_store(url) as store:
                one_more = await result(store, account)
            others.append(one_more.id)
            await until(lambda: is_shown(url, one_more.id))
            async with opened_store(url) as store:
                return bool(await store.jobs_needing_attention(10))

        await until(is_given_up)
        await until(lambda: is_settled(url))
        crash_count = sum(supervisor.crash_count for supervisor in supervisors)
        suspected = {line["job"] for supervisor in supervisors for line in supervisor.events(Event.POISON_SUSPECTED)}

    async with opened_store(url) as store:
        [listed] = await store.jobs_needing_attention(10)
        assert (listed.id, listed.delivery, listed.hold_state) == (
            poison.id,
            Delivery.UNDELIVERABLE,
            HoldState.RELEASED,
        )
        assert listed.attention_reason == f"the worker crashed {CRASHES_MAX} times while processing it"
        assert crash_count == CRASHES_MAX
        assert poison.id in suspected
        rows = [await store.job(job_id) for job_id in others]
        assert {row.delivery for row in rows if row} == {Delivery.DELIVERED}
        assert (await store.wallet(account)).available == FUNDS - PRICE * len(others)
        assert await store.violations(settled=True) == []


async def is_shown(url: str, job_id: int) -> bool:
    async with opened_store(url) as store:
        job = await store.job(job_id)
        return job is not None and job.delivery is Delivery.DELIVERED


async def is_settled(url: str) -> bool:
    async with opened_store(url) as store:
        return not any(count for name, count in (await store.counts()).items() if name != "attention")


async def test_on_sqlite_the_next_process_takes_over_the_leases_of_a_killed_one_at_once(tmp_path: Path) -> None:
    """Lease, heartbeat and role of the killed process would all last an hour."""
    url = f"sqlite:///{tmp_path}/genlock.db"
    async with opened_store(url) as store:
        job = await result(store, await account_with(store, FUNDS))
    rules = {"lease_seconds": 3600.0, "silent_seconds": 3600.0, "role_seconds": 3600.0}
    killed = Supervisor(Config(url=url, hold=True, rules=rules))
    run = asyncio.create_task(killed.once())

    async def holds() -> bool:
        assert not run.done(), killed.lines
        return bool(killed.events(PUT) and killed.events(Event.LOCK_ACTIVE))

    await until(holds)
    assert killed.process is not None
    killed.process.send_signal(SIGKILL)
    assert await run == -SIGKILL
    async with opened_store(url) as store:
        row = await store.job(job.id)
        assert row is not None
        assert row.lease_owner is not None, "the killed process still holds its lease"

    async with supervised(Config(url=url, rules=rules), 1) as [successor]:
        await until(lambda: is_shown(url, job.id))

        async def is_active() -> bool:
            return bool(successor.events(Event.LOCK_ACTIVE))

        await until(is_active)
        assert [(line["peer"], line["jobs"]) for line in successor.events(Event.INSTANCE_DEAD)] == [
            (row.lease_owner, 1)
        ]
        assert successor.crash_count == 0
