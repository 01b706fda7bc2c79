"""The `soak` command: a steady load on the whole product for minutes or hours, with what it uses, period by period.

Memory, latency, processor time and bytes per order stay the same in a product without a leak; a leak shows as growth.
"""

import json
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import asyncpg
import uvloop

from genlock.domain.errors import Refusal
from genlock.sandbox.bench.bench import databases
from genlock.sandbox.bench.order import OrderBench, OrderLoad, per_order, running_bench

_SIZE = "SELECT pg_database_size(current_database())"
COLUMNS = "  minute  orders     MB  p50 s  p99 s  service ms  database ms  WAL bytes  database bytes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    """What one period of the load has used; everything but the memory is per order."""

    minute: float
    orders: int
    service_megabytes: float
    seconds_p50: float
    seconds_p99: float
    service_cpu_ms: float
    database_cpu_ms: float | None = None
    wal_bytes: int | None = None
    #: growth of the database
    database_bytes: int | None = None

    def line(self) -> str:
        database = "" if self.database_cpu_ms is None else f"  {self.database_cpu_ms:11.1f}"
        written = "" if self.wal_bytes is None else f"  {self.wal_bytes:9,}  {self.database_bytes:14,}"
        return (
            f"{self.minute:8.1f}  {self.orders:6}  {self.service_megabytes:5.0f}  {self.seconds_p50:5.1f}  "
            f"{self.seconds_p99:5.1f}  {self.service_cpu_ms:10.1f}{database}{written}"
        )


async def soak(url: str, load: OrderLoad, minutes: float) -> AsyncIterator[Period]:
    """Order at a steady rate until the time is over; yield what each period of `load.orders` orders has used."""
    async with running_bench(url, load) as bench:
        started, by_buttons = perf_counter(), False
        while perf_counter() - started < minutes * 60:
            period = await _run_period(bench, url, load.orders, by_buttons=by_buttons)
            by_buttons = not by_buttons
            yield Period(minute=round((perf_counter() - started) / 60, 1), orders=load.orders, **period)


async def _run_period(bench: OrderBench, url: str, orders: int, *, by_buttons: bool) -> dict[str, Any]:
    before, size = await bench.usage(), await _database_bytes(url)
    took = sorted(await bench.run(orders, by_buttons=by_buttons))
    cost = per_order(before, await bench.usage(), orders)
    period: dict[str, Any] = {
        "service_megabytes": round(bench.instance.megabytes, 1),
        "seconds_p50": round(took[orders // 2], 2),
        "seconds_p99": round(took[orders * 99 // 100], 2),
        "service_cpu_ms": cost["service_cpu_ms"],
    }
    if size is not None:
        grown = (await _database_bytes(url) or 0) - size
        period |= {name: cost[name] for name in ("database_cpu_ms", "wal_bytes")}
        period["database_bytes"] = round(grown / orders)
    return period


async def _database_bytes(url: str) -> int | None:
    """Return the size of a PostgreSQL database; None for SQLite."""
    if not url.startswith("postgres"):
        return None
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(_SIZE))
    finally:
        await connection.close()


def run(store: str, database_url: str | None, minutes: float, per_second: float, *, as_json: bool) -> int:
    """Run the load, print each period and return the exit code."""
    if store not in ("sqlite", "postgres"):
        raise Refusal(f"--store is sqlite or postgres, not {store!r}")
    load = OrderLoad(orders=max(1, round(60 * min(minutes, 1.0) * per_second)), per_second=per_second)

    async def print_periods(url: str) -> list[Period]:
        periods = []
        async for period in soak(url, load, minutes):
            periods.append(period)
            if not as_json:
                sys.stdout.write(period.line() + "\n")
                sys.stdout.flush()
        return periods

    if not as_json:
        sys.stdout.write(COLUMNS + "\n")
    with databases(store, database_url) as make:
        periods = uvloop.run(print_periods(make("soak")))
    if as_json:
        sys.stdout.write(json.dumps({"store": store, "periods": [asdict(period) for period in periods]}) + "\n")
    return 0
