"""Requests that wait for a job, and streams of events: their limits, what they cost, and that a stop ends them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from starlette.requests import Request

from genlock.api.job_watch import WATCHERS_PER_ACCOUNT
from genlock.api.types import FINAL
from genlock.api.waiting import wait_until_final
from genlock.domain.job import Job
from tests.api.world import ApiWorld, Client
from tests.changes import poll_until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@asynccontextmanager
async def running_job(world: ApiWorld, client: Client) -> AsyncIterator[Job]:
    """A job that does not end within the block."""
    world.kie.service.speed, before = 0.001, world.kie.service.speed
    try:
        await client.order()
        [job] = await world.store.api_jobs(client.key.account_id, before=None, limit=1)
        yield job
    finally:
        world.kie.service.speed = before


@asynccontextmanager
async def stopping(world: ApiWorld) -> AsyncIterator[None]:
    world.is_open[0] = False
    try:
        yield
    finally:
        world.is_open[0] = True


def count_timers() -> int:
    return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]


async def test_requests_that_wait_have_no_task_and_no_timer_of_their_own_and_an_account_has_a_limit(
    world: ApiWorld,
) -> None:
    client, other = await world.client(), await world.client()
    wait = partial(wait_until_final, Request({"type": "http"}), world.watch, seconds=30.0)
    async with running_job(world, client) as job, running_job(world, other) as others:
        start = asyncio.get_running_loop().create_task
        waiting = [start(wait(job)) for _ in range(100)]
        await asyncio.sleep(0)
        tasks, timers = len(asyncio.all_tasks()), count_timers()
        waiting += [start(wait(job)) for _ in range(WATCHERS_PER_ACCOUNT - 100)]
        await asyncio.sleep(0)

        assert len(asyncio.all_tasks()) - tasks <= WATCHERS_PER_ACCOUNT - 100, "these are the tasks of the requests"
        assert count_timers() - timers < 20, "the engine may have set some meanwhile"
        assert await wait(job) == (job, None), "it is answered at once: the account's places are taken"
        another = start(wait(others))
        async with stopping(world):
            answers = await asyncio.gather(*waiting, another)
    assert {waited for _, waited in answers} == {30.0}


async def test_streams_that_are_opened_at_the_same_time_are_counted_before_anything_is_read(world: ApiWorld) -> None:
    client = await world.client()
    get = partial(client.session.get, f"{world.url}/v1/events", headers={"Authorization": f"Bearer {client.secret}"})
    answers = await asyncio.gather(*(get() for _ in range(15)))
    assert sorted(answer.status for answer in answers) == [200] * 10 + [429] * 5
    for answer in answers:
        answer.close()

    async def is_noticed() -> bool:
        return (await client.get("/v1/jobs/job_none/events")).status != 429

    await poll_until(is_noticed)
    for _ in range(12):  # a stream that was refused leaves no trace
        assert (await client.get("/v1/jobs/job_none/events")).status == 404


async def test_a_stop_of_the_service_ends_streams_at_once(world: ApiWorld) -> None:
    client = await world.client()
    headers = {"Authorization": f"Bearer {client.secret}"}
    async with client.session.get(f"{world.url}/v1/events", headers=headers) as stream, stopping(world):
        async with asyncio.timeout(10):  # the next comment would come after 15 s
            received = await stream.content.read()
        assert stream.status == 200
        assert stream.content.at_eof()
        assert b"event:" not in received


async def test_a_client_that_leaves_while_it_waits_for_a_job_gives_up_its_place(world: ApiWorld) -> None:
    client = await world.client()
    async with running_job(world, client) as job:
        path = f"/v1/jobs/{world.view.id_of(job.id)}"
        host, _, port = world.url.removeprefix("http://").partition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {client.secret}\r\nPrefer: wait=60\r\n\r\n"
        writer.write(request.encode())
        await poll_until(lambda: len(world.watch._watchers) == 1)
        writer.close()
        await poll_until(lambda: not world.watch._watchers)
        found = await client.get(path)
        assert found.json["status"] not in FINAL, "the order goes on"
