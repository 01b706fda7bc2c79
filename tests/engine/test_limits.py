"""Rate limits: permits that all instances share, reserved in the store and handed out by the limiter."""

import asyncio
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from genlock.domain.errors import ProviderBusy, StoreUnavailable
from genlock.domain.job import State
from genlock.engine.context import EngineRules
from genlock.engine.limits import HORIZON_SECONDS, QUIET_SECONDS, RETRY_SECONDS_MAX, RateLimiter
from genlock.ports.provider import RateLimit
from tests.changes import PATIENCE_SECONDS
from tests.engine.faults import FaultProxy
from tests.engine.world import World, idle, work
from tests.loop_clock import LoopClock


async def reserve(world: World, limit: RateLimit, count: int) -> list[float]:
    return await world.store.reserve_permits("create:fake", count, limit.interval, limit.burst, HORIZON_SECONDS)


async def test_a_key_without_a_limit_is_free(world: World) -> None:
    limits = RateLimiter(world.store, {"other": RateLimit(interval=1000)})
    await asyncio.gather(*(limits.acquire("create:fake") for _ in range(100)))
    assert await reserve(world, RateLimit(interval=1.0, burst=1), 1) == [0.0], "no permit was reserved"


async def test_three_instances_together_keep_one_rate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """In real time: no permit is granted before it is due, and none is lost."""
    world.clock.run()
    loop = asyncio.get_running_loop()
    limit = RateLimit(interval=0.02, burst=5)
    instances = [RateLimiter(world.store, {"create:fake": limit}) for _ in range(3)]
    times: list[float] = []
    reserved: list[float] = []
    from_store = world.store.reserve_permits

    async def reserve_permits(*arguments: Any) -> list[float]:
        waits = await from_store(*arguments)
        reserved.extend(waits)
        return waits

    monkeypatch.setattr(world.store, "reserve_permits", reserve_permits)

    async def one(limits: RateLimiter) -> None:
        await limits.acquire("create:fake")
        times.append(loop.time())

    start = loop.time()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*(one(limits) for limits in instances for _ in range(10)))

    times.sort()
    assert len(times) == len(reserved) == 30
    assert max(reserved) <= 30 * limit.interval
    for number, time in enumerate(times):
        # The loop's clock may fire a timer one tick early.
        assert time - start >= (number - limit.burst + 1) * limit.interval - 0.005


async def test_permits_are_an_interval_apart_after_the_burst(world: World) -> None:
    limit = RateLimit(interval=0.5, burst=4)
    waits = await reserve(world, limit, 7)
    assert waits == pytest.approx([0, 0, 0, 0, 0.5, 1.0, 1.5], abs=1e-5)


async def test_nothing_is_reserved_beyond_the_horizon(world: World) -> None:
    limit = RateLimit(interval=0.5, burst=1)
    first = await reserve(world, limit, 100)
    assert first == pytest.approx([0.5 * turn for turn in range(5)], abs=1e-5)
    assert await reserve(world, limit, 100) == []

    world.clock.advance(0.5)
    assert await reserve(world, limit, 100) == pytest.approx([HORIZON_SECONDS], abs=1e-5)


async def test_a_pause_allows_one_burst_and_no_more(world: World) -> None:
    limit = RateLimit(interval=0.5, burst=3)
    await reserve(world, limit, 100)
    world.clock.advance(10_000)
    waits = await reserve(world, limit, 5)
    assert waits == pytest.approx([0, 0, 0, 0.5, 1.0], abs=1e-5)


async def test_requests_beyond_the_horizon_are_refused_with_spread_waits(world: World) -> None:
    limits = RateLimiter(world.store, {"create:fake": RateLimit(interval=0.5, burst=1)})
    answers = [asyncio.ensure_future(limits.acquire("create:fake")) for _ in range(20)]
    done, waiting = await asyncio.wait(answers, return_when=asyncio.FIRST_EXCEPTION)
    for answer in waiting:
        answer.cancel()

    busy = sorted(error.after for answer in done if isinstance(error := answer.exception(), ProviderBusy))
    assert len(busy) == 15
    assert all(later - earlier == pytest.approx(0.5) for earlier, later in pairwise(busy))
    assert busy[0] >= HORIZON_SECONDS / 2


async def refused_wait(limits: RateLimiter, *, is_new: bool = False) -> float:
    with pytest.raises(ProviderBusy) as busy:
        await limits.acquire("create:fake", is_new=is_new)
    return busy.value.after


