"""The keys of a provider's signatures: a flood of forged callbacks causes few fetches."""

import asyncio

import pytest

from genlock.domain.errors import ProviderError
from genlock.providers.key_cache import KEEP_SECONDS, REFETCH_SECONDS, RETRY_SECONDS, KeyCache


class Keys:
    def __init__(self) -> None:
        self.fetches = 0
        self.fails = False

    async def fetch(self) -> str:
        self.fetches += 1
        await asyncio.sleep(0)
        if self.fails:
            raise ProviderError("no answer")
        return f"key {self.fetches}"


async def test_callbacks_that_come_at_the_same_time_cause_one_fetch() -> None:
    keys = Keys()
    cache = KeyCache(keys.fetch)

    found = await asyncio.gather(*(cache.is_signed(lambda key: key == "key 1", 1000.0) for _ in range(50)))

    assert (all(found), keys.fetches) == (True, 1)
    later = 1000.0 + REFETCH_SECONDS
    forged = await asyncio.gather(*(cache.is_signed(lambda _: False, later) for _ in range(50)))
    assert (any(forged), keys.fetches) == (False, 2)


async def test_a_provider_that_does_not_answer_is_not_asked_for_each_callback() -> None:
    keys = Keys()
    cache, keys.fails = KeyCache(keys.fetch), True
    for _ in range(20):
        with pytest.raises(ProviderError):
            await cache.is_signed(lambda _: True, 1000.0)
    assert keys.fetches == 1
    keys.fails = False

    assert await cache.is_signed(lambda _: True, 1000.0 + RETRY_SECONDS)
    assert await cache.is_signed(lambda key: key == "key 3", 1000.0 + KEEP_SECONDS + 2 * RETRY_SECONDS)
