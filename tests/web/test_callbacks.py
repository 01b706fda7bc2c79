"""The callback endpoint: what is stored, what is refused, and that no acknowledged callback is lost."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from time import time

import aiohttp
import pytest
import yarl

from genlock.domain.errors import StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.engine import unauthenticated
from genlock.providers.kie.bundle import verify_callback
from genlock.providers.kie.signature import SIGNATURE, TIMESTAMP, sign
from genlock.web.callbacks import BODY_BYTES_MAX, UNAUTHENTICATED_BYTES_MAX, CallbackEndpoint
from genlock.web.routes import make_web
from genlock.web.server import serving
from tests.engine.world import idle
from tests.web.asgi import request
from tests.web.conftest import KEY, TASK, Instance

URL = "https://tempfile.aiquickdraw.com/p/1.png"
DONE = json.dumps(
    {"code": 200, "data": {"taskId": TASK, "state": "success", "resultJson": json.dumps({"resultUrls": [URL]})}}
).encode()


async def state(instance: Instance) -> State:
    job = await instance.store.job(instance.job_id)
    assert job is not None
    return job.state


async def test_a_callback_to_the_callback_url_of_a_job_ends_the_job(instance: Instance) -> None:
    status, body = await request(instance.web, instance.path, DONE)
    assert (status, json.loads(body)) == (200, {"code": 200, "msg": "success"})
    await idle(instance.engine)
    job = await instance.store.job(instance.job_id)
    assert job is not None
    assert (job.state, job.delivery) == (State.SUCCEEDED, Delivery.DELIVERED)
    assert len(instance.chat.showing(URL)) == 1


@pytest.mark.parametrize(
    "path", ["/callbacks/kie", "/callbacks/kie/", "/callbacks/kie/1.guessed", "/callbacks/kie/é/x"]
)
async def test_a_callback_without_the_secret_of_the_job_is_stored_but_not_trusted(
    instance: Instance, path: str
) -> None:
    status, _ = await request(instance.web, path, DONE)
    await idle(instance.engine)
    assert status == 200
    assert await state(instance) is State.RUNNING
    assert [row[1:] for row in instance.inbox()] == [(DONE, "matched", None)]


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
async def test_an_unreadable_callback_is_stored(instance: Instance, body: bytes) -> None:
    paths = [instance.path] if len(body) > UNAUTHENTICATED_BYTES_MAX else [instance.path, "/callbacks/kie"]
    for path in paths:
        assert (await request(instance.web, path, body))[0] == 200
    await idle(instance.engine)
    assert [row[1:3] for row in instance.inbox()] == [(body, "unreadable")] * len(paths)
    assert await state(instance) is State.RUNNING


@pytest.mark.parametrize(
    "path", ["/callbacks/kie", "/callbacks/kie/", "/callbacks/kie/x.y", "/callbacks/kie/1.guessed"]
)
@pytest.mark.parametrize("declared", [True, False])
async def test_an_unauthenticated_callback_has_a_lower_size_limit(
    instance: Instance,
    path: str,
    declared: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """A sender without a job's secret cannot fill the store."""
    headers = {"Content-Length": str(UNAUTHENTICATED_BYTES_MAX + 1)} if declared else {}
    assert (await request(instance.web, path, b"a" * UNAUTHENTICATED_BYTES_MAX))[0] == 200
    assert (await request(instance.web, path, b"a" * (UNAUTHENTICATED_BYTES_MAX + 1), headers))[0] == 413
    assert len(instance.inbox()) == 1
    assert len(instance.recorder.of(Event.CALLBACK_REFUSED, status=413)) == 1


async def test_the_number_of_unauthenticated_callbacks_is_limited(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unauthenticated, "UNAUTHENTICATED_MAX", 3)
    tokens = ["", "/", "/x.y", "/1.guessed", ""]
    bodies = [json.dumps({"data": {"taskId": f"t{number}"}}).encode() for number in range(4)]
    statuses = [
        (await request(instance.web, f"/callbacks/kie{token}", body))[0]
        for token, body in zip(tokens, [*bodies, b"x"], strict=True)
    ]
    assert statuses == [200, 200, 200, 429, 429]
    assert len(instance.inbox()) == 3
    assert len(instance.recorder.of(Event.CALLBACK_REFUSED, status=429)) == 2
    assert (await request(instance.web, instance.path, b"x"))[0] == 200, "the secret of a job authenticates"
    assert (await request(instance.signed, "/callbacks/kie", DONE, signature()))[0] == 200, "a signature authenticates"


