"""The bench: whole lives of jobs against the plain protocol, interleaved in one run. Ratios, not times, are the point.

The plain protocol is what most bots do: five single-row autocommit statements per job, through a pool of 16
connections. Ours does the same job with money, an inbox, fencing and leases besides. A second reading gives each of the
16 a connection of its own, which few bots do: it saves what the pool costs.
"""

import asyncio
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import uvloop

from genlock.app import make_engine, open_store
from genlock.domain.delivery import Part
from genlock.domain.events import Event
from genlock.domain.job import Job, NewJob
from genlock.domain.money import Kind
from genlock.domain.result import Outcome, Piece, Report
from genlock.engine.engine import Engine
from genlock.engine.kit import Rules
from genlock.ports import Channel, Placed, Store
from genlock.sandbox.bench.service import Load, measure_service
from genlock.sandbox.postgres import PostgresServer

if TYPE_CHECKING:
    Database = asyncpg.Pool[Any] | asyncpg.Connection[Any]

IN_FLIGHT = 1000
PLAIN_CONNECTIONS = 16
PACE = 100
_PUBLIC = "http://127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much of everything; the figures of a small bench say little."""

    rounds: int = 5
    lives: int = 6000
    plain_lives: int = 2000
    paced_seconds: int = 10
    waiting: int = 100_000
    history: int = 1_000_000

    def scaled(self, scale: float) -> "Sizes":
        return Sizes(
            rounds=self.rounds,
            lives=round(self.lives * scale),
            plain_lives=round(self.plain_lives * scale),
            paced_seconds=max(1, round(self.paced_seconds * scale)),
            waiting=round(self.waiting * scale),
            history=round(self.history * scale),
        )


class Quiet:
    """An observer that keeps nothing."""

    def event(self, event: Event, correlation: str = "", /, **facts: Any) -> None: ...

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None: ...


class Watch(Quiet):
    """An observer that knows when a job's delivery and its money were committed."""

    def __init__(self) -> None:
        self._ends: dict[int, asyncio.Future[None]] = {}

    def event(self, event: Event, correlation: str = "", /, **facts: Any) -> None:
        if event is Event.MARK_DELIVERED:
            self._end(facts["job"]).set_result(None)

    async def delivered(self, job_id: int) -> None:
        await self._end(job_id)
        del self._ends[job_id]

    def _end(self, job_id: int) -> asyncio.Future[None]:
        if job_id not in self._ends:
            self._ends[job_id] = asyncio.get_running_loop().create_future()
        return self._ends[job_id]


class InstantProvider:
    """Finishes a task as soon as it is created, and calls back at once."""

    name = "instant"

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._count = 0
        self.calls_back = True
        self.engine: Engine | None = None
        self._callbacks: set[asyncio.Task[Any]] = set()
        #: when each task's callback arrived
        self.arrived: dict[str, float] = {}

    async def create(self, job: Job, callback_url: str | None) -> str:
        self._count += 1
        task_id = f"{self._tag}-{self._count}"
        if self.calls_back and callback_url and self.engine:
            token = callback_url.rpartition("/")[2]
            self.arrived[task_id] = time.perf_counter()
            body = f'{{"taskId":"{task_id}","state":"success","url":"{_PUBLIC}/{task_id}.png"}}'.encode()
            task = self.engine.kit.loop.create_task(self.engine.callback(self.name, token, body))
            self._callbacks.add(task)
            task.add_done_callback(self._callbacks.discard)
        return task_id

    async def status(self, task_id: str, job: Job) -> Report:
        return Report(outcome=Outcome.RUNNING, task_id=task_id)

    def read_callback(self, body: bytes) -> Report:
        said = json.loads(body)
        return Report(outcome=Outcome.SUCCESS, task_id=said["taskId"], pieces=(Piece(value=said["url"]),))


class InstantChannel(Channel):
    """Shows everything at once, and tells whoever waits for a job."""

    name = "instant"

    def __init__(self) -> None:
        #: when each task's result reached the channel
        self.shown: dict[str, float] = {}

    async def place(self, job: Job, index: int) -> str:
        return f"{job.id}.{index}"

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        self.shown[job.task_id or ""] = time.perf_counter()
        return Placed(message=part.message or "", file="file")

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        return Placed(message=f"{job.id}.{index}.sent")

    async def notify(self, job: Job) -> None: ...

    async def progress(self, job: Job, fraction: float, until: float) -> None: ...


