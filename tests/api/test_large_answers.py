"""Jobs with very long inputs: lists of them come in small pages, and clients that do not read them take no memory."""

import asyncio
import gc
import json
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import pytest
from starlette.responses import Response

from genlock.api import job_pages, large_answers
from genlock.api.job_pages import LIST_STEP, SMALL_JOB_CHARACTERS, STREAM_STEP, jobs_by_id, newest_jobs
from genlock.api.job_watch import Watcher, version_of
from genlock.api.problems import Problem
from genlock.api.request_limits import RequestLimits
from genlock.domain.job import Job
from genlock.ports import ApiJobStore
from tests.api.world import ApiWorld, Client
from tests.changes import poll_until

pytestmark = pytest.mark.asyncio(loop_scope="module")
LARGE: dict[str, Any] = {"model": "nano-banana-2-lite", "input": {"prompt": "a" * 20_000}}
#: so that the answer of a list of them is large
COUNT = 5


async def client_with_large_jobs(world: ApiWorld, count: int = COUNT) -> Client:
    client = await world.client()
    for _ in range(count):
        assert (await client.order(wait=15, **LARGE)).status == 202
    return client


async def open_list(client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for a list and do not read the answer."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1000)
    writer.write(f"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.secret}\r\n\r\n".encode())
    return reader, writer


async def test_a_list_of_large_jobs_ends_early_and_its_pages_have_all_of_them(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await client_with_large_jobs(world)
    whole = [job["id"] for job in (await client.get("/v1/jobs")).json["data"]]
    monkeypatch.setattr(job_pages, "LIST_CHARACTERS_MAX", 30_000)
    monkeypatch.setattr(job_pages, "LIST_STEP", 2)
    found: list[str] = []
    sizes: list[int] = []
    more = ""
    while not sizes or more:
        page = (await client.get(f"/v1/jobs?limit=100{more}")).json
        found += [job["id"] for job in page["data"]]
        sizes.append(len(page["data"]))
        more = f"&cursor={page['next_cursor']}" if page["next_cursor"] else ""

    assert (found, sizes) == (whole, [2, 2, 1])


async def test_lists_of_jobs_and_of_videos_wait_for_the_same_slot_of_their_account(world: ApiWorld) -> None:
    client, other = await world.client(), await world.client()
    async with world.api._parts.list_slots.take(client.key.account_id):
        lists = [asyncio.create_task(client.get(path)) for path in ("/v1/jobs", "/v1/videos")]
        assert (await other.get("/v1/jobs")).status == (await other.get("/v1/videos")).status == 200
        assert not any(waiting.done() for waiting in lists)
    assert [(await answer).status for answer in lists] == [200, 200]


async def test_an_answer_takes_permits_by_its_size(world: ApiWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await client_with_large_jobs(world)
    taken = []
    take, charge = RequestLimits.take, RequestLimits.charge

    async def noting_take(limits: RequestLimits, key_id: int, permits: int = 1) -> dict[str, str]:
        taken.append(permits)
        return await take(limits, key_id, permits)

    async def noting_charge(limits: RequestLimits, key_id: int, permits: int) -> dict[str, str]:
        taken.append(permits)
        return await charge(limits, key_id, permits)

    monkeypatch.setattr(RequestLimits, "take", noting_take)
    monkeypatch.setattr(RequestLimits, "charge", noting_charge)
    await client.get("/v1/jobs")
    await client.get("/v1/jobs?limit=1")
    await client.get("/v1/balance")

    assert taken == [1, 10, 1, 2, 1]


async def test_a_large_answer_is_sent_however_few_permits_its_key_has_and_later_requests_wait_for_them(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await client_with_large_jobs(world)
    limits = world.api._parts.limits
    for name, value in (("_burst", 2), ("_interval", 10.0), ("_block_size", 1), ("_blocks", OrderedDict())):
        monkeypatch.setattr(limits, name, value)
    large = await client.get("/v1/jobs")
    next_one = await client.get("/v1/balance")

    assert (large.status, len(large.json["data"])) == (200, COUNT)
    assert large.headers["RateLimit"] == '"requests";r=0;t=20'
    assert (next_one.status, next_one.code) == (429, "too_many_requests")
    assert 10 < int(next_one.headers["Retry-After"]) <= 30


async def test_an_account_that_does_not_read_large_answers_takes_only_its_share_of_their_memory(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_answers, "LARGE_ANSWERS_BYTES_MAX", 500_000)
    monkeypatch.setattr(large_answers, "PIECE_BYTES", 1000)
    slow, other = await client_with_large_jobs(world), await client_with_large_jobs(world)
    begun, go_on = asyncio.Event(), asyncio.Event()
    send = large_answers._InPieces._send

    async def slowly(answer: large_answers._InPieces, *arguments: object) -> None:
        begun.set()
        await go_on.wait()
        await send(answer, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(large_answers._InPieces, "_send", slowly)
    first = asyncio.create_task(slow.get("/v1/jobs"))
    await begun.wait()
    refused = await slow.get("/v1/jobs")
    others = asyncio.create_task(other.get("/v1/jobs"))
    assert (await slow.get("/v1/jobs?limit=1")).status == 200, "a small answer needs no room"
    go_on.set()

    assert (refused.status, refused.code) == (503, "unavailable")
    assert [(await answer).status for answer in (first, others)] == [200, 200]
    assert (await slow.get("/v1/jobs")).status == 200, "what was read does not count"


async def test_many_accounts_that_read_slowly_leave_room_for_a_large_answer_of_each() -> None:
    answers, accounts, megabyte = large_answers.LargeAnswers(), range(80), Response(b"x" * 1_000_000)
    held: dict[int, list[Response]] = {account: [] for account in accounts}
    for account in accounts:
        with suppress(Problem):
            while True:
                held[account].append(answers.reserve_memory(megabyte, account))

    assert len(held[0]) == 4
    assert all(held[account] for account in range(40))
    assert answers._held.total() == large_answers.FIRST_ANSWERS_BYTES_MAX

    async def gone(*_: object) -> Any:
        raise ConnectionError

    for answer in chain(*held.values()):
        with pytest.raises(ConnectionError):
            await answer({}, gone, gone)
    assert not answers._held


async def test_a_client_that_does_not_read_a_large_answer_loses_its_connection(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_answers, "READ_SECONDS_MAX", 0.2)
    never = asyncio.Event()

    async def not_taken(*_: object) -> None:
        await never.wait()

    monkeypatch.setattr(large_answers._InPieces, "_send", not_taken)
    client = await client_with_large_jobs(world)
    reader, writer = await open_list(client)
    try:
        async with asyncio.timeout(20):
            assert await reader.read() == b""
    finally:
        writer.close()
    await poll_until(lambda: not world.api._large_answers._held)


async def test_a_large_job_that_changes_is_not_kept_for_the_watcher_but_read_again(world: ApiWorld) -> None:
    client = await client_with_large_jobs(world, 1)
    small = (await client.order(wait=15)).json["id"]
    large, *_ = reversed(await world.store.api_jobs(client.key.account_id, before=None, limit=10))
    watcher = Watcher(client.key.account_id, {large.id: version_of(large)._replace(late=True)})
    watcher.update(large)
    with_small = {**await watcher.next_changes(0.0), world.job_id(small): None}
    found = [job.id async for job in jobs_by_id(world.store, with_small)]

    assert len(large.input) > SMALL_JOB_CHARACTERS
    assert with_small[large.id] is None
    assert found == [large.id, world.job_id(small)]


async def test_other_requests_are_answered_while_a_stream_is_written_that_nothing_makes_wait(world: ApiWorld) -> None:
    """Neither SQLite nor a client that is gone does. A stream begins with up to a thousand jobs."""
    client = await client_with_large_jobs(world, 1)
    [job] = await world.store.api_jobs(client.key.account_id, before=None, limit=1)
    turns, ended = 0, asyncio.Event()

    class Reads:
        async def api_jobs_by_id(self, job_ids: list[int]) -> list[Job]:
            return [replace(job, id=job_id) for job_id in job_ids]

        async def api_jobs(self, account_id: int, *, before: int | None, limit: int) -> list[Job]:
            newest = 400 if before is None else before - 1
            return [replace(job, id=number) for number in range(newest, max(newest - limit, 0), -1)]

    async def count_turns() -> None:
        nonlocal turns
        while not ended.is_set():
            turns += 1
            await asyncio.sleep(0)

    counting, store = asyncio.create_task(count_turns()), cast(ApiJobStore, Reads())
    read = [found.id async for found in jobs_by_id(store, dict.fromkeys(range(400)))]
    of_stream, turns = turns, 0
    listed = [found.id async for found in newest_jobs(store, 7, None, 1000)]
    ended.set()
    await counting
    assert (read, listed) == (list(range(400)), list(range(400, 0, -1)))
    assert of_stream >= 400 / STREAM_STEP
    assert turns >= 400 / LIST_STEP - 1


async def test_a_stream_that_is_read_slowly_holds_few_large_jobs_behind_small_ones(world: ApiWorld) -> None:
    client = await client_with_large_jobs(world, 1)
    [large] = await world.store.api_jobs(client.key.account_id, before=None, limit=1)
    made = 0

    class Reads:
        async def api_jobs_by_id(self, job_ids: list[int]) -> list[Job]:
            nonlocal made
            made += len(job_ids)
            small = replace(large, input="{}")
            return [replace(small if number > -STREAM_STEP else large, id=number) for number in job_ids]

    def held() -> int:
        return sum(isinstance(each, Job) and each.id <= -STREAM_STEP for each in gc.get_objects())

    shown = []
    async for job in jobs_by_id(cast(ApiJobStore, Reads()), dict.fromkeys(range(0, -200, -1))):
        shown.append(job.id)
        if job.id in {-STREAM_STEP, -150}:
            assert held() <= STREAM_STEP

    assert shown == list(range(0, -200, -1))
    assert made <= 300, "what is not held is read again once"


async def test_a_stream_begins_with_large_jobs_too_and_shows_their_changes(world: ApiWorld) -> None:
    client = await world.client()
    world.kie.service.speed, before = 0.001, world.kie.service.speed
    jobs = [(await client.order(**LARGE)).json["id"] for _ in range(COUNT)]
    shown, ended = set(), set()
    async with client.session.get(
        f"{world.url}/v1/events", headers={"Authorization": f"Bearer {client.secret}"}, read_bufsize=2**20
    ) as stream:
        async with asyncio.timeout(20):
            async for line in stream.content:
                if not line.startswith(b"data: "):
                    continue
                job = json.loads(line[6:])
                shown.add(job["id"])
                if len(shown) == COUNT and world.kie.service.speed != before:
                    world.kie.service.speed = before
                    for job_id in jobs:
                        await client.post(f"/v1/jobs/{job_id}/cancel")
                if job["status"] == "canceled":
                    ended.add(job["id"])
                if len(ended) == COUNT:
                    break
    world.kie.service.speed = before

    assert shown == ended == set(jobs)