async def test_callbacks_at_the_same_time_do_not_exceed_the_limit(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unauthenticated, "UNAUTHENTICATED_MAX", 20)
    answers = await asyncio.gather(
        *(request(instance.web, "/callbacks/kie", b'{"data": {"taskId": "t%d"}}' % number) for number in range(100))
    )
    statuses = Counter(status for status, *_ in answers)
    assert len(instance.inbox()) == statuses[200] == 20
    assert statuses[429] == 80


async def test_a_callback_that_was_stored_while_the_store_counted_is_counted(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unauthenticated, "UNAUTHENTICATED_MAX", 1)
    counting, answer = asyncio.Event(), asyncio.Event()

    async def count_slowly_at_first(_seconds: float, _limit: int) -> int:
        if not counting.is_set():
            counting.set()
            await answer.wait()
        return 0

    monkeypatch.setattr(instance.engine.ctx.store, "count_unauthenticated_callbacks", count_slowly_at_first)
    slow = asyncio.create_task(request(instance.web, "/callbacks/kie", b"slow"))
    await counting.wait()
    assert (await request(instance.web, "/callbacks/kie", b"quick"))[0] == 200
    answer.set()
    assert (await slow)[0] == 429


async def test_unauthenticated_callbacks_are_refused_without_a_count_for_a_second_once_there_are_too_many(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unauthenticated, "UNAUTHENTICATED_MAX", 0)
    counts = Counter[str]()

    async def count_unauthenticated(_: float, limit: int) -> int:
        counts["read"] += 1
        return limit

    monkeypatch.setattr(instance.engine.ctx.store, "count_unauthenticated_callbacks", count_unauthenticated)
    assert [(await request(instance.web, "/callbacks/kie", DONE))[0] for _ in range(5)] == [429] * 5
    assert counts["read"] == 1
    assert (await request(instance.web, instance.path, b"x"))[0] == 200, "the secret of a job authenticates"


