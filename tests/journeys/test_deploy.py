"""A rolling deploy: new instances come while old ones work, then the old ones are asked to go."""

import asyncio
from pathlib import Path
from statistics import median

import pytest

from genlock.sandbox.chaos.chaos import Plan, World, report, running_world, until_quiet
from genlock.sandbox.postgres import PostgresServer
from genlock.sandbox.processes import guarded_folder

ORDERS = 48
#: more than what is usual on this machine, which has other things to do
LATE_SECONDS = 5.0


async def until_ended(world: World, count: int) -> None:
    async with asyncio.timeout(60):
        while world.people.ended < count:  # noqa: ASYNC110 - the people do not tell
            await asyncio.sleep(0.05)


def lateness(world: World) -> list[float]:
    """For every order that ended, how much longer it took than its task at the provider."""
    tasks = world.records.tasks()
    found = []
    for order in world.people.orders:
        if order.ended_at is not None:
            [task] = tasks[order.prompt]
            assert task.ended is not None
            found.append(order.ended_at - order.asked_at - (task.ended - task.created))
    return found


@pytest.mark.timeout(180)
async def test_a_rolling_deploy_under_load_loses_doubles_and_delays_nothing(own_postgres: PostgresServer) -> None:
    plan = Plan(jobs=ORDERS, instances=2, store="postgres")
    with guarded_folder() as folder:
        async with running_world(plan, Path(folder), own_postgres) as world:
            fleet = world.fleet
            ordering = asyncio.create_task(world.people.order(ORDERS, spread_seconds=6.0))
            await until_ended(world, ORDERS // 6)
            usual = median(lateness(world))
            old = list(fleet.instances)
            new = [fleet.add() for _ in old]
            await asyncio.gather(*(instance.ready() for instance in new))
            for instance in old:
                assert world.people.ended < ORDERS, "the deploy must happen under load"
                assert await instance.stop() == 0
            await ordering
            assert await until_quiet(new)
            assert await fleet.stop() == [0, 0]
            told, stories = await report(world)

    assert told["violations"] == []
    assert told["ok"], (told, stories)
    assert (told["delivered_once"], told["failed_told"]) == (ORDERS, 0), (told, stories)
    assert len(lateness(world)) == ORDERS
    assert max(lateness(world)) <= usual + LATE_SECONDS
    both = {line["process"] for line in fleet.said() if line["event"] == "MARK_DELIVERED"}
    assert both & {instance.name for instance in old}
    assert both & {instance.name for instance in new}
