"""The bench of a whole order: webhook, bot, store, provider and chat, each in a process of its own.

Users of the simulated Telegram order at a steady rate, by `/gen` and by buttons. The figures are what one order costs
the service and the database, and which statements and Telegram calls it makes.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import aiohttp
import asyncpg

from genlock.sandbox.bench.chat_users import ChatUser, ChatUsers, watching_users
from genlock.sandbox.bench.history import history_counted
from genlock.sandbox.bench.simulators import running_simulators
from genlock.sandbox.bench.usage import DatabaseUsage, cpu_seconds, database_usage
from genlock.sandbox.instance import Instance, running_instance

#: statements per order that are rarer than this are left out
NOISE = 0.05
PrintLine = Callable[[str], None]
_STATEMENTS = re.compile(r'^genlock_store_statements_total\{operation="(\w+)"\} ([0-9.e+]+)$', re.MULTILINE)
#: calls that Telegram does not count, and that take no permit of ours
_NOT_COUNTED = ("answerCallbackQuery", "deleteMessage")


@dataclass(frozen=True, kw_only=True)
class OrderLoad:
    """The amount of work; the figures of a small load are not meaningful."""

    orders: int = 150
    per_second: float = 5.0
    #: each user orders again after this many others; Telegram allows a chat about one call per second
    users: int = 60
    warm_up_orders: int = 10
    #: a task of the ordered model takes 5.5 s at this speed and shows progress once
    speed: float = 10.0
    #: PostgreSQL's backends report their statistics at most once per second, and when they are used
    statistics_seconds: float = 3.0
    idle_seconds: float = 5.0

    @classmethod
    def small(cls, orders: int) -> "OrderLoad":
        """Return a load that shows only that the bench works."""
        return cls(orders=orders, users=orders, warm_up_orders=0, speed=100.0, statistics_seconds=1.0, idle_seconds=0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What the service and the database have done so far."""

    at: float
    cpu_seconds: float
    statements: Mapping[str, float]
    calls: Counter[str]
    database: DatabaseUsage | None


