"""Real processes that die: of one order, again and again; and on an SQLite file, whose next holder need not wait."""

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

from genlock.app import SystemClock, open_store
from genlock.domain.events import Event
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.ports import Database
from genlock.stores.sqlite import SqliteStore
from tests.journeys import mortal_process
from tests.journeys.engine_process import Lines
from tests.journeys.mortal_process import POISON, PUT, Config
from tests.stores.builders import PRICE, RESULT, account_with, end, running

PATIENCE_SECONDS = 60
DEATHS_MAX = 5
FUNDS = 1_000_000
RULES = {"heartbeat_seconds": 0.2, "silent_seconds": 1.0, "claim_seconds": 0.1, "crashes_max": DEATHS_MAX}


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/genlock.db"
    return str(request.getfixturevalue("postgres_url"))


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Database]:
    path = url.removeprefix("sqlite:///")
    if os.path.exists(path):  # noqa: ASYNC240, PTH110 - never taking the file: whoever has it may be just starting again
        store: Database = await SqliteStore.open(path, clock=SystemClock(), observer=Lines(), beside=True)
    else:
        store = await open_store(url, observer=Lines())
    try:
        yield store
    finally:
        await store.close()


@dataclass
class Supervisor:
    """Starts a process again whenever it has died, as systemd or a container's host does."""

    config: Config
    crash_count: int = 0
    said: list[dict[str, Any]] = field(default_factory=list)
    process: Process | None = None

    async def run(self) -> None:
        while True:
            status = await self.once()
            assert status == -SIGKILL, self.said[-10:]
            self.crash_count += 1

    async def once(self) -> int:
        """One life."""
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", mortal_process.__name__, json.dumps(asdict(self.config)), stdin=DEVNULL, stdout=PIPE
        )
        try:
            assert self.process.stdout is not None
            async for line in self.process.stdout:
                self.said.append(json.loads(line))
        except asyncio.CancelledError:
            self.process.kill()
            await self.process.wait()
            raise
        return await self.process.wait()

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.said if line["event"] == event]


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
        while not await condition():  # noqa: ASYNC110 - another process brings it about
            await asyncio.sleep(0.05)


async def result(store: Database, account_id: int, value: str = RESULT[0].value) -> Job:
    """An order whose result is there, to be shown by whoever comes first."""
    job = await running(store, account_id=account_id)
    ended = await end(store, job, State.SUCCEEDED, None, parts=(replace(RESULT[0], value=value),))
    assert ended.job is not None
    return ended.job


async def test_an_order_that_every_process_dies_of_ends_on_the_operators_list_while_others_are_delivered(
    url: str,
) -> None:
    async with opened(url) as store:
        person = await account_with(store, FUNDS)
        others = [(await result(store, person)).id for _ in range(20)]
        poison = await result(store, person, POISON)
        others += [(await result(store, person)).id for _ in range(20)]

    async with supervised(Config(url=url, rules=RULES), 1 if url.startswith("sqlite") else 2) as supervisors:

        async def is_given_up() -> bool:
            async with opened(url) as store:
                one_more = await result(store, person)
            others.append(one_more.id)
            await until(lambda: is_shown(url, one_more.id))
            async with opened(url) as store:
                return bool(await store.jobs_needing_attention(10))

        await until(is_given_up)
        await until(lambda: is_settled(url))
        crash_count = sum(supervisor.crash_count for supervisor in supervisors)
        suspected = {line["job"] for supervisor in supervisors for line in supervisor.of(Event.POISON_SUSPECTED)}

    async with opened(url) as store:
        [listed] = await store.jobs_needing_attention(10)
        assert (listed.id, listed.delivery, listed.hold_state) == (
            poison.id,
            Delivery.UNDELIVERABLE,
            HoldState.RELEASED,
        )
        assert listed.attention_reason == f"its work ended the process {DEATHS_MAX} times"
        assert crash_count == DEATHS_MAX
        assert poison.id in suspected
        rows = [await store.job(job_id) for job_id in others]
        assert {row.delivery for row in rows if row} == {Delivery.DELIVERED}
        assert (await store.wallet(person)).available == FUNDS - PRICE * len(others)
        assert await store.violations(settled=True) == []


async def is_shown(url: str, job_id: int) -> bool:
    async with opened(url) as store:
        job = await store.job(job_id)
        return job is not None and job.delivery is Delivery.DELIVERED


async def is_settled(url: str) -> bool:
    async with opened(url) as store:
        return not any(count for name, count in (await store.counts()).items() if name != "attention")


async def test_on_an_sqlite_file_the_next_process_goes_on_at_once_with_what_the_dead_one_held(tmp_path: Path) -> None:
    """Neither the lease nor the silence nor the role of the dead one would be over within the hour."""
    url = f"sqlite:///{tmp_path}/genlock.db"
    async with opened(url) as store:
        job = await result(store, await account_with(store, FUNDS))
    rules = {"lease_seconds": 3600.0, "silent_seconds": 3600.0, "role_seconds": 3600.0}
    dead = Supervisor(Config(url=url, hold=True, rules=rules))
    life = asyncio.create_task(dead.once())

    async def holds() -> bool:
        assert not life.done(), dead.said
        return bool(dead.of(PUT) and dead.of(Event.LOCK_ACTIVE))

    await until(holds)
    assert dead.process is not None
    dead.process.send_signal(SIGKILL)
    assert await life == -SIGKILL
    async with opened(url) as store:
        row = await store.job(job.id)
        assert row is not None
        assert row.lease_owner is not None, "the dead one left its lease behind"

    async with supervised(Config(url=url, rules=rules), 1) as [heir]:
        await until(lambda: is_shown(url, job.id))

        async def is_active() -> bool:
            return bool(heir.of(Event.LOCK_ACTIVE))

        await until(is_active)
        assert [(line["peer"], line["jobs"]) for line in heir.of(Event.INSTANCE_DEAD)] == [(row.lease_owner, 1)]
        assert heir.crash_count == 0
