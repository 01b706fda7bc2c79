"""An engine with the real Kie client against the simulated Kie.ai, over HTTP, and a chat in this process."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from genlock.app.clock import SystemClock
from genlock.app.engine import make_engine
from genlock.domain.job import Delivery, Job, NewJob, State
from genlock.domain.money import EntryKind
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.providers.kie.bundle import verify_callback
from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.stores.sqlite import SqliteStore
from genlock.web.callbacks import CallbackEndpoint
from genlock.web.routes import make_web
from genlock.web.server import serving
from tests.changes import PATIENCE_SECONDS, poll_until
from tests.databases import new_sqlite
from tests.engine.fake_channel import FakeChannel
from tests.engine.recorder import Recorder
from tests.engine.world import idle
from tests.providers.conftest import FAST, TIMEOUT_SECONDS
from tests.providers.models import CATALOG

FUNDS = 1_000_000
PRICE = 100
KEY = "hmac"
QUICK = EngineRules(claim_seconds=0.05, sweep_seconds=0.1, poll_seconds=0.1, grace_seconds=1.0, is_alone=True)


class Endpoint:
    """An ASGI application at the public URL that forwards to the engine's endpoint once that exists."""

    def __init__(self) -> None:
        self.web: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.web(scope, receive, send)


@dataclass(kw_only=True)
class KieWorld:
    simulator: KieSimulator
    kie: Kie
    store: SqliteStore
    engine: Engine
    chat: FakeChannel
    recorder: Recorder
    account_id: int
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    async def order(self, model: str = "z-image", **more: Any) -> Job:
        number = next(self._numbers)
        values = {**CATALOG.models[model].fixed, "prompt": f"fox no. {number}"}
        return await self.engine.order(
            NewJob(
                account_id=self.account_id,
                request_key=f"order-{number}",
                provider="kie",
                channel="chat",
                address="1",
                model=model,
                input=json.dumps(values),
                price=PRICE,
                placeholder=self.chat.new_message(),
                **{"deadline_seconds": 600.0} | more,
            )
        )

    async def see(self, job: Job) -> Job:
        found = await self.store.job(job.id)
        assert found is not None
        return found

    async def done(self, *jobs: Job, seconds: float = PATIENCE_SECONDS) -> list[Job]:
        """Wait until the jobs need no further work."""

        async def need_no_work() -> bool:
            return all([(await self.see(job)).due_at is None for job in jobs])

        await self.recorder.changes.until(need_no_work, seconds)
        await idle(self.engine)  # a notice is recorded before it is sent
        return [await self.see(job) for job in jobs]

    async def callbacks_processed(self) -> None:
        """Wait until no callback is left, of those that the simulator has sent."""
        await self.simulator.service.settled()

        async def none_left() -> bool:
            return not (await self.store.counts())["callbacks"]

        await poll_until(none_left)
        await idle(self.engine)

    def tasks(self) -> int:
        return len(self.simulator.service.tasks)

    async def spent(self) -> int:
        wallet = await self.store.wallet(self.account_id)
        assert wallet.held == 0
        return FUNDS - wallet.available

    def assert_delivered_once(self, job: Job) -> None:
        """Check that every part is in the chat once and that one notice was sent."""
        assert (job.state, job.delivery) == (State.SUCCEEDED, Delivery.DELIVERED)
        for part in job.parts:
            assert len(self.chat.showing(part.value)) == 1
            assert sum(text.partition(" ")[2] == part.value for _, text in self.chat.shown) == 1
        assert self.chat.notices.count(job.id) == 1

    def assert_informed(self, job: Job, code: str) -> None:
        """The account_id knows why there is nothing."""
        assert job.error_code == code
        assert job.placeholder is not None
        assert self.chat.messages[job.placeholder].endswith(f" {code}")


@asynccontextmanager
async def running_world(
    folder: Path, *, public: bool = True, rules: EngineRules = QUICK, **simulator: Any
) -> AsyncIterator[KieWorld]:
    quick = {"create_limit": (10_000, 1.0), "status_limit": (10_000, 1.0), "webhook_key": KEY}
    endpoint = Endpoint()
    recorder = Recorder()
    async with (
        running_kie(catalog=CATALOG, **FAST | quick | simulator) as fake,
        serving(endpoint, "127.0.0.1", 0) as url,
    ):
        kie = Kie(key=fake.key, api_url=fake.url, upload_url=fake.url, timeout_seconds=TIMEOUT_SECONDS)
        store = await SqliteStore.open(new_sqlite(folder), clock=SystemClock(), observer=recorder)
        chat = FakeChannel()
        engine = make_engine(
            store,
            recorder,
            providers={"kie": kie},
            channels={"chat": chat},
            rules=rules,
            offers=lambda job: CATALOG.models[job.model].offers,
            public_url=url if public else None,
        )
        endpoint.web = make_web([CallbackEndpoint(engine=engine, provider="kie", verify=verify_callback(KEY))])
        account_id = await store.ensure_account("chat", "bot", "1")
        await store.transfer(account_id, EntryKind.TOPUP, FUNDS, "funds")
        await engine.start()
        try:
            yield KieWorld(
                simulator=fake, kie=kie, store=store, engine=engine, chat=chat, recorder=recorder, account_id=account_id
            )
            await fake.service.settled()
            assert await store.violations(settled=False) == []
        finally:
            await engine.stop()
            await store.close()
            await kie.close()
