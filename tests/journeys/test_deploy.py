"""A rolling deploy: new instances start while the old ones work, then the old ones are stopped."""

import asyncio
from pathlib import Path
from statistics import median

import pytest

from genlock.sandbox.chaos.chaos import ChaosRun, report, running_chaos
from genlock.sandbox.chaos.disrupted_run import Plan, until_quiet
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import guarded_folder
from tests.changes import poll_until

ORDERS = 48
#: allowed delay beyond the usual ones; a lease that was not released at the stop would cost 30 s
LATE_SECONDS = 5.0
#: how many usual delays an order may take that changes its instance: on a busy machine everything takes longer
USUAL_DELAYS = 3


async def until_ended(chaos_run: ChaosRun, count: int) -> None:
    await poll_until(lambda: chaos_run.users.ended >= count, seconds=60)


def delays(chaos_run: ChaosRun) -> list[float]:
    """For every ended order: seconds beyond the duration of its task at the provider."""
    tasks = chaos_run.records.tasks()
    found = []
    for order in chaos_run.users.orders:
        if order.ended_at is not None:
            [task] = tasks[order.prompt]
            assert task.ended is not None
            found.append(order.ended_at - order.asked_at - (task.ended - task.created))
    return found


@pytest.mark.timeout(180)
async def test_a_rolling_deploy_under_load_delivers_every_order_once_and_in_time(own_postgres: PostgresServer) -> None:
    plan = Plan(jobs=ORDERS, instances=2, store="postgres")
    with guarded_folder() as folder:
        async with running_chaos(plan, Path(folder), own_postgres) as chaos_run:
            fleet = chaos_run.fleet
            ordering = asyncio.create_task(chaos_run.users.order(ORDERS, spread_seconds=6.0))
            await until_ended(chaos_run, ORDERS // 6)
            usual_delay = median(delays(chaos_run))
            old = list(fleet.instances)
            new = [fleet.add() for _ in old]
            await asyncio.gather(*(instance.wait_until_ready() for instance in new))
            for instance in old:
                assert chaos_run.users.ended < ORDERS, "the deploy must happen under load"
                assert await instance.stop() == 0
            await ordering
            assert await until_quiet(new)
            assert await fleet.stop() == [0, 0]
            result, histories = await report(chaos_run)

    assert result["violations"] == []
    assert result["ok"], (result, histories)
    assert (result["delivered_once"], result["failed_told"]) == (ORDERS, 0), (result, histories)
    assert len(delays(chaos_run)) == ORDERS
    assert max(delays(chaos_run)) <= USUAL_DELAYS * usual_delay + LATE_SECONDS
    both = {line["process"] for line in fleet.log_lines() if line["event"] == "MARK_DELIVERED"}
    assert both & {instance.name for instance in old}
    assert both & {instance.name for instance in new}
