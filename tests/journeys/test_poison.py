"""Real processes that crash: repeatedly because of one job, and once on SQLite with an immediate takeover."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from signal import SIGKILL
from typing import Any
from uuid import uuid4

import pytest

from genlock.app.clock import SystemClock
from genlock.app.databases import open_store
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.ports import Database
from genlock.stores.sqlite import SqliteStore
from tests.changes import poll_until
from tests.fork_server import POLL_SECONDS, ForkedProcess, ForkServer
from tests.journeys import crashing_process
from tests.journeys.crashing_process import POISON, PUT, Config
from tests.journeys.engine_process import Lines
from tests.stores.builders import PRICE, RESULT, account_with, end, running

PATIENCE_SECONDS = 100
CRASHES_MAX = 5
FUNDS = 1_000_000
#: an instance that a busy machine holds up for a second or two must not count as crashed
RULES = {"heartbeat_seconds": 0.2, "silent_seconds": 3.0, "claim_seconds": 0.1, "crashes_max": CRASHES_MAX}


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
    server: ForkServer
    log: Path
    crash_count: int = 0
    process: ForkedProcess | None = None

    async def run(self) -> None:
        while True:
            status = await self.once()
            assert status == -SIGKILL, self.log.read_text()[-3000:]
            self.crash_count += 1

    async def once(self) -> int:
        """Run the process once; return its exit status."""
        command = [sys.executable, "-m", crashing_process.__name__, json.dumps(asdict(self.config))]
        with self.log.open("ab") as output:
            self.process = self.server.launch(command, stdout=output)
        try:
            while (status := self.process.poll()) is None:  # noqa: ASYNC110 - it is not our child
                await asyncio.sleep(POLL_SECONDS)
        except asyncio.CancelledError:
            self.process.kill()
            self.process.wait()
            raise
        return status

    def events(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.endswith("}")]
        return [line for line in lines if line["event"] == event]


@dataclass
class Supervision:
    server: ForkServer
    folder: Path

    def of(self, config: Config) -> Supervisor:
        log = self.folder / f"{uuid4().hex}.log"
        log.touch()
        return Supervisor(config, self.server, log)

    @asynccontextmanager
    async def running(self, config: Config, count: int) -> AsyncIterator[list[Supervisor]]:
        supervisors = [self.of(config) for _ in range(count)]
        tasks = [asyncio.create_task(supervisor.run()) for supervisor in supervisors]
        try:
            yield supervisors
        finally:
            for task in tasks:
                task.cancel()
            for done in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(done, asyncio.CancelledError), done


@pytest.fixture
def supervision(fork_server: ForkServer, tmp_path: Path) -> Supervision:
    return Supervision(fork_server, tmp_path)


async def result(store: Database, account_id: int, value: str = RESULT[0].value) -> Job:
    """A job with a result that any instance may deliver."""
    job = await running(store, account_id=account_id)
    ended = await end(store, job, State.SUCCEEDED, None, parts=(replace(RESULT[0], value=value),))
    assert ended.job is not None
    return ended.job


@pytest.mark.timeout(240)
async def test_a_job_that_crashes_every_process_goes_to_the_attention_list_while_others_are_delivered(
    url: str, supervision: Supervision
) -> None:
    async with opened_store(url) as store:
        account = await account_with(store, FUNDS)
        others = [(await result(store, account)).id for _ in range(20)]
        poison = await result(store, account, POISON)
        others += [(await result(store, account)).id for _ in range(20)]

    count = 1 if url.startswith("sqlite") else 2
    async with supervision.running(Config(url=url, rules=RULES), count) as supervisors, opened_store(url) as store:

        async def is_given_up() -> bool:
            one_more = await result(store, account)
            others.append(one_more.id)
            await poll_until(lambda: is_shown(store, one_more.id), PATIENCE_SECONDS)
            return bool(await store.jobs_needing_attention(10))

        await poll_until(is_given_up, PATIENCE_SECONDS)
        await poll_until(lambda: is_settled(store), PATIENCE_SECONDS)
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


async def is_shown(store: Database, job_id: int) -> bool:
    job = await store.job(job_id)
    return job is not None and job.delivery is Delivery.DELIVERED


async def is_settled(store: Database) -> bool:
    return not any(count for name, count in (await store.counts()).items() if name != "attention")


async def test_on_sqlite_the_next_process_takes_over_the_leases_of_a_killed_one_at_once(
    tmp_path: Path, supervision: Supervision
) -> None:
    """Lease, heartbeat and role of the killed process would all last an hour."""
    url = f"sqlite:///{tmp_path}/genlock.db"
    async with opened_store(url) as store:
        job = await result(store, await account_with(store, FUNDS))
    rules = {"lease_seconds": 3600.0, "silent_seconds": 3600.0, "role_seconds": 3600.0}
    killed = supervision.of(Config(url=url, hold=True, rules=rules))
    run = asyncio.create_task(killed.once())

    async def holds() -> bool:
        assert not run.done(), killed.log.read_text()
        return bool(killed.events(PUT) and killed.events(Event.LOCK_ACTIVE))

    await poll_until(holds, PATIENCE_SECONDS)
    assert killed.process is not None
    killed.process.send_signal(SIGKILL)
    assert await run == -SIGKILL
    async with opened_store(url) as store:
        row = await store.job(job.id)
        assert row is not None
        assert row.lease_owner is not None, "the killed process still holds its lease"

    async with supervision.running(Config(url=url, rules=rules), 1) as [successor], opened_store(url) as store:
        await poll_until(lambda: is_shown(store, job.id), PATIENCE_SECONDS)

        async def is_active() -> bool:
            return bool(successor.events(Event.LOCK_ACTIVE))

        await poll_until(is_active, PATIENCE_SECONDS)
        assert [(line["peer"], line["jobs"]) for line in successor.events(Event.INSTANCE_DEAD)] == [
            (row.lease_owner, 1)
        ]
        assert successor.crash_count == 0
