"""Chaos in chats: simulated users order from a bot whose processes are killed; the chats show what became of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genlock.app.databases import open_store
from genlock.log import Silent
from genlock.sandbox.chaos.disrupted_run import (
    WELCOME_CREDITS,
    DisruptedRun,
    Plan,
    figures_of,
    finish_work,
    place_orders,
    running_processes,
    stop_instances,
)
from genlock.sandbox.chaos.evaluation import all_jobs, evaluate, order_history, percentiles
from genlock.sandbox.chaos.users import ChaosUsers
from genlock.sandbox.postgres import PostgresServer

HISTORIES_MAX = 5


@dataclass(kw_only=True)
class ChaosRun(DisruptedRun):
    users: ChaosUsers


@asynccontextmanager
async def running_chaos(
    plan: Plan, folder: Path, database: PostgresServer | None, **settings: str
) -> AsyncIterator[ChaosRun]:
    """Yield ready instances and users that have not ordered yet. `settings` override the defaults of chaos."""
    async with running_processes(plan, folder, database, settings) as run:
        users = ChaosUsers(run.fleet.telegram, run.records, rng=run.rng, deadline=run.deadline)
        yield ChaosRun(**vars(run), users=users)


async def run_orders(chaos: ChaosRun, watch: Callable[[], None] = lambda: None) -> None:
    """Place orders while disrupting, wait until all work is done, and stop the instances."""
    await place_orders(chaos, chaos.users, watch)
    await finish_work(chaos)
    await stop_instances(chaos)


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
    return evaluation.as_json() | figures_of(chaos) | _figures(chaos), histories


def _figures(chaos: ChaosRun) -> dict[str, Any]:
    ends = {prompt: tasks[0].ended for prompt, tasks in chaos.records.tasks().items()}
    ended = [(order, order.ended_at) for order in chaos.users.orders if order.ended_at]
    shown = [at - end for order, at in ended if (end := ends.get(order.prompt)) and chaos.records.results(order)]
    return {
        "order_seconds": percentiles([at - order.asked_at for order, at in ended]),
        "result_to_chat_seconds": percentiles(shown),
        "refused_by_telegram": chaos.fleet.telegram.limiter.refused,
    }
