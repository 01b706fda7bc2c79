"""The endpoint for Telegram's updates: what is stored, what is refused; only stored updates are acknowledged."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.types import ASGIApp

from genlock.app.clock import SystemClock
from genlock.app.engine import make_engine
from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.update import NewUpdate, Update, UpdateState
from genlock.engine.updates import UpdateWorker
from genlock.stores.sqlite import SqliteStore
from genlock.web.routes import make_web
from genlock.web.telegram import SECRET_HEADER, UPDATE_BYTES_MAX, TelegramEndpoint
from tests.databases import sqlite_in_memory
from tests.engine.recorder import Recorder
from tests.web.asgi import request

SECRET = "s3cret-Of-The-Webhook"
RIGHT = {SECRET_HEADER: SECRET}
PATH = "/telegram/webhook"


@dataclass(frozen=True)
class Instance:
    store: SqliteStore
    recorder: Recorder
    web: ASGIApp

    async def stored(self) -> list[tuple[int, str]]:
        return [(update.update_id, update.body) for update in reversed(await self.store.updates(UpdateState.NEW, 100))]


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    recorder = Recorder()
    store = await sqlite_in_memory(SystemClock(), recorder)
    engine = make_engine(store, recorder, providers={}, channels={})

    async def nothing(_: Update | NewUpdate) -> None: ...

    updates = UpdateWorker(engine.ctx, store, {"42": nothing}, nothing)
    endpoint = TelegramEndpoint(updates=updates, observer=recorder, path=PATH, bot_id="42", is_secret=SECRET.__eq__)
    yield Instance(store, recorder, make_web([endpoint]))
    await store.close()


def body(number: int = 1, **content: Any) -> bytes:
    return json.dumps({"update_id": number, "message": {"from": {"id": 5}, **content}}).encode()


async def test_an_update_with_the_secret_is_stored_unchanged(instance: Instance) -> None:
    content = body(7, text="привет \u0001 \U0001f600")
    assert (await request(instance.web, PATH, content, RIGHT)) == (200, b"")
    assert await instance.stored() == [(7, content.decode())]


async def test_a_repeated_update_is_acknowledged_and_stored_once(instance: Instance) -> None:
    answers = await asyncio.gather(*(request(instance.web, PATH, body(7), RIGHT) for _ in range(3)))
    assert [status for status, _ in answers] == [200] * 3
    assert len(await instance.stored()) == 1


@pytest.mark.parametrize(
    "headers",
    [{}, {SECRET_HEADER: ""}, {SECRET_HEADER: SECRET[:-1]}, {SECRET_HEADER: SECRET + "x"}, {SECRET_HEADER: "é"}],
)
async def test_without_the_secret_no_body_is_read_or_stored(instance: Instance, headers: dict[str, str]) -> None:
    assert (await request(instance.web, PATH, body(), headers))[0] == 401
    assert (await request(instance.web, PATH, [], headers))[0] == 401, "the body is not read"
    assert await instance.stored() == []
    assert len(instance.recorder.of(Event.UPDATE_REFUSED, status=401)) == 2


@pytest.mark.parametrize(
    "content", [b"", b"x", b"null", b"[]", b"{}", b'{"update_id":"1"}', b"\xff", b"[" * 100_000, b'{"update_id":NaN}']
)
async def test_a_body_that_is_not_an_update_is_refused(instance: Instance, content: bytes) -> None:
    assert (await request(instance.web, PATH, content, RIGHT))[0] == 400
    assert await instance.stored() == []


@pytest.mark.parametrize("declared", [True, False])
async def test_an_update_over_the_size_limit_is_refused(instance: Instance, declared: bool) -> None:  # noqa: FBT001 - a parameter of the test
    content = body(1, text="a" * UPDATE_BYTES_MAX)
    headers = {**RIGHT, **({"Content-Length": str(len(content))} if declared else {})}
    assert (await request(instance.web, PATH, content, headers))[0] == 413


@pytest.mark.parametrize("data", ["\0", "x\0y", "\ud800", "ok"])
async def test_a_button_press_with_any_data_is_stored(instance: Instance, data: str) -> None:
    press = {"from": {"id": 5}, "data": data, "message": {"message_id": 1, "chat": {"id": 5}}}
    assert (await request(instance.web, PATH, json.dumps({"update_id": 7, "callback_query": press}).encode(), RIGHT))[
        0
    ] == 200
    [(number, stored)] = await instance.stored()
    assert (number, json.loads(stored)["callback_query"]["data"]) == (7, data.replace("\0", " "))


async def test_an_update_that_can_never_be_stored_is_acknowledged(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ValueError("a text with a NUL character cannot be stored")

    monkeypatch.setattr(instance.store, "receive_update", fail)
    assert (await request(instance.web, PATH, body(), RIGHT))[0] == 200
    assert len(instance.recorder.of(Event.UPDATE_REFUSED, status=200)) == 1


async def test_an_update_that_cannot_be_stored_now_is_not_acknowledged(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(instance.store, "receive_update", fail)
    assert (await request(instance.web, PATH, body(), RIGHT))[0] == 503
    monkeypatch.undo()
    assert (await request(instance.web, PATH, body(), RIGHT))[0] == 200


async def test_other_methods_than_post_are_refused(instance: Instance) -> None:
    assert (await request(instance.web, PATH, body(), RIGHT, method="GET"))[0] == 405
