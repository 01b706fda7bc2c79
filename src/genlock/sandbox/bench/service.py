"""The bench of the running service: start time, memory, and how quickly its callback endpoint answers."""

import asyncio
import io
import json
import secrets
import statistics
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from PIL import Image

from genlock.app.databases import open_store
from genlock.domain.job import NewJob, hash_secret
from genlock.log import Silent
from genlock.ports import Database, Lease
from genlock.sandbox.bench.simulators import TOKEN, running_simulator
from genlock.sandbox.fleet import simulator_settings
from genlock.sandbox.instance import Instance, running_instance
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.processes import find_free_port

SECRET = "bench-0123456789abcdef"  # noqa: S105 - of jobs that exist for seconds
_PICTURE = "bench.png"
_RUN = secrets.token_hex(4)
PrintLine = Callable[[str], None]


#: how long the log may lag behind
LOG_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Load:
    """The amount of work."""

    seconds: float = 20.0
    starts: int = 3
    helps: int = 5
    callbacks_per_second: int = 300
    #: callbacks at once
    burst: int = 1000
    users: int = 200
    #: how long a started service rests before its memory is read
    rest_seconds: float = 3.0

    @classmethod
    def small(cls) -> "Load":
        """Return a load that shows only that the bench works."""
        return cls(seconds=1.0, starts=1, helps=1, callbacks_per_second=20, burst=50, users=10, rest_seconds=0.5)


async def measure_service(url: str, load: Load, print_line: PrintLine) -> dict[str, Any]:
    """Measure a real `genlock serve` process over the store at this URL."""
    print_line("genlock --help …")
    figures: dict[str, Any] = {"help_seconds": await _help_seconds(load.helps)}
    async with running_simulator("telegram", "--token", TOKEN) as simulator, running_kie() as kie:
        telegram = str(simulator["url"])
        users = await _make_users(telegram, load.users)
        kie.service.files.add(_PICTURE, _picture, seconds=3600.0)
        print_line(f"{load.starts} starts of genlock serve …")
        settings = _settings(url, telegram, kie)
        figures |= await _starts(settings, load)
        rate, burst = load.callbacks_per_second, load.burst
        warm, count = rate, round(rate * load.seconds)
        print_line(f"{warm + count + burst:,} jobs that wait for their callbacks …")
        jobs = await _make_jobs(url, users, warm + count + burst)
        async with running_instance(settings) as instance:
            print_line(f"{rate} callbacks a second for {load.seconds:g} s …")
            # Connections are opened, and the first deliveries begin.
            await _measure_callbacks(instance, kie, jobs[:warm], rate)
            before = await _calls_made(telegram)
            figures["callback_endpoint_ms"] = await _measure_callbacks(instance, kie, jobs[warm : warm + count], rate)
            figures["channel_calls_meanwhile"] = await _calls_made(telegram) - before
            print_line(f"{burst:,} callbacks at once …")
            figures["callback_burst"] = await _burst(instance, kie, jobs[warm + count :])
            figures["busy_megabytes"] = round(instance.megabytes, 1)
    return figures


def _picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (256, 256), "teal").save(file, "PNG")
    return file.getvalue()


async def _help_seconds(times: int) -> float:
    took = []
    for _ in range(times):
        started = time.perf_counter()
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "genlock", "--help", stdout=DEVNULL)
        await process.wait()
        took.append(time.perf_counter() - started)
    return round(statistics.median(took), 3)


@dataclass(frozen=True)
class BenchUser:
    chat: int
    #: the message that becomes the result
    placeholder: str


async def _make_users(telegram: str, count: int) -> list[BenchUser]:
    async with aiohttp.ClientSession() as session:

        async def post(path: str, **body: Any) -> Any:
            async with session.post(f"{telegram}{path}", json=body) as answer:
                return await answer.json()

        found = []
        for number in range(count):
            chat = (await post("/sim/people", name=f"User {number}"))["id"]
            sent = await post(f"/bot{TOKEN}/sendMessage", chat_id=chat, text="…")
            found.append(BenchUser(chat, str(sent["result"]["message_id"])))
    return found


