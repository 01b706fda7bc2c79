"""`genlock chaos`: kill, pause and disconnect real processes while simulated users order; report the guarantees."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import time
from typing import Any

import aiohttp

from genlock.app.databases import open_store
from genlock.domain.errors import Refusal
from genlock.log import Silent
from genlock.sandbox.chaos.disruptions import LEASE_SECONDS, Disruptor
from genlock.sandbox.chaos.evaluation import all_jobs, evaluate, order_history, percentiles, takeovers
from genlock.sandbox.chaos.users import ChaosUsers
from genlock.sandbox.fleet import WEBHOOK_KEY, Fleet, running_fleet
from genlock.sandbox.instance import Instance
from genlock.sandbox.kie.simulator import running_kie
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import guarded_folder
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
PRINT_SECONDS = 5.0
HISTORIES_MAX = 5


@dataclass(frozen=True, kw_only=True)
class Plan:
    jobs: int = 100
    instances: int = 1
    store: str = "sqlite"
    kill_every: float | None = None
    pause: bool = False
    restart_db: bool = False
    faults: bool = False
    #: run without a public URL: long polling and provider polling
    polling: bool = False
    seed: int = 1
    limit_seconds: float | None = None

    def check(self) -> None:
        if self.store not in {"sqlite", "postgres"}:
            raise Refusal(f"--store is sqlite or postgres, not {self.store!r}")
        if self.store == "sqlite" and self.instances > 1:
            raise Refusal("SQLite serves one process: use --instances 1, or --store postgres for several")
        if self.store == "sqlite" and self.restart_db:
            raise Refusal("SQLite has no server to restart: use --store postgres")

    @property
    def timeout_seconds(self) -> float:
        """How long users wait at most; much longer than it should take."""
        return self.limit_seconds or 240.0 + 0.6 * self.jobs


@dataclass(kw_only=True)
class ChaosRun:
    """All parts of one run."""

    plan: Plan
    fleet: Fleet
    records: Records
    users: ChaosUsers
    disruptor: Disruptor
    database_url: str
    problems: list[str] = field(default_factory=list)
    seconds: float = 0.0


Watch = Callable[[ChaosRun], None]


def run(plan: Plan, *, as_json: bool) -> int:
    """Run, print the report, and return the exit status."""
    plan.check()
    with ExitStack() as stack:
        folder = stack.enter_context(guarded_folder())
        database = stack.enter_context(PostgresServer.running()) if plan.store == "postgres" else None
        report, histories = asyncio.run(_run(plan, folder, database, ProgressPrinter()))
    if as_json:
        sys.stdout.write(json.dumps(report, ensure_ascii=False, indent=2) + "\n")
    else:
        _print(report)
    for lines in histories:
        sys.stderr.write("\n".join(lines) + "\n\n")
    return 0 if report["ok"] else 1


async def _run(
    plan: Plan, folder: Path, database: PostgresServer | None, watch: Watch
) -> tuple[dict[str, Any], list[list[str]]]:
    async with running_chaos(plan, folder, database) as chaos:
        await run_orders(chaos, watch)
        return await report(chaos)


@asynccontextmanager
async def running_chaos(
    plan: Plan, folder: Path, database: PostgresServer | None, **settings: str
) -> AsyncIterator[ChaosRun]:
    """Yield ready instances and users that have not ordered yet. `settings` override the defaults of chaos."""
    rng = Random(plan.seed)
    url = database.create_database() if database else f"sqlite:///{folder}/genlock.db"
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(running_telegram(limiter=True, seed=plan.seed, speed=TELEGRAM_SPEED))
        kie = await stack.enter_async_context(
            running_kie(webhook_key=WEBHOOK_KEY, speed=KIE_SPEED, seed=plan.seed, create_limit=(KIE_CREATES, 10.0))
        )
        all_settings = _default_settings(plan) | settings
        fleet = await stack.enter_async_context(
            running_fleet(telegram=telegram, kie=kie, folder=folder, database_url=url, settings=all_settings)
        )
        records = Records(telegram, kie)
        users = ChaosUsers(telegram, records, rng=rng, deadline=time() + plan.timeout_seconds)
        problems: list[str] = []
        disruptor = Disruptor(
            fleet=fleet,
            database=database,
            rng=rng,
            kill_every=plan.kill_every,
            pause=plan.pause,
            restart_db=plan.restart_db,
            failed=lambda error: problems.append(f"a disruption could not be carried out: {error!r}"),
        )
        await fleet.start(plan.instances)
        yield ChaosRun(
            plan=plan,
            fleet=fleet,
            records=records,
            users=users,
            disruptor=disruptor,
            database_url=url,
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


async def run_orders(chaos: ChaosRun, watch: Watch) -> None:
    """Place orders while disrupting, wait until all work is done, and stop the instances."""
    started = time()
    plan, fleet = chaos.plan, chaos.fleet
    watching = asyncio.get_running_loop().create_task(_watch(chaos, watch))
    try:
        if plan.faults:
            chaos.disruptor.set_faults()
        chaos.disruptor.begin()
        await chaos.users.order(plan.jobs, spread_seconds=plan.jobs / 50)
        await chaos.disruptor.end()
        if not await until_quiet(fleet.instances):
            chaos.problems.append(f"work was still open {QUIET_SECONDS_MAX:.0f} s after the last order had ended")
        for instance, status in zip(fleet.instances, await fleet.stop(), strict=True):
            if status:
                chaos.problems.append(f"{instance.name} ended with {status} when it was asked to stop")
    finally:
        watching.cancel()
        chaos.seconds = time() - started


async def _watch(chaos: ChaosRun, watch: Watch) -> None:
    while True:
        watch(chaos)
        await asyncio.sleep(0.5)


async def until_quiet(instances: Sequence[Instance]) -> bool:
    """Wait until no instance has open work (notices follow results, lost answers are retried); False on timeout."""
    deadline = time() + QUIET_SECONDS_MAX
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session:
        quiet = 0
        while quiet < 3 and time() < deadline:
            health = [await _health(session, instance.url) for instance in instances]
            idle = all(one.get(key) == 0 for one in health for key in ("busy", "queue_depth", "undelivered"))
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


async def report(chaos: ChaosRun) -> tuple[dict[str, Any], list[list[str]]]:
    """Return the report as JSON, and the histories of orders with problems."""
    store = await open_store(chaos.database_url, observer=Silent())
    try:
        users, records = chaos.users, chaos.records
        evaluation = await evaluate(records, store, users.orders, users.users, welcome=WELCOME_CREDITS * 1000)
        evaluation.violations += chaos.problems
        if len(users.orders) < chaos.plan.jobs:
            evaluation.violations.append(f"only {len(users.orders)} of {chaos.plan.jobs} orders could be placed")
        rows = await all_jobs(store)
    finally:
        await store.close()
    histories = [
        order_history(order, records, rows, chaos.fleet.log_lines()) for order in evaluation.concerned[:HISTORIES_MAX]
    ]
    return evaluation.as_json() | _figures(chaos), histories


def _figures(chaos: ChaosRun) -> dict[str, Any]:
    fleet, disruptions = chaos.fleet, chaos.disruptor.disruptions
    lines = fleet.log_lines()
    times = takeovers(lines, disruptions)
    ends = {prompt: tasks[0].ended for prompt, tasks in chaos.records.tasks().items()}
    ended = [(order, order.ended_at) for order in chaos.users.orders if order.ended_at]
    shown = [at - end for order, at in ended if (end := ends.get(order.prompt)) and chaos.records.results(order)]
    return {
        "takeover_seconds_max": round(max(times), 2) if times else None,
        "takeovers": len(times),
        "kills": sum(disruption.what == "kill" for disruption in disruptions),
        "pauses": sum(disruption.what == "pause" for disruption in disruptions),
        "ends_by_themselves": sum(disruption.what == "end" for disruption in disruptions),
        "database_restarts": chaos.disruptor.restarts,
        "seconds": round(chaos.seconds, 1),
        "order_seconds": percentiles([at - order.asked_at for order, at in ended]),
        "result_to_chat_seconds": percentiles(shown),
        "start_seconds": percentiles([seconds for instance in fleet.instances for seconds in instance.starts]),
        "refused_by_telegram": fleet.telegram.limiter.refused,
        "refused_by_kie": fleet.kie.service.creates.refused + fleet.kie.service.queries.refused,
        "stage_errors": sum(line["event"] == "STAGE_ERROR" for line in lines),
        "seed": chaos.plan.seed,
    }


class ProgressPrinter:
    """Print progress: on one changing line in a terminal, else on a new line every few seconds."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - slow to import

        self._console = Console(stderr=True)
        self._printed_at = 0.0
        self._started = time()

    def __call__(self, chaos: ChaosRun) -> None:
        users, disruptor = chaos.users, chaos.disruptor
        now = time()
        disruptions = Counter(disruption.what for disruption in disruptor.disruptions)
        text = (
            f"{now - self._started:5.0f} s  {users.ended} of {chaos.plan.jobs} orders ended, "
            f"{len(users.orders) - users.ended} open, {disruptions['kill']} kills, "
            f"{disruptions['pause']} pauses, {disruptor.restarts} database restarts"
        )
        if self._console.is_terminal:
            self._console.print(text, end="\r", highlight=False, soft_wrap=True)
        elif now - self._printed_at >= PRINT_SECONDS:
            self._printed_at = now
            self._console.print(text, highlight=False, soft_wrap=True)


def _print(report: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, show_header=False)
    for key, value in report.items():
        if key in {"violations", "concerned"}:
            value = "\n".join(value) or "none"  # noqa: PLW2901 - shown, not changed
        if isinstance(value, dict):
            value = ", ".join(f"{name} {one}" for name, one in value.items()) or "none"  # noqa: PLW2901
        table.add_row(key.replace("_", " "), str(value))
    console = Console()
    console.print()
    console.print(table)
    good = "[green]Every order ended exactly once.[/green]"
    console.print(good if report["ok"] else "[red]A guarantee was broken: see above.[/red]")
