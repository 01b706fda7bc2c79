"""A run of real processes that are killed, paused and cut off while orders are placed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import time
from typing import Any, Protocol

import aiohttp

from genlock.domain.errors import Refusal
from genlock.sandbox.chaos.disruptions import LEASE_SECONDS, Disruptor
from genlock.sandbox.chaos.evaluation import percentiles, takeovers
from genlock.sandbox.fleet import WEBHOOK_KEY, Fleet, running_fleet
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.records import Records
from genlock.sandbox.telegram.simulator import running_telegram

WELCOME_CREDITS = 1000
#: a task takes its usual time divided by this
KIE_SPEED = 20.0
#: Telegram retries webhook calls minutes apart after a few failures; the simulator does it this much faster
TELEGRAM_SPEED = 20.0
#: create calls per 10 s, for the product and for the simulator's own limit; Kie.ai's real 20 would be too slow
KIE_CREATES = 400
GRACE_SECONDS = 10.0
QUIET_SECONDS_MAX = 120.0
ORDERS_PER_SECOND = 50


@dataclass(frozen=True, kw_only=True)
class Plan:
    jobs: int = 100
    instances: int = 1
    store: str = "sqlite"
    #: "chat": users order in chats; "api": clients order through the HTTP API
    through: str = "chat"
    kill_every: float | None = None
    pause: bool = False
    restart_db: bool = False
    faults: bool = False
    #: run without a public URL: long polling and provider polling
    polling: bool = False
    seed: int = 1
    limit_seconds: float | None = None

    def check(self) -> None:
        if self.through not in {"chat", "api"}:
            raise Refusal(f"--through is chat or api, not {self.through!r}")
        if self.store not in {"sqlite", "postgres"}:
            raise Refusal(f"--store is sqlite or postgres, not {self.store!r}")
        if self.store == "sqlite" and self.instances > 1:
            raise Refusal("SQLite serves one process: use --instances 1, or --store postgres for several")
        if self.store == "sqlite" and self.restart_db:
            raise Refusal("SQLite has no server to restart: use --store postgres")

    @property
    def timeout_seconds(self) -> float:
        """How long the orders may take at most; much longer than they should."""
        return self.limit_seconds or 240.0 + 1.5 * self.jobs


class Load(Protocol):
    """Places the orders of a run: users of chats, or clients of the API."""

    @property
    def placed(self) -> int: ...

    @property
    def ended(self) -> int: ...

    async def order(self, count: int, *, spread_seconds: float) -> None:
        """Place orders; return when all have ended, or at the deadline."""


@dataclass(kw_only=True)
class DisruptedRun:
    """The processes of a run, and what happens to them."""

    plan: Plan
    fleet: Fleet
    records: Records
    disruptor: Disruptor
    database_url: str
    rng: Random
    problems: list[str] = field(default_factory=list)
    started: float = field(default_factory=time)
    seconds: float = 0.0

    @property
    def deadline(self) -> float:
        return self.started + self.plan.timeout_seconds


@asynccontextmanager
async def running_processes(
    plan: Plan,
    folder: Path,
    database: PostgresServer | None,
    settings: dict[str, str],
    private_hosts: Sequence[str] = (),
    prepare: Callable[[str], Awaitable[None]] | None = None,
) -> AsyncIterator[DisruptedRun]:
    """Yield ready instances, which nothing disrupts yet. `settings` override the defaults of chaos.

    `prepare` is called with the URL of the database before any instance uses it.
    """
    url = database.create_database() if database else f"sqlite:///{folder}/genlock.db"
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(
            running_telegram(limiter=True, seed=plan.seed, speed=TELEGRAM_SPEED, files=folder / "telegram")
        )
        kie = await stack.enter_async_context(
            running_kie(webhook_key=WEBHOOK_KEY, speed=KIE_SPEED, seed=plan.seed, create_limit=(KIE_CREATES, 10.0))
        )
        fleet = await stack.enter_async_context(
            running_fleet(
                telegram=telegram,
                kie=kie,
                folder=folder,
                database_url=url,
                private_hosts=private_hosts,
                settings=_default_settings(plan) | settings,
            )
        )
        if prepare is not None:
            await prepare(url)
        await fleet.start(plan.instances)
        yield _make_run(plan, fleet, database, Records(telegram, kie), url)


def _make_run(
    plan: Plan, fleet: Fleet, database: PostgresServer | None, records: Records, database_url: str
) -> DisruptedRun:
    rng, problems = Random(plan.seed), list[str]()
    disruptor = Disruptor(
        fleet=fleet,
        database=database,
        rng=rng,
        kill_every=plan.kill_every,
        pause=plan.pause,
        restart_db=plan.restart_db,
        failed=lambda error: problems.append(f"a disruption could not be carried out: {error!r}"),
    )
    return DisruptedRun(
        plan=plan,
        fleet=fleet,
        records=records,
        disruptor=disruptor,
        database_url=database_url,
        rng=rng,
        problems=problems,
    )


def _default_settings(plan: Plan) -> dict[str, str]:
    settings = {
        "GENLOCK_WELCOME_CREDITS": str(WELCOME_CREDITS),
        "GENLOCK_KIE_CREATES_PER_10_SECONDS": str(KIE_CREATES),
        "GENLOCK_GRACE_SECONDS": str(GRACE_SECONDS),
    }
    if plan.polling:
        settings["GENLOCK_PUBLIC_URL"] = ""
    if plan.pause:
        settings["GENLOCK_LEASE_SECONDS"] = str(LEASE_SECONDS)
    return settings


async def place_orders(run: DisruptedRun, load: Load, watch: Callable[[], None]) -> None:
    """Place orders while disrupting; then bring every instance up again."""
    watching = asyncio.get_running_loop().create_task(_watch(watch))
    try:
        if run.plan.faults:
            run.disruptor.set_faults()
        run.disruptor.begin()
        await load.order(run.plan.jobs, spread_seconds=run.plan.jobs / ORDERS_PER_SECOND)
        await run.disruptor.end()
    finally:
        watching.cancel()
        run.seconds = time() - run.started


async def _watch(watch: Callable[[], None]) -> None:
    while True:
        watch()
        await asyncio.sleep(0.5)


async def finish_work(run: DisruptedRun) -> None:
    """Wait until no instance has open work."""
    if not await until_quiet(run.fleet.instances):
        run.problems.append(f"work was still open {QUIET_SECONDS_MAX:.0f} s after the last order had ended")


async def stop_instances(run: DisruptedRun) -> None:
    for instance, status in zip(run.fleet.instances, await run.fleet.stop(), strict=True):
        if status:
            run.problems.append(f"{instance.name} ended with {status} when it was asked to stop")


async def until_quiet(instances: Sequence[Instance]) -> bool:
    """Wait until no instance has open work (notices follow results, lost answers are retried); False on timeout."""
    deadline = time() + QUIET_SECONDS_MAX
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        quiet = 0
        while quiet < 3 and time() < deadline:
            health = [await _health(session, instance.url) for instance in instances]
            idle = all(answer.get(key) == 0 for answer in health for key in ("busy", "queue_depth", "undelivered"))
            quiet = quiet + 1 if idle else 0
            await asyncio.sleep(0.5)
    return quiet == 3


async def _health(session: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    try:
        async with session.get(f"{url}/health") as response:
            health: dict[str, Any] = await response.json()
            return health
    except (aiohttp.ClientError, TimeoutError, OSError):
        return {}


def figures_of(run: DisruptedRun) -> dict[str, Any]:
    """Return what was done to the processes, and how they recovered."""
    fleet, disruptions = run.fleet, run.disruptor.disruptions
    lines = fleet.log_lines()
    times = takeovers(lines, disruptions)
    return {
        "takeover_seconds_max": round(max(times), 2) if times else None,
        "takeovers": len(times),
        "kills": sum(disruption.what == "kill" for disruption in disruptions),
        "pauses": sum(disruption.what == "pause" for disruption in disruptions),
        "ends_by_themselves": sum(disruption.what == "end" for disruption in disruptions),
        "database_restarts": run.disruptor.restarts,
        "seconds": round(run.seconds, 1),
        "start_seconds": percentiles([seconds for instance in fleet.instances for seconds in instance.starts]),
        "refused_by_kie": fleet.kie.service.creates.refused + fleet.kie.service.queries.refused,
        "stage_errors": sum(line["event"] == "STAGE_ERROR" for line in lines),
        "seed": run.plan.seed,
    }