async def _calls_made(telegram: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{telegram}/sim/calls?after=0") as answer:
        calls = await answer.json()
    return int(calls[-1]["number"]) if calls else 0


def _settings(url: str, telegram: str, kie: KieSimulator) -> dict[str, str]:
    port = find_free_port()
    return {
        **simulator_settings(telegram, TOKEN, kie, url),
        "GENLOCK_MEDIA_PRIVATE_HOSTS": kie.files_url.removeprefix("http://"),
        "GENLOCK_PORT": str(port),
        "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}",
    }


async def _starts(settings: dict[str, str], load: Load) -> dict[str, float]:
    took, megabytes = [], []
    for number in range(load.starts + 1):
        async with running_instance(settings) as instance:
            await instance.wait_for_event("LOCK_ACTIVE")
            if number:  # the first start creates the schema
                took.append(instance.starts[-1])
                await asyncio.sleep(load.rest_seconds)
                megabytes.append(instance.megabytes)
    return {
        "start_seconds": round(statistics.median(took), 2),
        "rest_megabytes": round(statistics.median(megabytes), 1),
    }


async def _make_jobs(url: str, users: list[BenchUser], count: int) -> list[int]:
    """Write jobs that run at the provider, and return their ids."""
    store = await open_store(url, observer=Silent())
    lease = Lease(owner="bench", seconds=600.0)
    try:
        known = [await store.ensure_account("telegram", "42", str(user.chat)) for user in users]
        found: list[int] = []
        for first in range(0, count, 1000):
            numbers = range(first, min(first + 1000, count))
            places = [number % len(users) for number in numbers]
            jobs = await asyncio.gather(
                *(
                    _make_job(store, lease, known[place], users[place], number)
                    for number, place in zip(numbers, places, strict=True)
                )
            )
            found += jobs
        return found
    finally:
        await store.release_leases("bench")
        await store.close()


async def _make_job(store: Database, lease: Lease, account: int, user: BenchUser, number: int) -> int:
    order = NewJob(
        account_id=account,
        request_key=f"bench-{_RUN}-{number}",
        provider="kie",
        channel="telegram",
        address=f"{user.chat}/en",
        placeholder=user.placeholder,
        model="z-image",
        input='{"prompt":"cat astronaut"}',
        price=0,
        deadline_seconds=3600.0,
        correlation_id=f"bench-{number}",
    )
    job = (await store.accept_job(order, lease)).job
    await store.begin_submit(job.id, job.lease_token, hash_secret(SECRET), None)
    await store.mark_submitted(job.id, job.lease_token, f"bench-{job.id}", 3000.0)
    return job.id


async def _call(session: aiohttp.ClientSession, instance: Instance, kie: KieSimulator, job: int) -> int:
    result = json.dumps({"resultUrls": [f"{kie.files_url}/{_PICTURE}"]})
    body = json.dumps({"code": 200, "data": {"taskId": f"bench-{job}", "state": "success", "resultJson": result}})
    headers = {"Content-Type": "application/json"}
    async with session.post(
        f"{instance.url}/callbacks/kie/{job}.{SECRET}", data=body.encode(), headers=headers
    ) as answer:
        await answer.read()
        return answer.status


async def _measure_callbacks(
    instance: Instance, kie: KieSimulator, jobs: list[int], per_second: int
) -> dict[str, float]:
    """Return the milliseconds from the moment a callback was due to its answer, so that queueing counts."""
    loop = asyncio.get_running_loop()
    took: list[float] = []

    async def call_back(session: aiohttp.ClientSession, job: int, due: float) -> None:
        assert await _call(session, instance, kie, job) == 200
        took.append((loop.time() - due) * 1000)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started = loop.time() + 0.1
        tasks = []
        for number, job in enumerate(jobs):
            due = started + number / per_second
            await asyncio.sleep(max(0.0, due - loop.time()))
            tasks.append(loop.create_task(call_back(session, job, due)))
        await asyncio.gather(*tasks)
    took.sort()
    return {name: round(took[int(len(took) * share)], 2) for name, share in (("p50", 0.5), ("p99", 0.99))} | {
        "max": round(took[-1], 2)
    }


async def _count_received(instance: Instance, jobs: set[int], expected: int) -> int:
    """Return how many jobs' callbacks are in the log; its last lines are written after the answers."""
    until = time.monotonic() + LOG_SECONDS
    while True:
        found = len({line["job"] for line in instance.events("CALLBACK_RECEIVED")} & jobs)
        if found >= expected or time.monotonic() > until:
            return found
        await asyncio.sleep(0.1)


async def _burst(instance: Instance, kie: KieSimulator, jobs: list[int]) -> dict[str, float]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        started = time.perf_counter()
        statuses = await asyncio.gather(*(_call(session, instance, kie, job) for job in jobs))
        seconds = time.perf_counter() - started
    return {
        "sent": len(jobs),
        "acknowledged": statuses.count(200),
        "stored": await _count_received(instance, set(jobs), statuses.count(200)),
        "seconds": round(seconds, 2),
    }