class OrderBench:
    """One running service with its simulators and users."""

    def __init__(
        self,
        load: OrderLoad,
        instance: Instance,
        users: ChatUsers,
        database: "asyncpg.Connection[asyncpg.Record] | None",
    ) -> None:
        self._load = load
        self.instance = instance
        self._users = users
        self._database = database
        self._ordering: list[ChatUser] = []
        self._numbers = 0

    async def prepare(self) -> None:
        """Let every user start the bot and order once, so that what is cached is cached and connections are open."""
        self._ordering = [await self._users.add(number) for number in range(self._load.users)]
        await asyncio.gather(*(user.start() for user in self._ordering))
        for by_buttons in (False, True):
            await self.run(self._load.warm_up_orders, by_buttons=by_buttons)

    async def usage(self) -> Usage:
        """Read what has been used so far."""
        await asyncio.sleep(self._load.statistics_seconds if self._database else 0.0)
        async with aiohttp.ClientSession() as session, session.get(f"{self.instance.url}/metrics") as answer:
            text = await answer.text()
        return Usage(
            at=perf_counter(),
            cpu_seconds=cpu_seconds(self.instance.pid),
            statements={name: float(number) for name, number in _STATEMENTS.findall(text)},
            calls=Counter(self._users.calls),
            database=await database_usage(self._database) if self._database else None,
        )

    async def run(self, orders: int, *, by_buttons: bool) -> list[float]:
        """Order at a steady rate; return the seconds that each order took."""
        loop = asyncio.get_running_loop()
        started, tasks = loop.time(), []
        for number in range(orders):
            await asyncio.sleep(max(0.0, started + number / self._load.per_second - loop.time()))
            self._numbers += 1
            user = self._ordering[self._numbers % len(self._ordering)]
            prompt = f"a quiet harbour at dawn, number {self._numbers}"
            tasks.append(loop.create_task(_order(user, prompt, by_buttons=by_buttons)))
        return list(await asyncio.gather(*tasks))

    async def measure(self, *, by_buttons: bool) -> dict[str, Any]:
        """Order and return what one order cost."""
        orders = self._load.orders
        before = await self.usage()
        took = sorted(await self.run(orders, by_buttons=by_buttons))
        figures = per_order(before, await self.usage(), orders)
        return figures | {"seconds_p50": _rounded(took[len(took) // 2]), "seconds_max": _rounded(took[-1])}

    async def idle(self) -> dict[str, float]:
        """Return what the service and the database use per second without any order."""
        before = await self.usage()
        await asyncio.sleep(self._load.idle_seconds)
        after = await self.usage()
        span = after.at - before.at
        figures = {
            "service_cpu_ms": _rounded((after.cpu_seconds - before.cpu_seconds) * 1000 / span),
            "statements": _rounded((sum(after.statements.values()) - sum(before.statements.values())) / span),
        }
        if before.database and after.database:
            used = after.database.cpu_seconds - before.database.cpu_seconds
            figures["database_cpu_ms"] = _rounded(used * 1000 / span)
        return figures


async def _order(user: ChatUser, prompt: str, *, by_buttons: bool) -> float:
    async with user.turn:
        return await (user.order_by_buttons(prompt) if by_buttons else user.order_by_command(prompt))


def per_order(before: Usage, after: Usage, orders: int) -> dict[str, Any]:
    """Return the difference of two readings, divided by the number of orders."""
    statements = {
        name: _rounded((number - before.statements.get(name, 0.0)) / orders)
        for name, number in after.statements.items()
    }
    calls = {name: _rounded(number / orders) for name, number in (after.calls - before.calls).items()}
    frequent = sorted(((rate, name) for name, rate in statements.items() if rate > NOISE), reverse=True)
    figures: dict[str, Any] = {
        "service_cpu_ms": _rounded((after.cpu_seconds - before.cpu_seconds) * 1000 / orders),
        "telegram_calls": calls,
        "telegram_calls_limited": _rounded(sum(rate for name, rate in calls.items() if name not in _NOT_COUNTED)),
        "statements_total": _rounded(sum(statements.values())),
        "statements": {name: rate for rate, name in frequent},
    }
    if before.database and after.database:
        figures |= _database_per_order(before.database, after.database, orders)
    return figures


def _database_per_order(before: DatabaseUsage, after: DatabaseUsage, orders: int) -> dict[str, Any]:
    def changed(table: str, column: int) -> int:
        return after.rows[table][column] - before.rows.get(table, (0, 0, 0))[column]

    updates = {table: changed(table, 1) for table in after.rows}
    return {
        "database_cpu_ms": _rounded((after.cpu_seconds - before.cpu_seconds) * 1000 / orders),
        "wal_bytes": round((after.wal_bytes - before.wal_bytes) / orders),
        "row_updates": {table: _rounded(number / orders) for table, number in updates.items() if number},
        "hot_share": {table: _rounded(changed(table, 2) / number) for table, number in updates.items() if number},
    }


def _rounded(number: float) -> float:
    return round(number, 2)


@asynccontextmanager
async def running_bench(url: str, load: OrderLoad) -> AsyncIterator[OrderBench]:
    """Run the service over the database at this URL, with simulators and users, until the block ends."""
    async with running_simulators(speed=load.speed) as simulators:
        settings = simulators.settings(url) | {
            "GENLOCK_WELCOME_CREDITS": "1000000",
            "GENLOCK_KIE_CREATES_PER_10_SECONDS": "1000",
            "GENLOCK_PER_MINUTE": "1000",
            "GENLOCK_PER_HOUR": "100000",
        }
        async with running_instance(settings) as instance, watching_users(simulators.telegram_url) as users:
            await instance.wait_for_event("LOCK_ACTIVE")
            database = await asyncpg.connect(url) if url.startswith("postgres") else None
            try:
                bench = OrderBench(load, instance, users, database)
                await bench.prepare()
                yield bench
            finally:
                if database:
                    await database.close()


async def measure_orders(url: str, load: OrderLoad, print_line: PrintLine) -> dict[str, Any]:
    """Measure what a whole order costs, over the database at this URL, whose history has been counted."""
    async with running_bench(url, load) as bench:
        await history_counted(url)
        print_line(f"{load.orders} orders by /gen, {load.per_second:g} per second …")
        by_command = await bench.measure(by_buttons=False)
        print_line(f"{load.orders} orders by buttons …")
        by_buttons = await bench.measure(by_buttons=True)
        print_line("the service without orders …")
        return {"by_command": by_command, "by_buttons": by_buttons, "idle": await bench.idle()}
