"""The callback doors: what is kept, what is refused, and that nothing is ever lost on the doorstep."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from time import time

import aiohttp
import pytest
import yarl

from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.engine import collect
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, sign
from genlock.web.callbacks import BODY_BYTES_MAX, STRANGER_BYTES_MAX
from genlock.web.server import serving
from tests.engine.world import idle
from tests.web.asgi import request
from tests.web.conftest import KEY, TASK, House

URL = "https://tempfile.aiquickdraw.com/p/1.png"
DONE = json.dumps(
    {"code": 200, "data": {"taskId": TASK, "state": "success", "resultJson": json.dumps({"resultUrls": [URL]})}}
).encode()


async def state(house: House) -> State:
    job = await house.store.job(house.job_id)
    assert job is not None
    return job.state


async def test_a_callback_to_the_jobs_own_address_ends_it(house: House) -> None:
    status, body = await request(house.web, house.path, DONE)
    assert (status, json.loads(body)) == (200, {"code": 200, "msg": "success"})
    await idle(house.engine)
    job = await house.store.job(house.job_id)
    assert job is not None
    assert (job.state, job.delivery) == (State.SUCCEEDED, Delivery.DELIVERED)
    assert len(house.chat.showing(URL)) == 1


@pytest.mark.parametrize(
    "path", ["/callbacks/kie", "/callbacks/kie/", "/callbacks/kie/1.guessed", "/callbacks/kie/é/x"]
)
async def test_anywhere_else_it_is_only_a_hint(house: House, path: str) -> None:
    status, _ = await request(house.web, path, DONE)
    await idle(house.engine)
    assert status == 200
    assert await state(house) is State.RUNNING
    assert [row[1:] for row in house.inbox()] == [(DONE, "matched", house.job_id)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b"null",
        b"[]",
        b"[1]",
        b'{"data":null}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\x00",
        b"a" * BODY_BYTES_MAX,
    ],
)
async def test_what_nobody_understands_is_kept(house: House, body: bytes) -> None:
    paths = [house.path] if len(body) > STRANGER_BYTES_MAX else [house.path, "/callbacks/kie"]
    for path in paths:
        assert (await request(house.web, path, body))[0] == 200
    await idle(house.engine)
    assert [row[1:3] for row in house.inbox()] == [(body, "unreadable")] * len(paths)
    assert await state(house) is State.RUNNING


@pytest.mark.parametrize(
    "path", ["/callbacks/kie", "/callbacks/kie/", "/callbacks/kie/x.y", "/callbacks/kie/1.guessed"]
)
@pytest.mark.parametrize("declared", [True, False])
async def test_a_stranger_is_heard_for_less(house: House, path: str, declared: bool) -> None:  # noqa: FBT001 - a case
    """Whoever does not know a job's secret cannot fill the store."""
    headers = {"Content-Length": str(STRANGER_BYTES_MAX + 1)} if declared else {}
    assert (await request(house.web, path, b"a" * STRANGER_BYTES_MAX))[0] == 200
    assert (await request(house.web, path, b"a" * (STRANGER_BYTES_MAX + 1), headers))[0] == 413
    assert len(house.inbox()) == 1
    assert len(house.recorder.of(Event.CALLBACK_REFUSED, status=413)) == 1


async def test_strangers_cannot_fill_the_store(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "UNAUTHENTICATED_MAX", 3)
    tokens = ["", "/", "/x.y", "/1.guessed", ""]
    bodies = [json.dumps({"data": {"taskId": f"t{number}"}}).encode() for number in range(4)]
    said = [
        (await request(house.web, f"/callbacks/kie{token}", body))[0]
        for token, body in zip(tokens, [*bodies, b"x"], strict=True)
    ]
    assert said == [200, 200, 200, 429, 429]
    assert len(house.inbox()) == 3
    assert len(house.recorder.of(Event.CALLBACK_REFUSED, status=429)) == 2
    assert (await request(house.web, house.path, b"x"))[0] == 200, "one who knows the secret is no stranger"
    assert (await request(house.signed, "/callbacks/kie", DONE, signature()))[0] == 200, "nor is one who signs"


async def test_whoever_signs_is_no_stranger(house: House) -> None:
    body = DONE + b" " * STRANGER_BYTES_MAX
    assert (await request(house.signed, "/callbacks/kie", body, signature()))[0] == 200


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_over_the_limit_is_refused(house: House, declared: bool) -> None:  # noqa: FBT001 - a case
    body = b"a" * (BODY_BYTES_MAX + 1)
    headers = {"Content-Length": str(len(body))} if declared else {}
    chunks = [body[:700_000], body[700_000:]]
    assert (await request(house.web, house.path, chunks, headers))[0] == 413
    assert house.inbox() == []


