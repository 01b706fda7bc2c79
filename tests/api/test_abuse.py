"""One account, one revoked key or one address must not take what all clients share."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from genlock.api import download_slots, job_watch, jobs, uploads
from genlock.api.problems import Problem
from genlock.api.uploads import FILES_AT_ONCE, FILES_PER_ACCOUNT
from genlock.domain.events import Event
from genlock.domain.job import Delivery, State
from genlock.domain.money import HoldState
from genlock.ports import ApiJobStore, JobVersion
from genlock.web.connections import ABORT
from genlock.web.requests import (
    FIRST_BODIES_BYTES_MAX,
    LARGE_BODIES_BYTES_MAX,
    BodyMemory,
    RequestRefused,
    Reservation,
)
from tests.api.world import MODEL, ApiWorld, Client, running_api
from tests.changes import PATIENCE_SECONDS, poll_until
from tests.databases import new_sqlite

pytestmark = pytest.mark.asyncio(loop_scope="module")


def bearer(client: Client) -> dict[str, str]:
    return {"Authorization": f"Bearer {client.secret}"}


async def test_a_stream_ends_when_its_key_is_revoked(world: ApiWorld) -> None:
    client = await world.client()
    other_key = await world.client(account_id=client.key.account_id)
    async with client.session.get(f"{world.url}/v1/events", headers=bearer(client)) as stream:
        first = (await other_key.order()).json["id"]
        async for line in stream.content:
            if line.startswith(b"data: "):
                assert json.loads(line[6:])["id"] == first
                break
        await world.store.revoke_api_key(client.key.id)
        second = (await other_key.order(wait=60)).json["id"]
        async with asyncio.timeout(PATIENCE_SECONDS):
            rest = await stream.content.read()

    assert second.encode() not in rest


async def test_waiting_requests_of_one_account_leave_room_for_others(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_watch, "WATCHERS_PER_ACCOUNT", 3)
    monkeypatch.setattr(job_watch, "WATCHERS_MAX", 4)
    greedy, other = await world.client(), await world.client()
    streams = [await greedy.session.get(f"{world.url}/v1/events", headers=bearer(greedy)) for _ in range(5)]
    try:
        answer = await other.order(wait=60)
    finally:
        for stream in streams:
            stream.close()

    assert (answer.json["status"], answer.headers["Preference-Applied"]) == ("succeeded", "wait=60")


async def test_many_accounts_that_wait_leave_room_for_some_requests_of_each(world: ApiWorld) -> None:
    watch, taken = job_watch.JobWatch(world.store, world.recorder, lambda: True), Counter[int]()
    async with AsyncExitStack() as closing:
        closing.push_async_callback(watch.close)
        for account in range(40):
            for _ in range(600):
                with suppress(job_watch.TooManyWatchers):
                    closing.enter_context(watch.watching(job_watch.Watcher(account, {})))
                    taken[account] += 1

    assert taken[0] == job_watch.WATCHERS_PER_ACCOUNT
    assert min(taken[account] for account in range(40)) == job_watch.WATCHERS_PER_ACCOUNT_MIN
    assert sum(taken.values()) <= job_watch.WATCHERS_MAX + 40 * job_watch.WATCHERS_PER_ACCOUNT_MIN


async def test_other_requests_are_answered_while_very_many_watched_jobs_are_compared(world: ApiWorld) -> None:
    class AtOnce:
        """A store whose answers need no turn of the event loop."""

        async def api_job_versions(self, ids: Sequence[int]) -> dict[int, JobVersion]:
            return {}

    watch, turns = job_watch.JobWatch(cast(ApiJobStore, AtOnce()), world.recorder, lambda: True), 0
    version = JobVersion(State.RUNNING, Delivery.NONE, HoldState.HELD, late=False)
    jobs = dict.fromkeys(range(10**9, 10**9 + job_watch.COMPARED_AT_ONCE), version)

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    with ExitStack() as closing:
        for _ in range(20):
            closing.enter_context(watch.watching(job_watch.Watcher(1, jobs)))
        await watch.close()  # it would look, too
        counting = asyncio.create_task(count_turns())
        assert await watch._changed_jobs() == []
        counting.cancel()

    assert turns >= 2 * 20


class Trickle:
    """Uploads that have begun and do not go on."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._started = asyncio.Semaphore(0)
        self._stop = asyncio.Event()
        self.uploads: list[asyncio.Task[Any]] = []

    async def begin(self, client: Client, count: int) -> None:
        self.uploads += [
            asyncio.create_task(client.request("POST", "/v1/files", data=self._pieces())) for _ in range(count)
        ]
        for _ in range(count):
            await self._started.acquire()

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield self._content[:10]
        self._started.release()
        await self._stop.wait()
        yield self._content[10:]

    async def end(self) -> list[int]:
        """Let them go on; return their statuses in order. One whose connection was closed has the status 408."""
        self._stop.set()
        answers = await asyncio.gather(*self.uploads, return_exceptions=True)
        return sorted(408 if isinstance(answer, BaseException) else answer.status for answer in answers)


