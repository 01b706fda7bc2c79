"""An instance may crash at any call, and another one finishes its work.

A job is processed once to count the calls that an instance makes. Then it is processed again for each of them, by an
instance that crashes just before or just after that call, and another one that continues.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from genlock.domain.delivery import Level
from genlock.domain.job import Job
from genlock.domain.money import HoldState
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.engine.invariants import End, ends
from tests.engine.crash_points import CrashPoint, new_world
from tests.engine.fake_provider import URL, callback_body, success
from tests.engine.faults import FaultProxy
from tests.engine.world import PRICE, World, die, idle, work

SECOND = f"{URL}?second"


def crashing_engine(world: World, crash: CrashPoint) -> Engine:
    proxies = [FaultProxy(target) for target in (world.store, world.provider, world.channel)]
    for proxy in proxies:
        proxy.tap = crash
    store, provider, channel = proxies
    return world.engine(store=store, provider=provider, channel=channel)


Scenario = Callable[[World, Engine], Coroutine[Any, Any, None]]


async def by_callback(world: World, engine: Engine) -> None:
    """A result of two parts that are refused on the first level."""
    world.channel.refused = {Level.ADDRESS}
    await ordered(world, engine)
    await called_back(world, engine, urls=[URL, SECOND])


async def by_poll(world: World, engine: Engine) -> None:
    await ordered(world, engine, placeholder=None)
    world.clock.advance(10)
    await work(engine)


async def onto_a_deleted_message(world: World, engine: Engine) -> None:
    job = await ordered(world, engine)
    world.channel.delete(job.placeholder)
    await called_back(world, engine, urls=[URL])


async def into_failure(world: World, engine: Engine) -> None:
    await ordered(world, engine)
    await called_back(world, engine, state="failed", code="nsfw")


async def into_cancellation(world: World, engine: Engine) -> None:
    job = await ordered(world, engine)
    await engine.cancel(job.id, "user")
    await idle(engine)
    await called_back(world, engine, urls=[URL], cost=10)


async def ordered(world: World, engine: Engine, **changes: Any) -> Job:
    job = await engine.order(world.order(**changes))
    await idle(engine)
    return job


async def called_back(world: World, engine: Engine, **body: Any) -> None:
    [(job, _)] = world.provider.created
    await engine.callback("fake", world.provider.token(job), callback_body(task=f"{world.provider.tag}-1", **body))
    await idle(engine)


async def work_until_crash(world: World, scenario: Scenario, crash: CrashPoint) -> None:
    """Run the scenario on an instance until it ends or the instance crashes."""
    engine = crashing_engine(world, crash)
    world.provider.reports[f"{world.provider.tag}-1"] = success(f"{world.provider.tag}-1")
    await world.store.heartbeat(engine.ctx.instance, 1000)
    try:
        await asyncio.ensure_future(scenario(world, engine))
    except (asyncio.CancelledError, ValueError):
        assert crash.dead
    await die(engine)


async def finish(world: World) -> None:
    """Let another instance do what its periodic tasks would, until no work is left."""
    engine = world.engine()
    world.clock.advance(EngineRules().silent_seconds + 1)
    for _ in range(10):
        await engine.worker.heartbeat()
        await engine.sweeper.sweep()
        await idle(engine)
        await work(engine)
        if await world.store.violations(settled=True) == []:
            return
        world.clock.advance(EngineRules().grace_seconds + 1)
    raise AssertionError(await world.store.violations(settled=True))


async def check(world: World) -> None:
    jobs = await world.store.jobs(account_id=world.account)
    assert len(world.provider.created) <= 1
    assert len(world.channel.notices) <= 1
    for job in jobs:
        [end] = ends(job)
        if end is End.DELIVERED:
            assert {len(world.channel.showing(part.value)) for part in job.parts} == {1}
        elif end is End.RETURNED:
            assert len(world.channel.showing(job.error_code)) == 1
    assert len(world.channel.showing(URL)) <= 1
    assert await world.spent() == PRICE * sum(job.hold_state is HoldState.CAPTURED for job in jobs)


@pytest.mark.parametrize("scenario", [by_callback, by_poll, onto_a_deleted_message, into_failure, into_cancellation])
async def test_an_instance_may_crash_at_any_call(world: World, scenario: Scenario) -> None:
    whole = CrashPoint()
    await work_until_crash(world, scenario, whole)
    assert not whole.dead
    assert await world.store.violations(settled=True) == []
    assert len(whole.calls) >= 18

    for call in range(len(whole.calls)):
        after = await new_world(world)
        crash = CrashPoint(call)
        await work_until_crash(after, scenario, crash)
        assert crash.dead, whole.calls[call]
        await finish(after)
        await check(after)
