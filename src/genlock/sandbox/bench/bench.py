"""The `bench` command: the engine against a plain protocol, the service, the cost of a whole order, and the API.

The engine and the plain protocol are interleaved in one run: the ratio matters, not the times.

The plain protocol is what most bots do: five single-row autocommit statements per job, through a pool of 16
connections. The engine does the same with a ledger, an inbox, fencing and leases. A second measurement gives each of
the 16 a dedicated connection, which saves the cost of the pool.
"""

import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import uvloop

from genlock.domain.errors import Refusal
from genlock.sandbox.bench.api import ApiLoad, measure_api
from genlock.sandbox.bench.history import make_history
from genlock.sandbox.bench.order import OrderLoad, measure_orders
from genlock.sandbox.bench.plain import plain_databases, run_plain_jobs
from genlock.sandbox.bench.service import Load, measure_service
from genlock.sandbox.bench.world import IN_FLIGHT, World, open_world
from genlock.sandbox.postgres import PostgresServer

JOBS_PER_SECOND = 100
#: with fewer orders the bench only shows that it works
FEW_ORDERS = 50
PARTS = ("engine", "service", "order", "api")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The amount of work; the figures of a small bench are not meaningful."""

    rounds: int = 5
    jobs: int = 6000
    plain_jobs: int = 2000
    latency_seconds: int = 10
    waiting: int = 50_000
    history: int = 1_000_000
    orders: int = 150

    def scaled(self, scale: float) -> "Sizes":
        return Sizes(
            rounds=self.rounds,
            jobs=round(self.jobs * scale),
            plain_jobs=round(self.plain_jobs * scale),
            latency_seconds=max(1, round(self.latency_seconds * scale)),
            waiting=round(self.waiting * scale),
            history=round(self.history * scale),
            orders=max(5, round(self.orders * scale)),
        )


async def jobs_per_second(world: World, count: int) -> float:
    """Return whole jobs per second, a thousand in parallel."""
    left = count

    async def order_repeatedly(number: int) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            job = await world.engine.order(world.order(world.accounts[number]))
            await world.deliveries.delivered(job.id)

    started = time.perf_counter()
    await asyncio.gather(*(order_repeatedly(number) for number in range(len(world.accounts))))
    world.provider.arrived.clear()
    world.channel.shown.clear()
    return count / (time.perf_counter() - started)


async def latency(world: World, seconds: int) -> dict[str, float]:
    """Return the milliseconds from a callback's arrival to the channel call, at JOBS_PER_SECOND."""
    loop = asyncio.get_running_loop()
    world.provider.arrived.clear()
    world.channel.shown.clear()
    started = loop.time()
    orders = []
    for number in range(JOBS_PER_SECOND * seconds):
        await asyncio.sleep(started + number / JOBS_PER_SECOND - loop.time())
        orders.append(loop.create_task(world.engine.order(world.order(world.accounts[number % len(world.accounts)]))))
    jobs = await asyncio.gather(*orders)
    await asyncio.gather(*(world.deliveries.delivered(job.id) for job in jobs))
    took = sorted((shown - world.provider.arrived[task]) * 1000 for task, shown in world.channel.shown.items())
    return {"p50": round(took[len(took) // 2], 2), "p99": round(took[len(took) * 99 // 100], 2)}


async def waiting_cost(world: World, count: int) -> tuple[float, int]:
    """Return the bytes of memory per job that waits at the provider, and the number of tasks for all of them."""
    world.provider.calls_back = False
    gc.collect()
    tasks = await _lasting_tasks()
    # Resident memory would not show what fits into the memory that the parts before have freed.
    tracemalloc.start()
    for done in range(0, count, IN_FLIGHT):
        accounts = world.accounts[: count - done]
        await asyncio.gather(*(world.engine.order(world.order(account)) for account in accounts))
    while world.engine.worker.busy:  # noqa: ASYNC110 - the worker has no event for being idle
        await asyncio.sleep(0.05)
    gc.collect()
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    world.provider.calls_back = True
    return allocated / count, await _lasting_tasks() - tasks


async def _lasting_tasks() -> int:
    """Return how many tasks last: statements of periodic tasks may be at work in a moment."""
    found = []
    for _ in range(20):
        found.append(len(asyncio.all_tasks()))
        await asyncio.sleep(0.005)
    return min(found)


@contextmanager
def databases(store: str, database_url: str | None) -> Iterator[Callable[[str], str]]:
    """Yield a function that creates empty databases; they are dropped afterwards."""
    if store == "sqlite":
        with tempfile.TemporaryDirectory(prefix="genlock-bench-") as folder:
            yield lambda name: f"sqlite:///{folder}/{name}.db"
        return
    server = nullcontext(database_url) if database_url else PostgresServer.running()
    with server as running:
        if isinstance(running, PostgresServer):
            yield lambda _: running.create_database()
        else:
            assert database_url is not None
            yield lambda _: database_url


PrintLine = Callable[[str], None]


async def measure(
    store: str, make: Callable[[str], str], sizes: Sizes, parts: Collection[str], print_line: PrintLine
) -> dict[str, Any]:
    """Measure the chosen parts and return their figures."""
    figures: dict[str, Any] = {"store": store}
    few = sizes.orders < FEW_ORDERS
    history_url = make("history")
    if sizes.history and {"engine", "order"} & set(parts):
        print_line(f"{sizes.history:,} finished jobs …")
        await make_history(store, history_url, sizes.history)
    if "engine" in parts:
        figures |= await _measure_engine(store, make("lives"), history_url, sizes, print_line)
    if "service" in parts:
        load = Load(seconds=max(1.0, sizes.latency_seconds), starts=sizes.rounds, helps=sizes.rounds)
        figures |= await measure_service(make("service"), Load.small() if few else load, print_line)
    if "order" in parts:
        orders = OrderLoad.small(sizes.orders) if few else OrderLoad(orders=sizes.orders)
        figures["order"] = await measure_orders(make("order"), orders, print_line)
        if sizes.history and not few:
            print_line(f"the same with {sizes.history:,} finished jobs …")
            figures["order_with_history"] = await measure_orders(history_url, orders, print_line)
    if "api" in parts:
        print_line("the HTTP API …")
        figures["api"] = await measure_api(
            make("api"), ApiLoad.small() if few else ApiLoad(rounds=sizes.rounds), print_line
        )
    return figures


async def _measure_engine(
    store: str, url: str, history_url: str, sizes: Sizes, print_line: PrintLine
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with open_world(url, "lives") as world:
        if store == "postgres":
            figures |= await _against_plain(url, world, sizes, print_line)
        else:
            figures |= await _alone(world, sizes, print_line)
        print_line("latency at 100 jobs per second …")
        figures["callback_to_channel_ms"] = await latency(world, sizes.latency_seconds)
        if sizes.history:
            figures["history_ratio"] = await _with_history(history_url, world, sizes, print_line)
        print_line(f"{sizes.waiting:,} waiting jobs …")
        cost, tasks = await waiting_cost(world, sizes.waiting)
        figures["waiting_bytes_per_job"] = round(cost)
        figures["waiting_tasks"] = tasks
    return figures


async def _alone(world: World, sizes: Sizes, print_line: PrintLine) -> dict[str, Any]:
    await jobs_per_second(world, sizes.jobs // 4)
    ours = []
    for number in range(sizes.rounds):
        ours.append(await jobs_per_second(world, sizes.jobs))
        print_line(f"round {number + 1}: {ours[-1]:,.0f} jobs per second")
    return {"lives_per_second": round(statistics.median(ours))}


async def _against_plain(url: str, world: World, sizes: Sizes, print_line: PrintLine) -> dict[str, Any]:
    """Measure in turn: the engine, the plain protocol through a pool, the same on dedicated connections."""
    rates: dict[str, list[float]] = {"lives": [], "plain": [], "plain_dedicated": []}
    async with plain_databases(url) as (pool, dedicated):
        await run_plain_jobs(pool, "warm", sizes.plain_jobs // 4)
        await run_plain_jobs(dedicated, "warm-dedicated", sizes.plain_jobs // 4)
        await jobs_per_second(world, sizes.jobs // 4)
        for number in range(sizes.rounds):
            rates["lives"].append(await jobs_per_second(world, sizes.jobs))
            rates["plain"].append(await run_plain_jobs(pool, f"plain-{number}", sizes.plain_jobs))
            rates["plain_dedicated"].append(await run_plain_jobs(dedicated, f"dedicated-{number}", sizes.plain_jobs))
            now = {name: round(rate[-1]) for name, rate in rates.items()}
            print_line(f"round {number + 1}: {now['lives']:,} jobs per second, plain {now['plain']:,}")
    figures: dict[str, Any] = {f"{name}_per_second": round(statistics.median(rate)) for name, rate in rates.items()}
    for name, plain in (("ratio", "plain"), ("ratio_dedicated", "plain_dedicated")):
        pairs = zip(rates["lives"], rates[plain], strict=True)
        figures[name] = round(statistics.median(ours / theirs for ours, theirs in pairs), 2)
    return figures


async def _with_history(url: str, empty: World, sizes: Sizes, print_line: PrintLine) -> float:
    """Return the cost of a job among many finished ones, as a multiple of its cost among few."""
    ratios = []
    async with open_world(url, "history") as full:
        await jobs_per_second(full, sizes.jobs // 4)
        for number in range(sizes.rounds):
            among_few, among_many = await jobs_per_second(empty, sizes.jobs), await jobs_per_second(full, sizes.jobs)
            ratios.append(among_few / among_many)
            print_line(f"round {number + 1}: a job costs {ratios[-1]:.2f} times as much")
    return round(statistics.median(ratios), 2)


def run(store: str, database_url: str | None, sizes: Sizes, parts: Collection[str] = PARTS, *, as_json: bool) -> int:
    """Measure, print the figures and return the exit code."""
    if unknown := set(parts) - set(PARTS):
        raise Refusal(f"--part is {', '.join(PARTS)}, not {min(unknown)!r}")
    if store not in ("sqlite", "postgres"):
        raise Refusal(f"--store is sqlite or postgres, not {store!r}")
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)

    def print_line(line: str) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201

    with databases(store, database_url) as make:
        figures = uvloop.run(measure(store, make, sizes, parts, print_line))
    if as_json:
        print(json.dumps(figures))  # noqa: T201
    else:
        _print_table(figures)
    return 0


def _print_table(figures: Mapping[str, Any], indent: str = "") -> None:
    """Print one figure per line; the figures of an order are a table of their own."""
    for name, figure in figures.items():
        if isinstance(figure, dict) and any(isinstance(value, dict) for value in figure.values()):
            print(f"{indent}{name.replace('_', ' ')}")  # noqa: T201
            _print_table(figure, f"{indent}  ")
        else:
            print(f"{indent}{name.replace('_', ' '):>24}  {figure}")  # noqa: T201