async def test_a_body_that_breaks_off_is_not_taken_for_whole(house: House) -> None:
    assert (await request(house.web, house.path, []))[0] == 400
    assert house.inbox() == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_only_posts_are_callbacks(house: House, method: str) -> None:
    assert (await request(house.web, house.path, DONE, method=method))[0] == 405


@pytest.mark.parametrize("error", [StoreUnavailable(), RuntimeError("unforeseen")])
async def test_what_cannot_be_kept_is_not_acknowledged(
    house: House, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(house.store, "end_job", fail)
    monkeypatch.setattr(house.store, "store_callback", fail)
    assert (await request(house.web, house.path, DONE))[0] == 503
    monkeypatch.undo()
    assert (await request(house.web, house.path, DONE))[0] == 200, "and the next try is"


# signatures


def signature(task: str = TASK, age: int = 0, key: str = KEY) -> dict[str, str]:
    then = int(time()) - age
    return {TIMESTAMP: str(then), SIGNATURE: sign(task, then, key)}


@pytest.mark.parametrize("open_door", [False, True])
async def test_with_a_key_a_signed_callback_is_taken(house: House, open_door: bool) -> None:  # noqa: FBT001 - a case
    path = "/callbacks/kie" if open_door else house.path
    assert (await request(house.signed, path, DONE, signature()))[0] == 200
    assert len(house.inbox()) == 1


@pytest.mark.parametrize("open_door", [False, True])
@pytest.mark.parametrize(
    "headers",
    [
        dict,
        lambda: signature(key="another"),
        lambda: signature(task="another"),
        lambda: signature(age=301),
        lambda: signature(age=-400),
        lambda: {TIMESTAMP: str(int(time()))},
        lambda: {SIGNATURE: signature()[SIGNATURE]},
        lambda: {TIMESTAMP: "now", SIGNATURE: "x"},
    ],
    ids=["nothing", "key", "task", "old", "early", "no signature", "no time", "nonsense"],
)
async def test_with_a_key_everything_else_is_refused(
    house: House,
    headers: Callable[[], dict[str, str]],
    open_door: bool,  # noqa: FBT001 - a case
) -> None:
    """Signed when the test runs, not when it is collected: the window is open for minutes only."""
    path = "/callbacks/kie" if open_door else house.path
    assert (await request(house.signed, path, DONE, headers()))[0] == 401
    assert house.inbox() == []
    assert len(house.recorder.of(Event.CALLBACK_REFUSED, status=401)) == 1, "the operator can see it"


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b'{"data":{}}', b"[" * 50_000])
async def test_with_a_key_a_body_that_names_no_task_is_refused(house: House, body: bytes) -> None:
    assert (await request(house.signed, house.path, body, signature()))[0] == 401


# over a real socket


async def test_the_door_stands_in_a_real_server(house: House) -> None:
    async with serving(house.web, "127.0.0.1", 0) as url, aiohttp.ClientSession() as session:

        async def post(path: str, body: bytes) -> int:
            async with session.post(yarl.URL(url + path, encoded=True), data=BytesIO(body)) as response:
                return response.status

        assert await post(house.path, DONE) == 200
        assert [await post(f"/callbacks/kie{path}", b"x") for path in ("", "/", "/%00", "/%ff%fe", "/%2e%2e/x")] == [
            200
        ] * 5
        with suppress(aiohttp.ClientError):  # the rest of it is not waited for
            assert await post(house.path, b"a" * 5_000_000) == 413
    assert len(house.inbox()) == 6


async def test_somebody_who_never_finishes_a_sentence_does_not_hold_up_a_stop(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.web.server.STOP_SECONDS", 1)
    async with asyncio.timeout(10):
        async with serving(house.web, "127.0.0.1", 0) as url:
            address = yarl.URL(url)
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(b"POST /callbacks/kie HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
            await writer.drain()
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                assert answer.status == 404  # it has been served meanwhile
        writer.close()
        await reader.read()


async def test_a_body_that_takes_too_long_is_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.web.callbacks.BODY_SECONDS_MAX", 0.1)
    async with serving(house.web, "127.0.0.1", 0) as url:
        address = yarl.URL(url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"POST /callbacks/kie HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()
