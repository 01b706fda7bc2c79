"""The bench of the HTTP API: reading a job and ordering, beside a bare endpoint that does one INSERT, in turn.

The times depend on what else the machine does; the ratios and the processor time per request hardly do.
"""

import asyncio
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import aiohttp

from genlock.app.databases import open_store
from genlock.domain.api_key import ALL_SCOPES
from genlock.domain.money import EntryKind
from genlock.engine.api_keys import create_api_key, ensure_api_account
from genlock.log import Silent
from genlock.sandbox.bench.http_load import prepare_request, run_load
from genlock.sandbox.bench.simulators import running_simulator, running_simulators
from genlock.sandbox.bench.usage import cpu_seconds
from genlock.sandbox.instance import running_instance
from genlock.sandbox.processes import ProgramFailed

PrintLine = Callable[[str], None]
ORDER = b'{"model":"z-image","input":{"prompt":"cat astronaut","aspect_ratio":"1:1"}}'
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, kw_only=True)
class ApiLoad:
    """The amount of work; the figures of a small load are not meaningful."""

    rounds: int = 5
    seconds: float = 5.0
    reads_per_second: int = 1000
    orders_per_second: int = 100
    connections: int = 32
    keys: int = 5
    #: jobs that are read
    jobs: int = 200

    @classmethod
    def small(cls) -> "ApiLoad":
        """Return a load that shows only that the bench works."""
        return cls(rounds=1, seconds=0.2, reads_per_second=100, orders_per_second=20, connections=4, keys=2, jobs=4)


async def measure_api(url: str, load: ApiLoad, print_line: PrintLine) -> dict[str, Any]:
    """Measure a real `genlock serve` process over the store at this URL."""
    keys = await _make_keys(url, load.keys)
    async with (
        running_simulators(speed=1.0) as simulators,
        running_simulator("bench.bare_endpoint", url) as bare,
        running_instance(
            {
                **simulators.settings(url),
                "GENLOCK_API_REQUESTS_PER_SECOND": "10000",
                "GENLOCK_API_RUNNING_MAX": "1000000",
            }
        ) as instance,
    ):
        jobs = await _make_jobs(instance.url, keys, load.jobs)
        bench = _ApiBench(load, keys, jobs, _Server(instance.url, instance.pid), _Server(bare["url"], bare["pid"]))
        await bench.measure_idle()
        await bench.round()  # caches and statements of the database warm up
        rounds = []
        for number in range(load.rounds):
            rounds.append(await bench.round())
            print_line(f"round {number + 1}: {rounds[-1]}")
    return _summary(rounds)


async def _make_keys(url: str, count: int) -> list[str]:
    store = await open_store(url, observer=Silent())
    try:
        account_id = await ensure_api_account(store, "bench")
        await store.transfer(account_id, EntryKind.GRANT, 10**9, f"bench:{os.urandom(8).hex()}")
        secrets = []
        for _ in range(count):
            _, secret = await create_api_key(
                store,
                account_id,
                name="bench",
                scopes=ALL_SCOPES,
                spend_limit=None,
                request_key=f"bench:{os.urandom(8).hex()}",
                author="bench",
                random_bytes=os.urandom,
            )
            assert secret is not None
            secrets.append(secret)
        return secrets
    finally:
        await store.close()


async def _make_jobs(url: str, keys: list[str], count: int) -> list[str]:
    found = []
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        for number in range(count):
            headers = {**JSON, "Authorization": f"Bearer {keys[0]}", "Idempotency-Key": f"read-{number}"}
            async with session.post(f"{url}/v1/jobs", data=ORDER, headers=headers) as answer:
                found.append((await answer.json())["id"])
    return found


class _Server(NamedTuple):
    url: str
    pid: int


class _ApiBench:
    def __init__(self, load: ApiLoad, keys: list[str], jobs: list[str], api: _Server, bare: _Server) -> None:
        self._load = load
        self._keys = keys
        self._api, self._bare = api, bare
        #: seconds of processor time per second without requests
        self._idle: dict[_Server, float] = {}
        self._reads = [
            prepare_request("GET", f"{api.url}/v1/jobs/{job}", {"Authorization": f"Bearer {keys[n % len(keys)]}"})
            for n, job in enumerate(jobs)
        ]

    async def measure_idle(self) -> None:
        """Measure the processor time that the servers use without requests: a busy machine stretches the others."""
        servers = (self._api, self._bare)
        before = {server: cpu_seconds(server.pid) for server in servers}
        await asyncio.sleep(self._load.seconds)
        self._idle = {server: (cpu_seconds(server.pid) - before[server]) / self._load.seconds for server in servers}

    async def round(self) -> dict[str, float]:
        """Measure each kind of request once, one after the other."""
        load = self._load
        reads, orders = round(load.reads_per_second * load.seconds), round(load.orders_per_second * load.seconds)
        bare_order = prepare_request("POST", f"{self._bare.url}/bare", JSON, ORDER)
        bare_read = prepare_request("GET", f"{self._bare.url}/bare", {})
        figures = {
            **await self._measure("bare_post", self._bare, [bare_order] * orders, load.orders_per_second),
            **await self._measure("post", self._api, [self._order(n) for n in range(orders)], load.orders_per_second),
            **await self._measure("bare_get", self._bare, [bare_read] * reads, load.reads_per_second),
            **await self._measure(
                "get", self._api, [self._reads[n % len(self._reads)] for n in range(reads)], load.reads_per_second
            ),
        }
        for name in ("post", "get"):
            figures[f"{name}_ratio"] = figures[f"{name}_p99_ms"] / figures[f"bare_{name}_p99_ms"]
        return {name: round(figure, 2) for name, figure in figures.items()}

    async def _measure(self, name: str, server: _Server, requests: list[bytes], per_second: int) -> dict[str, float]:
        before, started = cpu_seconds(server.pid), perf_counter()
        timings = await run_load(server.url, self._load.connections, requests, per_second)
        if set(timings.statuses) - {200, 202}:
            raise ProgramFailed(f"{name} was answered with {dict(timings.statuses)}")
        took = {f"{name}_{share}_ms": figure for share, figure in timings.percentiles().items()}
        idle = self._idle[server] * (perf_counter() - started)
        return took | {f"{name}_cpu_ms": (cpu_seconds(server.pid) - before - idle) * 1000 / len(requests)}

    def _order(self, number: int) -> bytes:
        headers = {
            **JSON,
            "Authorization": f"Bearer {self._keys[number % len(self._keys)]}",
            "Idempotency-Key": os.urandom(12).hex(),
        }
        return prepare_request("POST", f"{self._api.url}/v1/jobs", headers, ORDER)


def _summary(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Return the median of each figure."""
    return {name: round(statistics.median(figures[name] for figures in rounds), 2) for name in rounds[0]}