@dataclass
class World:
    """One engine over one store, with people who can pay."""

    watch: Watch
    store: Store
    engine: Engine
    provider: InstantProvider
    channel: InstantChannel
    people: list[int]
    ordered: int = 0

    def order(self, person: int) -> NewJob:
        self.ordered += 1
        return NewJob(
            person_id=person,
            request_key=f"{self.provider._tag}-{self.ordered}",  # noqa: SLF001 - one tag makes every key its own
            provider="instant",
            channel="instant",
            address='{"chat":1}',
            model="z-image",
            input='{"prompt":"cat astronaut","aspect_ratio":"1:1"}',
            price=800,
            deadline_seconds=900.0,
            placeholder="1",
            notice=False,
            correlation=f"bench-{self.ordered}",
        )


@asynccontextmanager
async def open_world(url: str, tag: str, people: int = IN_FLIGHT) -> AsyncIterator[World]:
    observer = Watch()
    store = await open_store(url, observer=observer)
    provider, channel = InstantProvider(tag), InstantChannel()
    engine = make_engine(
        store,
        observer,
        providers={"instant": provider},
        channels={"instant": channel},
        rules=Rules(capacity=4 * IN_FLIGHT),
        public_url=_PUBLIC,
    )
    provider.engine = engine
    known = [await store.person("instant", "bench", f"{tag}-{number}") for number in range(people)]
    await asyncio.gather(*(store.transfer(person, Kind.GRANT, 10**12, f"{tag}-{person}") for person in known))
    world = World(observer, store, engine, provider, channel, known)
    await engine.start()
    try:
        yield world
    finally:
        await engine.stop()
        await store.close()


async def lives(world: World, count: int) -> float:
    """Whole lives per second, a thousand at a time."""
    left = count

    async def person(number: int) -> None:
        nonlocal left
        while left > 0:
            left -= 1
            job = await world.engine.order(world.order(world.people[number]))
            await world.watch.delivered(job.id)

    started = time.perf_counter()
    await asyncio.gather(*(person(number) for number in range(len(world.people))))
    world.provider.arrived.clear()
    world.channel.shown.clear()
    return count / (time.perf_counter() - started)


PLAIN_TABLE = """
CREATE TABLE IF NOT EXISTS plain (
    id bigserial PRIMARY KEY, person bigint NOT NULL, model text NOT NULL, input text NOT NULL, price bigint NOT NULL,
    status text NOT NULL, task text UNIQUE, result text, delivering_at timestamptz, delivered_at timestamptz
)
"""
PLAIN_LOCK = """
UPDATE plain SET delivering_at = now() WHERE task = $1 AND delivered_at IS NULL
AND (delivering_at IS NULL OR delivering_at < now() - interval '5 minutes') RETURNING id
"""


async def plain_lives(databases: "Sequence[Database]", tag: str, count: int) -> float:
    """The same lives as most bots live them, as many at a time as there are databases."""
    numbers = iter(range(count))

    async def one_after_another(database: "Database") -> None:
        for number in numbers:
            task = f"{tag}-{number}"
            job = await database.fetchval(
                "INSERT INTO plain (person, model, input, price, status) VALUES ($1, $2, $3, $4, 'queued') "
                "RETURNING id",
                *(number, "z-image", '{"prompt":"cat astronaut","aspect_ratio":"1:1"}', 800),
            )
            await database.execute("UPDATE plain SET task = $2, status = 'running' WHERE id = $1", job, task)
            await database.execute(
                "UPDATE plain SET status = 'done', result = $2 WHERE task = $1", task, f"{_PUBLIC}/{task}"
            )
            won = await database.fetchval(PLAIN_LOCK, task)
            await database.execute("UPDATE plain SET delivered_at = now() WHERE id = $1", won)

    started = time.perf_counter()
    await asyncio.gather(*(one_after_another(database) for database in databases))
    return count / (time.perf_counter() - started)


