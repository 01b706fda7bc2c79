"""Kie.ai's rate limits are kept by all instances together, and most of the allowance is used."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from time import sleep
from typing import Any

import pytest

from genlock.app.engine import make_engine
from genlock.domain.job import NewJob
from genlock.engine import limits
from genlock.engine.context import EngineRules
from genlock.engine.engine import Engine
from genlock.ports.provider import RateLimit
from genlock.providers.kie.bundle import rate_limits
from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.service import Window
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from genlock.sandbox.simulation.virtual_time import VirtualClock
from tests.changes import poll_until
from tests.engine.fake_channel import FakeChannel
from tests.engine.recorder import Recorder
from tests.providers.accelerated_time import open_on_accelerated_time, run_accelerated
from tests.providers.models import CATALOG

INSTANCES = 3
ORDERS = 125
SPEED = 200.0
LIMITS = {f"{call}:kie": limit for call, limit in rate_limits().items()}
QUERIES_ONLY = {"status:kie": LIMITS["status:kie"]}
#: as in production, but no instance counts as dead when the database is slow for a moment of accelerated time
RULES = EngineRules(limits=LIMITS, silent_seconds=600.0, lease_seconds=600.0)


@asynccontextmanager
async def instances(url: str, simulator: KieSimulator, rules: EngineRules) -> AsyncIterator[list[Engine]]:
    async with AsyncExitStack() as stack:
        engines = []
        for _ in range(INSTANCES):
            recorder = Recorder()
            clock = VirtualClock(asyncio.get_running_loop())
            store = await open_on_accelerated_time(url, recorder, clock)
            stack.push_async_callback(store.close)
            kie = Kie(key=simulator.key, api_url=simulator.url)
            stack.push_async_callback(kie.close)
            engine = make_engine(store, recorder, providers={"kie": kie}, channels={"chat": FakeChannel()}, rules=rules)
            await engine.start()
            stack.push_async_callback(engine.stop)
            engines.append(engine)
        yield engines


async def burst(engines: list[Engine], count: int) -> None:
    account_id = await engines[0].ctx.store.ensure_account("chat", "bot", "1")
    plain = NewJob(
        account_id=account_id,
        request_key="",
        provider="kie",
        channel="chat",
        address="1",
        model="z-image",
        input='{"prompt":"a fox"}',
        price=0,
        deadline_seconds=3600,
        placeholder="m",
    )
    orders = [replace(plain, request_key=str(number)) for number in range(count)]
    await asyncio.gather(*(engines[number % INSTANCES].order(order) for number, order in enumerate(orders)))


def used(window: Window) -> float:
    """The share of the allowance that was used from the first call to the last."""
    seconds = window.admitted[-1] - window.admitted[0]
    return (len(window.admitted) - 1) / (window.count * seconds / window.seconds)


def test_a_burst_of_orders_on_three_instances_meets_no_refusal_and_uses_the_allowance(
    migrated_postgres_url: str,
) -> None:
    """The burst takes a minute of accelerated time."""

    async def scenario() -> None:
        async with (
            running_kie(catalog=CATALOG, create_limit=(20, 10.0), speed=0.01) as simulator,
            instances(migrated_postgres_url, simulator, replace(RULES, poll_seconds=10_000.0)) as engines,
        ):
            await burst(engines, ORDERS)
            window = simulator.service.creates
            await poll_until(lambda: len(window.admitted) == ORDERS, seconds=600)
            assert window.refused == 0
            assert used(window) >= 0.9

    run_accelerated(scenario(), SPEED)


def test_status_queries_of_three_instances_meet_no_refusal_and_use_the_allowance(migrated_postgres_url: str) -> None:
    """Far more queries are due than the limit allows."""

    async def scenario() -> None:
        async with (
            running_kie(catalog=CATALOG, create_limit=(999, 1.0), status_limit=(10, 1.0), speed=0.01) as simulator,
            instances(
                migrated_postgres_url, simulator, replace(RULES, limits=QUERIES_ONLY, poll_seconds=1.0)
            ) as engines,
        ):
            await burst(engines, 100)
            window = simulator.service.queries
            await poll_until(lambda: len(window.admitted) >= 200, seconds=60)
            assert window.refused == 0
            assert used(window) >= 0.9

    run_accelerated(scenario(), SPEED)


@pytest.mark.parametrize(
    ("key", "count", "seconds", "held_up"), [("create:kie", 20, 10.0, 1), ("status:kie", 10, 1.0, 0)]
)
def test_the_configured_intervals_keep_the_limit_in_every_window(
    key: str, count: int, seconds: float, held_up: int
) -> None:
    """One call more than allowed never fits into a window; for creates not even if the first of them was late."""
    limit = LIMITS[key]
    assert limit.burst == 1
    assert limit.interval * (count - held_up) > seconds
    assert seconds / limit.interval / count >= 0.9


async def test_a_permit_that_would_be_used_too_late_is_given_up() -> None:
    """The process was blocked: a late call would come too close to the next ones."""

    class Permits:
        reserved = 0
        taken = asyncio.Event()

        async def reserve_permits(self, *_: Any) -> list[float]:
            self.reserved += 1
            self.taken.set()
            return [0.05]

    permits = Permits()
    limiter = limits.RateLimiter(permits, {"a": RateLimit(interval=0.01, late=0.4), "b": RateLimit(interval=0.01)})  # type: ignore[arg-type]
    for key, reserved in (("a", 2), ("b", 1)):
        permits.reserved = 0
        permits.taken.clear()
        waiting = asyncio.ensure_future(limiter.acquire(key))
        await permits.taken.wait()
        asyncio.get_running_loop().call_soon(sleep, 0.6)  # blocks the event loop
        await waiting
        assert permits.reserved == reserved