async def asks_again(limits: RateLimiter, *, is_new: bool = False) -> tuple[float, float]:
    """Let a request be refused; return the earliest and the latest time at which it was told to ask again."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    wait = await refused_wait(limits, is_new=is_new)
    return began + wait, loop.time() + wait


async def test_orders_of_a_backlog_ask_again_one_after_the_other_and_new_ones_behind_them(world: World) -> None:
    """Refused one by one, as orders come: if each came back after the same second, all would ask every second."""
    proxy = FaultProxy(world.store)
    interval = 2.5  # much longer than a slow machine takes to ask
    limits = RateLimiter(proxy, {"create:fake": RateLimit(interval=interval, burst=1)})
    await reserve(world, RateLimit(interval=interval), 100)  # all permits of the horizon
    times = [await asks_again(limits) for _ in range(10)]
    asked = proxy.answered["reserve_permits"]
    times.append(await asks_again(limits, is_new=True))
    for (earliest, latest), (next_earliest, next_latest) in pairwise(times):
        assert next_earliest - latest - 1e-6 <= interval <= next_latest - earliest + 1e-6
    assert proxy.answered["reserve_permits"] == asked, "an order that must wait anyway costs no statement"


async def test_no_order_of_a_long_backlog_waits_longer_than_half_a_minute_before_it_asks_again(world: World) -> None:
    limits = RateLimiter(world.store, {"create:fake": RateLimit(interval=0.5, burst=1)})
    await reserve(world, RateLimit(interval=0.5), 100)
    waits = [await refused_wait(limits, is_new=number > 0) for number in range(500)]
    assert max(waits) <= RETRY_SECONDS_MAX
    per_second = Counter(int(wait) for wait in waits)
    assert max(per_second.values()) <= 3 * 500 / RETRY_SECONDS_MAX, "they share the time evenly"


async def test_a_new_order_asks_at_once_when_those_before_it_are_gone(world: World, loop_clock: LoopClock) -> None:
    """Cancelled orders never ask again: the times reserved for them must not hold up others."""
    limits = RateLimiter(world.store, {"create:fake": RateLimit(interval=0.001, burst=1)})
    await reserve(world, RateLimit(interval=0.001), 10_000)
    for _ in range(100):
        await refused_wait(limits)
    world.clock.advance(10)
    loop_clock.advance(QUIET_SECONDS)
    permit = await limits.acquire("create:fake", is_new=True)
    assert not permit.missed


async def test_orders_without_a_slot_ask_again_the_later_the_more_of_them_wait(world: World) -> None:
    limits = RateLimiter(world.store, {})
    waits = [limits.slot_wait("fake") for _ in range(1000)]
    assert max(waits) <= RETRY_SECONDS_MAX
    assert max(Counter(int(wait) for wait in waits).values()) <= 3 * 1000 / RETRY_SECONDS_MAX
    assert limits.slot_wait("other") < 1.0


async def test_a_database_failure_is_raised_in_every_waiting_request_and_the_next_gets_a_permit(world: World) -> None:
    proxy = FaultProxy(world.store)
    limits = RateLimiter(proxy, {"create:fake": RateLimit(interval=0.001, burst=10)})
    proxy.faults.add("reserve_permits", StoreUnavailable())
    answers = await asyncio.gather(*(limits.acquire("create:fake") for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3

    await limits.acquire("create:fake")


async def test_a_cancelled_request_does_not_disturb_the_others(world: World) -> None:
    limits = RateLimiter(world.store, {"create:fake": RateLimit(interval=0.01, burst=1)})
    turns = [asyncio.ensure_future(limits.acquire("create:fake")) for _ in range(5)]
    await asyncio.sleep(0)
    turns[1].cancel()
    answers = await asyncio.gather(*turns, return_exceptions=True)
    assert [type(answer) for answer in answers].count(asyncio.CancelledError) == 1


async def test_orders_beyond_the_limit_wait_as_rows_and_are_all_submitted(world: World) -> None:
    limit = RateLimit(interval=10.0, burst=2)
    engine = world.engine(EngineRules(limits={"create:fake": limit}))
    jobs = await asyncio.gather(*(engine.order(world.order()) for _ in range(5)))
    await idle(engine)
    assert len(world.provider.created) == 2
    states = sorted([(await world.see(job)).state for job in jobs])
    assert states == [State.QUEUED] * 3 + [State.RUNNING] * 2

    for _ in range(10):
        world.clock.advance(10)
        await work(engine)

    assert sorted(job.id for job, _ in world.provider.created) == [job.id for job in jobs]


async def test_status_queries_have_a_limit_of_their_own(world: World) -> None:
    engine = world.engine(EngineRules(limits={"status:fake": RateLimit(interval=10.0, burst=1)}))
    jobs = [await world.running(engine) for _ in range(3)]
    world.clock.advance(10)
    await work(engine)

    assert len(world.provider.asked) == 1
    assert {(await world.see(job)).state for job in jobs} == {State.RUNNING}
    assert {(await world.see(job)).attempts for job in jobs} == {0}


async def test_unused_rate_limits_are_pruned_by_the_leader_only(world: World) -> None:
    """Every chat has a row while it is used; the row is pruned afterwards."""
    proxy = FaultProxy(world.store)
    active, passive = world.engine(), world.engine(store=proxy)
    await active.leader.elect()
    await world.store.take_permits([f"chat:{number}" for number in range(50)], 1.0, 2, 0.0)
    world.clock.advance(EngineRules().limits_idle_seconds + 10)
    await world.store.take_permits(["chat:7"], 1.0, 2, 0.0)

    role = active.leader.role
    assert role is not None
    await passive.sweeper.prune_limits()
    assert proxy.answered["prune_limits"] == 0
    await active.sweeper.prune_limits()
    assert await world.store.prune_limits(-1_000_000.0, role) == 1, "only the one that was used is left"
