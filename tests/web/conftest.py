"""An instance with a callback door, over a store in memory."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from pydantic import SecretStr
from starlette.applications import Starlette

from genlock.app import SystemClock, make_engine, make_kie_endpoint
from genlock.domain.job import NewJob
from genlock.domain.money import EntryKind
from genlock.engine.engine import Engine
from genlock.providers.kie.client import Kie
from genlock.settings import Settings
from genlock.stores.sqlite import SqliteStore
from genlock.web.server import make_web
from tests.engine.world import Chat, Recorder, die, idle
from tests.providers.models import CATALOG

TASK = "86007839a9ca205ad3af437f7974310f"
KEY = "test-hmac-key"


class Taker(Kie):
    """Kie.ai without a wire: every order is task TASK, and its callback address is remembered."""

    callback_url: str | None = None

    async def create(self, job: object, callback_url: str | None) -> str:
        self.callback_url = callback_url
        return TASK


@dataclass(frozen=True, kw_only=True)
class House:
    store: SqliteStore
    engine: Engine
    chat: Chat
    recorder: Recorder
    web: Starlette
    signed: Starlette
    #: the path of the running job's own callback address
    path: str
    job_id: int

    def inbox(self) -> list[tuple[int, bytes, str, int | None]]:
        rows = self.store.session.connection.execute("SELECT id, body, state, job_id FROM inbox ORDER BY id")
        return [tuple(row) for row in rows]


async def make_house() -> House:
    recorder = Recorder()
    store = await SqliteStore.open(":memory:", clock=SystemClock(), observer=recorder)
    provider = Taker(key="k", find_model=CATALOG.get)
    chat = Chat()
    engine = make_engine(
        store, recorder, providers={"kie": provider}, channels={"chat": chat}, public_url="https://bot.example"
    )
    person = await store.ensure_account("chat", "bot", "1")
    await store.transfer(person, EntryKind.TOPUP, 1000, "funds")
    order = NewJob(
        account_id=person,
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
    return House(
        store=store,
        engine=engine,
        chat=chat,
        recorder=recorder,
        web=make_web([make_kie_endpoint(engine, Settings())]),
        signed=make_web([make_kie_endpoint(engine, Settings(kie_webhook_key=SecretStr(KEY)))]),
        path=provider.callback_url.removeprefix("https://bot.example"),
        job_id=job.id,
    )


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = await make_house()
    yield house
    await die(house.engine)
    await house.store.close()