async def test_a_signature_that_all_customers_of_a_provider_share_does_not_authenticate(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fal, any customer could send its own signed callback here, again and again."""
    monkeypatch.setattr(unauthenticated, "UNAUTHENTICATED_MAX", 3)
    endpoint = CallbackEndpoint(
        engine=instance.engine, provider="kie", verify=verify_callback(KEY), shared_signature=True
    )
    web = make_web([endpoint])
    statuses = [
        (await request(web, f"/callbacks/kie{token}", DONE, signature()))[0]
        for token in ("", "/1.guessed", "/x.y", "", "/")
    ]
    assert statuses == [200, 200, 200, 429, 429]
    assert (await request(web, instance.path, DONE, signature()))[0] == 200, "the secret of a job authenticates"


async def test_callbacks_that_name_a_known_task_count_as_unauthenticated(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unauthenticated, "UNAUTHENTICATED_MAX", 3)
    statuses = []
    for _ in range(6):
        statuses.append((await request(instance.web, "/callbacks/kie", DONE))[0])
        await idle(instance.engine)
    assert statuses == [200, 200, 200, 429, 429, 429]
    assert [row[1:3] for row in instance.inbox()] == [(DONE, "matched"), (b"", "done"), (b"", "done")]
    assert (await request(instance.web, instance.path, DONE))[0] == 200, "the secret of the job authenticates"


async def test_a_signed_callback_has_the_higher_size_limit(instance: Instance) -> None:
    body = DONE + b" " * UNAUTHENTICATED_BYTES_MAX
    assert (await request(instance.signed, "/callbacks/kie", body, signature()))[0] == 200


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_over_the_limit_is_refused(instance: Instance, declared: bool) -> None:  # noqa: FBT001 - a parameter of the test
    body = b"a" * (BODY_BYTES_MAX + 1)
    headers = {"Content-Length": str(len(body))} if declared else {}
    chunks = [body[:700_000], body[700_000:]]
    assert (await request(instance.web, instance.path, chunks, headers))[0] == 413
    assert instance.inbox() == []


async def test_an_incomplete_body_is_refused(instance: Instance) -> None:
    assert (await request(instance.web, instance.path, []))[0] == 400
    assert instance.inbox() == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_other_methods_than_post_are_refused(instance: Instance, method: str) -> None:
    assert (await request(instance.web, instance.path, DONE, method=method))[0] == 405


@pytest.mark.parametrize("error", [StoreUnavailable(), RuntimeError("unexpected")])
async def test_a_callback_that_was_not_stored_is_not_acknowledged(
    instance: Instance, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(instance.store, "end_job", fail)
    monkeypatch.setattr(instance.store, "store_callback", fail)
    assert (await request(instance.web, instance.path, DONE))[0] == 503
    monkeypatch.undo()
    assert (await request(instance.web, instance.path, DONE))[0] == 200, "the repeated callback is acknowledged"


# signatures


def signature(task: str = TASK, age: int = 0, key: str = KEY) -> dict[str, str]:
    then = int(time()) - age
    return {TIMESTAMP: str(then), SIGNATURE: sign(task, then, key)}


@pytest.mark.parametrize("without_secret", [False, True])
async def test_with_a_webhook_key_a_signed_callback_is_stored(instance: Instance, without_secret: bool) -> None:  # noqa: FBT001 - a parameter of the test
    path = "/callbacks/kie" if without_secret else instance.path
    assert (await request(instance.signed, path, DONE, signature()))[0] == 200
    assert len(instance.inbox()) == 1


@pytest.mark.parametrize("without_secret", [False, True])
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
async def test_with_a_webhook_key_every_other_callback_is_refused(
    instance: Instance,
    headers: Callable[[], dict[str, str]],
    without_secret: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """The headers are signed when the test runs: a signature is valid for some minutes only."""
    path = "/callbacks/kie" if without_secret else instance.path
    assert (await request(instance.signed, path, DONE, headers()))[0] == 401
    assert instance.inbox() == []
    assert len(instance.recorder.of(Event.CALLBACK_REFUSED, status=401)) == 1, "reported to the operator"


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b'{"data":{}}', b"[" * 50_000])
async def test_with_a_webhook_key_a_body_without_a_task_is_refused(instance: Instance, body: bytes) -> None:
    assert (await request(instance.signed, instance.path, body, signature()))[0] == 401


async def test_a_callback_is_not_acknowledged_if_its_signature_cannot_be_checked(instance: Instance) -> None:
    async def unavailable(_: Mapping[str, str], __: bytes, ___: float) -> bool:
        raise OSError("the key server does not answer")

    web = make_web([CallbackEndpoint(engine=instance.engine, provider="kie", verify=unavailable)])
    assert (await request(web, instance.path, DONE))[0] == 503
    assert instance.inbox() == []


# with the real server


async def test_callbacks_are_received_by_the_real_server(instance: Instance) -> None:
    async with serving(instance.web, "127.0.0.1", 0) as url, aiohttp.ClientSession() as session:

        async def post(path: str, body: bytes) -> int:
            async with session.post(yarl.URL(url + path, encoded=True), data=BytesIO(body)) as response:
                return response.status

        assert await post(instance.path, DONE) == 200
        assert [await post(f"/callbacks/kie{path}", b"x") for path in ("", "/", "/%00", "/%ff%fe", "/%2e%2e/x")] == [
            200
        ] * 5
        with suppress(aiohttp.ClientError):  # the server does not wait for the rest
            assert await post(instance.path, b"a" * 5_000_000) == 413
    assert len(instance.inbox()) == 6


async def test_an_unfinished_request_does_not_delay_the_stop(
    instance: Instance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.web.server.STOP_SECONDS", 1)
    async with asyncio.timeout(30):
        async with serving(instance.web, "127.0.0.1", 0) as url:
            address = yarl.URL(url)
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(b"POST /callbacks/kie HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
            await writer.drain()
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                assert answer.status == 404  # other requests are served meanwhile
        writer.close()
        await reader.read()


async def test_a_body_that_takes_too_long_is_refused(instance: Instance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.web.requests.BODY_SECONDS_MAX", 0.1)
    async with serving(instance.web, "127.0.0.1", 0) as url:
        address = yarl.URL(url)
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(b"POST /callbacks/kie HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        assert (await reader.readline()).startswith(b"HTTP/1.1 408")
        writer.close()
