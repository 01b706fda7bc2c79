"""Requests per key: a request is refused only if the store has no permit."""

from genlock.api.request_limits import RequestLimits
from genlock.ports import PermitBlockStore, TakenPermits


class AmpleStore(PermitBlockStore):
    async def take_block(self, key: str, count: int, interval: float, burst: int) -> TakenPermits:
        return TakenPermits(granted=count, remaining=burst - count, wait=0.0)


async def test_permits_that_expire_while_a_request_is_handled_refuse_no_request() -> None:
    times = iter(range(10_000))
    limits = RequestLimits(AmpleStore(), 100, lambda: next(times) * 0.34)

    answered = [await limits.take(1) for _ in range(100)]

    assert all(headers["RateLimit"].startswith('"requests";r=') for headers in answered)