async def latency(world: World, seconds: int) -> dict[str, float]:
    """From a callback's arrival to the channel call, at a hundred jobs a second."""
    loop = asyncio.get_running_loop()
    world.provider.arrived.clear()
    world.channel.shown.clear()
    started = loop.time()
    orders = []
    for number in range(PACE * seconds):
        await asyncio.sleep(started + number / PACE - loop.time())
        orders.append(loop.create_task(world.engine.order(world.order(world.people[number % len(world.people)]))))
    jobs = await asyncio.gather(*orders)
    await asyncio.gather(*(world.watch.delivered(job.id) for job in jobs))
    took = sorted((shown - world.provider.arrived[task]) * 1000 for task, shown in world.channel.shown.items())
    return {"p50": round(took[len(took) // 2], 2), "p99": round(took[len(took) * 99 // 100], 2)}


async def waiting_cost(world: World, count: int) -> tuple[float, int]:
    """Bytes of this process for each job that waits at the provider, and tasks for all of them."""
    world.provider.calls_back = False
    gc.collect()
    before, tasks = _resident(), len(asyncio.all_tasks())
    for _ in range(0, count, IN_FLIGHT):
        await asyncio.gather(*(world.engine.order(world.order(person)) for person in world.people))
    while world.engine.worker.busy:  # noqa: ASYNC110 - nothing tells us, and nothing hurries
        await asyncio.sleep(0.05)
    gc.collect()
    world.provider.calls_back = True
    return max(0, _resident() - before) / count, len(asyncio.all_tasks()) - tasks


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


HISTORY = {
    "postgres": """
        INSERT INTO jobs (person_id, request_key, request_hash, correlation, provider, channel, address, model, input,
            price, purse, state, task_id, parts, delivery, notice, deadline_at, lease_token, created_at, submitted_at,
            ended_at, delivered_at)
        SELECT 1 + n % 1000, 'old-' || n, repeat('0', 64), 'old-' || n, 'instant', 'instant', '{"chat":1}', 'z-image',
            '{"prompt":"cat astronaut"}', 0, 'free', 'succeeded', 'old-' || n,
            '[{"kind":"file","value":"http://127.0.0.1/old.png","level":"address","step":"done","message":"1"}]',
            'delivered', 'none', now(), 2, now(), now(), now(), now()
        FROM generate_series(1, $1::int) AS n""",
    "sqlite": """
        INSERT INTO jobs (person_id, request_key, request_hash, correlation, provider, channel, address, model, input,
            price, purse, state, task_id, parts, delivery, notice, deadline_at, lease_token, created_at, submitted_at,
            ended_at, delivered_at)
        WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < :count)
        SELECT 1 + n % 1000, 'old-' || n, 'x', 'old-' || n, 'instant', 'instant', '{"chat":1}', 'z-image',
            '{"prompt":"cat astronaut"}', 0, 'free', 'succeeded', 'old-' || n,
            '[{"kind":"file","value":"http://127.0.0.1/old.png","level":"address","step":"done","message":"1"}]',
            'delivered', 'none', 1, 2, 1, 1, 1, 1
        FROM series""",
}


async def make_history(store: str, url: str, count: int) -> None:
    """Fill the table with finished jobs."""
    opened = await open_store(url, observer=Quiet())
    if store == "postgres":
        connection = await asyncpg.connect(url)
        await connection.execute(HISTORY[store], count)
        await connection.execute("VACUUM ANALYZE jobs")
        await connection.close()
    else:
        await opened._call(lambda database: database.execute(HISTORY[store], {"count": count}))  # type: ignore[attr-defined] # noqa: SLF001
    await opened.close()


@contextmanager
def databases(store: str, database_url: str | None) -> Iterator[Callable[[str], str]]:
    """A maker of empty databases, all gone afterwards."""
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


async def measure(store: str, make: Callable[[str], str], sizes: Sizes, say: Callable[[str], None]) -> dict[str, Any]:
    url = make("lives")
    figures: dict[str, Any] = {"store": store}
    async with open_world(url, "lives") as world:
        if store == "postgres":
            figures |= await _against_plain(url, world, sizes, say)
        else:
            figures |= await _alone(world, sizes, say)
        say("latency at 100 jobs per second …")
        figures["callback_to_channel_ms"] = await latency(world, sizes.paced_seconds)
        if sizes.history:
            say(f"{sizes.history:,} finished jobs …")
            figures["history_ratio"] = await _with_history(store, make("history"), world, sizes, say)
        say(f"{sizes.waiting:,} waiting jobs …")
        cost, tasks = await waiting_cost(world, sizes.waiting)
        figures["waiting_bytes_per_job"] = round(cost)
        figures["waiting_tasks"] = tasks
    load = Load(seconds=max(1.0, sizes.paced_seconds), starts=sizes.rounds, helps=sizes.rounds)
    return figures | await measure_service(make("service"), load, say)


async def _alone(world: World, sizes: Sizes, say: Callable[[str], None]) -> dict[str, Any]:
    await lives(world, sizes.lives // 4)
    ours = []
    for number in range(sizes.rounds):
        ours.append(await lives(world, sizes.lives))
        say(f"round {number + 1}: {ours[-1]:,.0f} lives per second")
    return {"lives_per_second": round(statistics.median(ours))}


async def _against_plain(url: str, world: World, sizes: Sizes, say: Callable[[str], None]) -> dict[str, Any]:
    """Ours, the plain protocol through a pool, and the plain protocol on connections of its own, in turn."""
    rates: dict[str, list[float]] = {"lives": [], "plain": [], "plain_dedicated": []}
    async with plain_databases(url) as (pool, dedicated):
        await plain_lives(pool, "warm", sizes.plain_lives // 4)
        await plain_lives(dedicated, "warm-dedicated", sizes.plain_lives // 4)
        await lives(world, sizes.lives // 4)
        for number in range(sizes.rounds):
            rates["lives"].append(await lives(world, sizes.lives))
            rates["plain"].append(await plain_lives(pool, f"plain-{number}", sizes.plain_lives))
            rates["plain_dedicated"].append(await plain_lives(dedicated, f"dedicated-{number}", sizes.plain_lives))
            now = {name: round(rate[-1]) for name, rate in rates.items()}
            say(f"round {number + 1}: {now['lives']:,} lives per second, plain {now['plain']:,}")
    figures: dict[str, Any] = {f"{name}_per_second": round(statistics.median(rate)) for name, rate in rates.items()}
    for name, plain in (("ratio", "plain"), ("ratio_dedicated", "plain_dedicated")):
        pairs = zip(rates["lives"], rates[plain], strict=True)
        figures[name] = round(statistics.median(ours / theirs for ours, theirs in pairs), 2)
    return figures


@asynccontextmanager
async def plain_databases(url: str) -> "AsyncIterator[tuple[Sequence[Database], Sequence[Database]]]":
    """What the plain protocol works with: one pool for all, or a connection for each."""
    async with asyncpg.create_pool(url, min_size=PLAIN_CONNECTIONS, max_size=PLAIN_CONNECTIONS) as pool:
        await pool.execute(PLAIN_TABLE)
        dedicated = [await asyncpg.connect(url) for _ in range(PLAIN_CONNECTIONS)]
        yield [pool] * PLAIN_CONNECTIONS, dedicated
        for connection in dedicated:
            await connection.close()


async def _with_history(store: str, url: str, empty: World, sizes: Sizes, say: Callable[[str], None]) -> float:
    """The cost of a life among many finished ones, as a multiple of its cost among few. Rounds alternate."""
    await make_history(store, url, sizes.history)
    ratios = []
    async with open_world(url, "history") as full:
        await lives(full, sizes.lives // 4)
        for number in range(sizes.rounds):
            among_few, among_many = await lives(empty, sizes.lives), await lives(full, sizes.lives)
            ratios.append(among_few / among_many)
            say(f"round {number + 1}: a life costs {ratios[-1]:.2f} times as much")
    return round(statistics.median(ratios), 2)


def run(store: str, database_url: str | None, sizes: Sizes, *, as_json: bool) -> int:
    """Measure and print; returns the exit status."""
    if store not in ("sqlite", "postgres"):
        print(f"--store is sqlite or postgres, not {store!r}", file=sys.stderr)  # noqa: T201
        return 2
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201

    with databases(store, database_url) as make:
        figures = uvloop.run(measure(store, make, sizes, say))
    if as_json:
        print(json.dumps(figures))  # noqa: T201
    else:
        for name, figure in figures.items():
            print(f"{name.replace('_', ' '):>24}  {figure}")  # noqa: T201
    return 0