async def test_slow_uploads_of_one_account_leave_room_for_others(world: ApiWorld, png: bytes) -> None:
    slow, other, trickle = await world.client(), await world.client(), Trickle(png)
    await trickle.begin(slow, FILES_AT_ONCE)
    answer = await other.request("POST", "/v1/files", data=png)

    assert answer.status == 201
    assert await trickle.end() == [201] * FILES_PER_ACCOUNT + [429] * (FILES_AT_ONCE - FILES_PER_ACCOUNT)


async def test_slow_uploads_of_several_accounts_give_way(
    world: ApiWorld, png: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    trickle, other = Trickle(png), await world.client()
    for _ in range(FILES_AT_ONCE // FILES_PER_ACCOUNT):
        await trickle.begin(await world.client(), FILES_PER_ACCOUNT)
    assert (await other.request("POST", "/v1/files", data=png)).status == 503, "they may just have begun"
    monkeypatch.setattr(uploads, "SLOW_SECONDS", 0.0)
    answer = await other.request("POST", "/v1/files", data=png)

    assert answer.status == 201
    assert await trickle.end() == [201] * (FILES_AT_ONCE - 1) + [408]
    assert (await other.request("POST", "/v1/files", data=png)).status == 201


async def test_large_bodies_of_one_account_leave_memory_for_others(world: ApiWorld) -> None:
    greedy, other = await world.client(), await world.client()
    json_type = {"Content-Type": "application/json"}
    started, stop = asyncio.Semaphore(0), asyncio.Event()

    async def trickle() -> AsyncIterator[bytes]:
        for _ in range(24):
            yield b" " * 10_000
        started.release()
        await stop.wait()
        yield b"{}"

    held = [
        asyncio.create_task(greedy.request("POST", "/v1/quote", data=trickle(), headers=json_type)) for _ in range(40)
    ]
    for _ in held:
        await started.acquire()
    await poll_until(lambda: any(request.done() for request in held))
    answer = await other.request("POST", "/v1/quote", data=b" " * 200_000 + b"{}", headers=json_type)
    stop.set()
    await asyncio.gather(*held, return_exceptions=True)

    assert answer.status == 422, "it was read, and names no model"


def _form(content: bytes) -> tuple[bytes, dict[str, str]]:
    head = b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n'
    return head + content, {"Content-Type": "multipart/form-data; boundary=b"}


def _json(content: bytes) -> tuple[bytes, dict[str, str]]:
    return content, {"Content-Type": "application/json"}


@pytest.mark.parametrize(("path", "body_of"), [("/v1/quote", _json), ("/v1/videos", _form)])
async def test_bodies_of_usual_size_that_never_end_hold_little_memory_too(
    world: ApiWorld, path: str, body_of: Callable[[bytes], tuple[bytes, dict[str, str]]]
) -> None:
    greedy, stop = await world.client(), asyncio.Event()
    body, content_type = body_of(b" " * 60_000)

    async def trickle() -> AsyncIterator[bytes]:
        yield body
        await stop.wait()

    count = 50  # three megabytes; a client has a quarter of eight
    held = [
        asyncio.create_task(greedy.request("POST", path, data=trickle(), headers=content_type)) for _ in range(count)
    ]
    await poll_until(lambda: any(request.done() for request in held))
    stop.set()
    answers = await asyncio.gather(*held, return_exceptions=True)
    refused = sum(isinstance(answer, BaseException) or answer.status == 503 for answer in answers)

    assert 0 < refused < count


async def test_many_clients_that_send_slowly_hold_a_bounded_memory_and_leave_room_for_a_body_of_each() -> None:
    memory, taken = BodyMemory(), Counter[str]()
    for client in map(str, range(100)):
        for _ in range(200):
            with suppress(RequestRefused):
                memory.reserve(60_000, authenticated=True, sender=client)
                taken[client] += 60_000
    memory.reserve(LARGE_BODIES_BYTES_MAX, authenticated=True)

    assert taken["0"] > LARGE_BODIES_BYTES_MAX / 5, "one client alone has a quarter"
    assert min(taken.values()) == 60_000
    assert len(taken) == 100
    assert sum(taken.values()) < LARGE_BODIES_BYTES_MAX + 100 * 60_000


async def test_first_bodies_of_very_many_clients_have_a_limit_together() -> None:
    memory, taken = BodyMemory(), 0
    for client in range(1_000):
        with suppress(RequestRefused):
            memory.reserve(250_000, authenticated=True, sender=str(client))
            taken += 250_000

    assert taken == FIRST_BODIES_BYTES_MAX


async def test_a_body_that_grows_is_the_first_one_of_its_client_to_its_end() -> None:
    memory = BodyMemory()
    for number in range(100):
        memory.reserve(250_000, authenticated=True, sender=str(number))
    growing, second = Reservation(memory, "late"), Reservation(memory, "late")
    for size in range(8_000, 250_000, 8_000):
        growing.hold(size, authenticated=True)
    with pytest.raises(RequestRefused):
        second.hold(8_000, authenticated=True)
    growing.release()
    second.hold(8_000, authenticated=True)


async def test_the_megabytes_that_an_account_sends_a_day_are_limited(
    world: ApiWorld, png: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.api.uploads.MEGABYTE", len(png) / 900)  # a picture counts as 900 of 2,000 megabytes
    client, other = await world.client(), await world.client()
    answers = [await client.request("POST", "/v1/files", data=png) for _ in range(4)]

    assert [answer.status for answer in answers] == [201, 201, 429, 429]
    assert (answers[2].json["code"], int(answers[2].headers["Retry-After"]) > 60) == ("too_many_files", True)
    assert (await other.request("POST", "/v1/files", data=png)).status == 201
    limit = await world.store.take_block(f"upload-mb:{client.key.account_id}", 1, 43.2, 1)
    assert limit.wait > 600, "a limit that is idle for ten minutes is pruned, and all permits would be back"


async def test_downloads_of_one_account_are_counted_also_by_link(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = await world.client(), await world.client()
    [result] = (await client.order(wait=60)).json["results"]
    [foreign] = (await other.order(wait=60)).json["results"]
    monkeypatch.setattr(download_slots, "DOWNLOADS_PER_ACCOUNT", 0)
    image = {"model": MODEL, "prompt": "a cat"}
    before = await world.available(client)
    refused = await client.post("/v1/images/generations", image)
    assert (refused.status, await world.available(client)) == (429, before), "nothing is ordered that finds no room"
    for path in (result["url"], result["link"]):
        refused = await client.get(path)
        assert (refused.status, refused.json["code"]) == (429, "too_many_downloads")
    monkeypatch.setattr(download_slots, "DOWNLOADS_PER_ACCOUNT", 1)
    for _ in range(3):
        assert (await client.post("/v1/images/generations", image)).status == 200
    for _ in range(3):  # a download that has ended does not count
        assert (await client.get(result["url"])).status == 200
    assert (await other.get(foreign["link"])).status == 200


async def test_downloads_that_begin_at_the_same_time_are_counted_before_anything_is_read(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each holds up to a megabyte, and a client may have hundreds of connections."""
    client = await world.client()
    [result] = (await client.order(wait=60)).json["results"]
    read, begun, is_open = world.media.read, asyncio.Semaphore(0), asyncio.Event()

    async def slow(key: str, start: int, length: int) -> AsyncIterator[bytes]:
        begun.release()
        await is_open.wait()
        async for chunk in read(key, start, length):
            yield chunk

    monkeypatch.setattr(world.media, "read", slow)
    monkeypatch.setattr(download_slots, "DOWNLOADS_PER_ACCOUNT", 2)
    asked = [asyncio.create_task(client.get(result["url"])) for _ in range(5)]
    for _ in range(2):
        await begun.acquire()
    await poll_until(lambda: sum(request.done() for request in asked) == 3)
    is_open.set()
    assert sorted([(await request).status for request in asked]) == [200, 200, 429, 429, 429]
    assert (await client.get(result["url"])).status == 200, "what has ended does not count"


async def test_many_slow_readers_together_hold_few_downloads_and_leave_room_for_each_account() -> None:
    slots, taken = download_slots.DownloadSlots(), Counter[int]()
    held = []
    for account in range(60):
        for _ in range(200):
            with suppress(Problem):
                held.append(slots.take(account))
                taken[account] += 1
    assert taken[0] == download_slots.DOWNLOADS_PER_ACCOUNT, "one account alone has all of its room"
    assert min(taken[account] for account in range(60)) == download_slots.DOWNLOADS_PER_ACCOUNT_MIN
    assert len(held) <= download_slots.DOWNLOADS_MAX + 60 * download_slots.DOWNLOADS_PER_ACCOUNT_MIN
    held.clear()
    assert not slots._downloads


async def test_a_download_of_which_nothing_is_taken_ends_and_leaves_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download_slots, "STALLED_SECONDS", 0.05)
    slots, gone, sent = download_slots.DownloadSlots(), asyncio.Event(), []

    async def content() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"piece"

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) > 2 and not gone.is_set():
            await asyncio.Event().wait()

    with slots.take(7) as slot:
        answer = slot.answer(content())
    scope = {"type": "http", "asgi": {"spec_version": "2.3"}, "extensions": {ABORT: gone.set}}
    async with asyncio.timeout(20):
        await answer(scope, receive, send)
    assert not slots._downloads


async def test_cancellations_at_the_same_time_keep_the_limit_of_late_ones(tmp_path: Path) -> None:
    """The operator pays for what is cancelled after its submit."""
    async with running_api(f"sqlite:///{new_sqlite(tmp_path)}", tmp_path / "media") as world:
        world.kie.service.hold_tasks()
        client = await world.client()
        orders = [(await client.order()).json["id"] for _ in range(12)]
        await world.recorder.until(Event.SUBMIT_OK, times=len(orders))
        answers = await asyncio.gather(*(client.post(f"/v1/jobs/{order}/cancel") for order in orders for _ in range(2)))

        cancelled = {answer.json["id"] for answer in answers if answer.status == 202}
        assert {answer.status for answer in answers} == {202, 429}
        assert len(cancelled) == await world.store.late_cancels(client.key.account_id) == 5


async def test_orders_that_cost_nothing_because_they_are_cancelled_at_once_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their rows stay, with inputs of up to a hundred kilobytes. All that may run at the same time can be cancelled."""
    monkeypatch.setattr(jobs, "EARLY_CANCELS", 2)
    database = f"sqlite:///{new_sqlite(tmp_path)}"
    async with running_api(database, tmp_path / "media", speed=1.0, api_running_max=3) as world:
        client, other = await world.client(), await world.client()
        await world.engine.stop()  # so that nothing is submitted
        statuses, last = [], ""
        for _ in range(5):
            last = (await client.order()).json["id"]
            answer = await client.post(f"/v1/jobs/{last}/cancel")
            statuses.append((answer.status, answer.json.get("code")))
        assert statuses == [(202, None)] * 3 + [(429, "too_many_cancels")] * 2
        assert (await client.get(f"/v1/jobs/{last}")).json["status"] == "queued"
        limit = await world.store.take_block(f"early-cancel:{client.key.account_id}", 1, 60.0, 1)
        assert limit.wait > 100, "a limit that is idle for ten minutes is pruned, and all permits would be back"
        order = (await other.order()).json["id"]
        assert (await other.post(f"/v1/jobs/{order}/cancel")).status == 202
        assert (await other.post(f"/v1/jobs/{order}/cancel")).status == 202, "a repetition takes none"


async def test_an_account_sends_few_events_that_no_order_caused(world: ApiWorld) -> None:
    client, other = await world.client(), await world.client()
    now = datetime.now(UTC)
    time = {"since": (now - timedelta(hours=1)).isoformat(), "until": now.isoformat()}
    for path, body in (("test", None), ("redeliver", time)):
        paths = []
        for caller in (client, other):
            created = (await caller.post("/v1/webhooks", {"url": "https://example.org/hook"})).json
            paths.append(f"/v1/webhooks/{created['id']}/{path}")
        statuses = [(await client.post(paths[0], body)).status for _ in range(12)]
        assert statuses == [202] * 10 + [429] * 2, path
        assert (await other.post(paths[1], body)).status == 202, path
