"""One engine over one store, with accounts that can pay and a provider and a channel that answer at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from genlock.app.databases import open_store
from genlock.app.engine import make_engine
from genlock.domain.events import Event
from genlock.domain.job import NewJob
from genlock.domain.money import EntryKind
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.log import Silent
from genlock.ports import Store
from genlock.sandbox.bench.instant import InstantChannel, InstantProvider

IN_FLIGHT = 1000


class Deliveries(Silent):
    """An observer that lets the bench wait until a job's delivery is committed."""

    def __init__(self) -> None:
        self._ends: dict[int, asyncio.Future[None]] = {}

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        if event is Event.MARK_DELIVERED:
            self._end(fields["job"]).set_result(None)

    async def delivered(self, job_id: int) -> None:
        await self._end(job_id)
        del self._ends[job_id]

    def _end(self, job_id: int) -> asyncio.Future[None]:
        if job_id not in self._ends:
            self._ends[job_id] = asyncio.get_running_loop().create_future()
        return self._ends[job_id]


@dataclass
class World:
    """One engine over one store, with accounts that can pay."""

    deliveries: Deliveries
    store: Store
    engine: Engine
    provider: InstantProvider
    channel: InstantChannel
    accounts: list[int]
    ordered: int = 0

    def order(self, account: int) -> NewJob:
        self.ordered += 1
        return NewJob(
            account_id=account,
            request_key=f"{self.provider.tag}-{self.ordered}",
            provider="instant",
            channel="instant",
            address='{"chat":1}',
            model="z-image",
            input='{"prompt":"cat astronaut","aspect_ratio":"1:1"}',
            price=800,
            deadline_seconds=900.0,
            placeholder="1",
            notice=False,
            correlation_id=f"bench-{self.ordered}",
        )


@asynccontextmanager
async def open_world(url: str, tag: str, accounts: int = IN_FLIGHT) -> AsyncIterator[World]:
    observer = Deliveries()
    store = await open_store(url, observer=observer)
    provider, channel = InstantProvider(tag), InstantChannel()
    engine = make_engine(
        store,
        observer,
        providers={"instant": provider},
        channels={"instant": channel},
        rules=EngineRules(capacity=4 * IN_FLIGHT),
        public_url="http://127.0.0.1",
    )
    provider.engine = engine
    known = [await store.ensure_account("instant", "bench", f"{tag}-{number}") for number in range(accounts)]
    await asyncio.gather(*(store.transfer(account, EntryKind.GRANT, 10**12, f"{tag}-{account}") for account in known))
    world = World(observer, store, engine, provider, channel, known)
    await engine.start()
    try:
        yield world
    finally:
        await engine.stop()
        await store.close()
