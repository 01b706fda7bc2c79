"""Requests per key: a request is refused only if the store has no permit."""

import asyncio

import pytest

from genlock.api.problems import Problem
from genlock.api.request_limits import RequestLimits
from genlock.ports import PermitBlockStore, TakenPermits


class AmpleStore(PermitBlockStore):
    async def take_block(self, key: str, count: int, interval: float, burst: int, ahead: float = 0.0) -> TakenPermits:
        return TakenPermits(granted=count, remaining=burst - count, wait=0.0)


async def test_permits_that_expire_while_a_request_is_handled_refuse_no_request() -> None:
    times = iter(range(10_000))
    limits = RequestLimits(AmpleStore(), 100, lambda: next(times) * 0.34)

    answered = [await limits.take(1) for _ in range(100)]

    assert all(headers["RateLimit"].startswith('"requests";r=') for headers in answered)


class SlowStore(PermitBlockStore):
    """Gives no permit before it is told to."""

    def __init__(self) -> None:
        self.answering = asyncio.Event()

    async def take_block(self, key: str, count: int, interval: float, burst: int, ahead: float = 0.0) -> TakenPermits:
        await self.answering.wait()
        return TakenPermits(granted=0, remaining=0, wait=1.0)


async def test_requests_that_would_wait_for_seconds_are_refused_at_once() -> None:
    store = SlowStore()
    limits = RequestLimits(store, 10, asyncio.get_running_loop().time)
    waiting = [asyncio.create_task(limits.take(1)) for _ in range(20)]
    await asyncio.sleep(0)

    with pytest.raises(Problem) as refused:
        await limits.take(1)
    assert refused.value.code == "too_many_requests"

    store.answering.set()
    assert {type(result) for result in await asyncio.gather(*waiting, return_exceptions=True)} == {Problem}


class LentStore(PermitBlockStore):
    """Has no permit now, and as many of the next seconds as it says."""

    def __init__(self, lent: int) -> None:
        self.lent = lent

    async def take_block(self, key: str, count: int, interval: float, burst: int, ahead: float = 0.0) -> TakenPermits:
        granted = min(count, self.lent) if ahead else 0
        self.lent -= granted
        return TakenPermits(granted=granted, remaining=0, wait=1.5)


async def test_an_answer_is_refused_only_if_others_have_taken_the_permits_of_the_next_seconds() -> None:
    limits = RequestLimits(LentStore(5), 10, asyncio.get_running_loop().time)

    assert (await limits.charge(1, 30))["RateLimit"] == '"requests";r=0;t=2'
    with pytest.raises(Problem) as refused:
        await limits.charge(1, 30)
    assert (refused.value.code, refused.value.headers["Retry-After"]) == ("too_many_requests", "2")


async def test_an_answer_takes_the_permits_that_are_left_of_a_block_first() -> None:
    limits = RequestLimits(AmpleStore(), 100, asyncio.get_running_loop().time)
    await limits.take(1)
    limits._store = LentStore(0)

    await limits.charge(1, 9)
    with pytest.raises(Problem):
        await limits.charge(1, 1)
