"""The door for Telegram's updates: what is kept, what is refused, and that only what is kept is acknowledged."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.applications import Starlette

from genlock.app import SystemClock, make_engine
from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate, Update, UpdateState
from genlock.engine.updates import UpdateWorker
from genlock.stores.sqlite import SqliteStore
from genlock.web.server import make_web
from genlock.web.telegram import SECRET_HEADER, UPDATE_BYTES_MAX, TelegramEndpoint
from tests.engine.world import Recorder
from tests.web.asgi import request

SECRET = "s3cret-Of-The-Webhook"
RIGHT = {SECRET_HEADER: SECRET}
PATH = "/telegram/webhook"


@dataclass(frozen=True)
class House:
    store: SqliteStore
    recorder: Recorder
    web: Starlette

    async def kept(self) -> list[tuple[int, str]]:
        return [(update.update_id, update.body) for update in reversed(await self.store.updates(UpdateState.NEW, 100))]


@pytest.fixture
async def house() -> AsyncIterator[House]:
    recorder = Recorder()
    store = await SqliteStore.open(":memory:", clock=SystemClock(), observer=recorder)
    engine = make_engine(store, recorder, providers={}, channels={})

    async def nothing(_: Update | NewUpdate) -> None: ...

    updates = UpdateWorker(engine.ctx, store, {"42": nothing}, nothing)
    endpoint = TelegramEndpoint(updates=updates, observer=recorder, path=PATH, bot_id="42", secret=SECRET)
    yield House(store, recorder, make_web([endpoint]))
    await store.close()


def body(number: int = 1, **content: Any) -> bytes:
    return json.dumps({"update_id": number, "message": {"from": {"id": 5}, **content}}).encode()


async def test_an_update_with_the_secret_is_kept_as_it_came(house: House) -> None:
    said = body(7, text="привет \u0000 \U0001f600")
    assert (await request(house.web, PATH, said, RIGHT)) == (200, b"")
    assert await house.kept() == [(7, said.decode())]


async def test_the_same_update_again_is_acknowledged_and_kept_once(house: House) -> None:
    answers = await asyncio.gather(*(request(house.web, PATH, body(7), RIGHT) for _ in range(3)))
    assert [status for status, _ in answers] == [200] * 3
    assert len(await house.kept()) == 1


@pytest.mark.parametrize(
    "headers",
    [{}, {SECRET_HEADER: ""}, {SECRET_HEADER: SECRET[:-1]}, {SECRET_HEADER: SECRET + "x"}, {SECRET_HEADER: "é"}],
)
async def test_without_the_secret_nothing_is_read_or_kept(house: House, headers: dict[str, str]) -> None:
    assert (await request(house.web, PATH, body(), headers))[0] == 401
    assert (await request(house.web, PATH, [], headers))[0] == 401, "not even the body"
    assert await house.kept() == []
    assert len(house.recorder.of(Event.UPDATE_REFUSED, status=401)) == 2


@pytest.mark.parametrize(
    "said", [b"", b"x", b"null", b"[]", b"{}", b'{"update_id":"1"}', b"\xff", b"[" * 100_000, b'{"update_id":NaN}']
)
async def test_what_is_no_update_is_refused(house: House, said: bytes) -> None:
    assert (await request(house.web, PATH, said, RIGHT))[0] == 400
    assert await house.kept() == []


@pytest.mark.parametrize("declared", [True, False])
async def test_what_is_too_large_is_refused(house: House, declared: bool) -> None:  # noqa: FBT001 - a case
    said = body(1, text="a" * UPDATE_BYTES_MAX)
    headers = {**RIGHT, **({"Content-Length": str(len(said))} if declared else {})}
    assert (await request(house.web, PATH, said, headers))[0] == 413


@pytest.mark.parametrize("data", ["\0", "x\0y", "\ud800", "ok"])
async def test_a_press_with_any_data_is_kept(house: House, data: str) -> None:
    press = {"from": {"id": 5}, "data": data, "message": {"message_id": 1, "chat": {"id": 5}}}
    assert (await request(house.web, PATH, json.dumps({"update_id": 7, "callback_query": press}).encode(), RIGHT))[
        0
    ] == 200
    [(number, kept)] = await house.kept()
    assert (number, json.loads(kept)["callback_query"]["data"]) == (7, data)


async def test_an_update_that_nobody_can_keep_is_not_asked_for_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: object) -> None:
        raise ValueError("a text with a NUL character cannot be stored")

    monkeypatch.setattr(house.store, "store_update", fail)
    assert (await request(house.web, PATH, body(), RIGHT))[0] == 200
    assert len(house.recorder.of(Event.UPDATE_REFUSED, status=200)) == 1


async def test_what_cannot_be_kept_now_is_not_acknowledged(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(house.store, "store_update", fail)
    assert (await request(house.web, PATH, body(), RIGHT))[0] == 503
    monkeypatch.undo()
    assert (await request(house.web, PATH, body(), RIGHT))[0] == 200


async def test_only_posts_are_updates(house: House) -> None:
    assert (await request(house.web, PATH, body(), RIGHT, method="GET"))[0] == 405
