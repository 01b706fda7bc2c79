"""An instance with a callback endpoint and a store in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from starlette.types import ASGIApp

from genlock.app.clock import SystemClock
from genlock.app.engine import make_engine
from genlock.domain.job import NewJob
from genlock.domain.money import EntryKind
from genlock.domain.task import Handle, TaskOrder
from genlock.engine.engine import Engine
from genlock.providers.kie.bundle import verify_callback
from genlock.providers.kie.client import Kie
from genlock.stores.sqlite import SqliteStore
from genlock.web.callbacks import CallbackEndpoint
from genlock.web.routes import make_web
from tests.databases import sqlite_in_memory
from tests.engine.fake_channel import FakeChannel
from tests.engine.recorder import Recorder
from tests.engine.world import die, idle

TASK = "86007839a9ca205ad3af437f7974310f"
KEY = "test-hmac-key"


class OfflineKie(Kie):
    """Kie.ai without a network: every job gets the task TASK, and its callback URL is recorded."""

    callback_url: str | None = None

    async def create(self, order: TaskOrder) -> Handle:
        self.callback_url = order.callback_url
        return Handle(task_id=TASK)


@dataclass(frozen=True, kw_only=True)
class Instance:
    store: SqliteStore
    engine: Engine
    chat: FakeChannel
    recorder: Recorder
    #: does not check signatures
    web: ASGIApp
    #: accepts signed callbacks only
    signed: ASGIApp
    #: the path of the running job's callback URL
    path: str
    job_id: int

    def inbox(self) -> list[tuple[int, bytes, str, int | None]]:
        rows = self.store.session.connection.execute("SELECT id, body, state, job_id FROM inbox ORDER BY id")
        return [tuple(row) for row in rows]


async def make_instance() -> Instance:
    recorder = Recorder()
    store = await sqlite_in_memory(SystemClock(), recorder)
    provider = OfflineKie(key="k")
    chat = FakeChannel()
    engine = make_engine(
        store, recorder, providers={"kie": provider}, channels={"chat": chat}, public_url="https://bot.example"
    )
    account_id = await store.ensure_account("chat", "bot", "1")
    await store.transfer(account_id, EntryKind.TOPUP, 1000, "funds")
    order = NewJob(
        account_id=account_id,
        request_key="k",
        provider="kie",
        channel="chat",
        address="1",
        model="z-image",
        input='{"prompt":"a"}',
        price=100,
        deadline_seconds=600,
        placeholder=chat.new_message(),
    )
    job = await engine.order(order)
    await idle(engine)
    assert provider.callback_url is not None
    return Instance(
        store=store,
        engine=engine,
        chat=chat,
        recorder=recorder,
        web=make_web([CallbackEndpoint(engine=engine, provider="kie")]),
        signed=make_web([CallbackEndpoint(engine=engine, provider="kie", verify=verify_callback(KEY))]),
        path=provider.callback_url.removeprefix("https://bot.example"),
        job_id=job.id,
    )


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    instance = await make_instance()
    yield instance
    await die(instance.engine)
    await instance.store.close()
