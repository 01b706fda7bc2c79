"""The keys of a provider's signatures: fetched when needed, kept for a while, and fetched again after a rotation."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from genlock.domain.errors import ProviderError

KeyT = TypeVar("KeyT")

KEEP_SECONDS = 6 * 3600.0
#: a signature that no key fits may be from a new key; forged ones must not cause a fetch each
REFETCH_SECONDS = 60.0
#: after a failed fetch, callbacks are refused for this long without another fetch
RETRY_SECONDS = 5.0


class KeyCache(Generic[KeyT]):
    def __init__(self, fetch: Callable[[], Awaitable[KeyT]]) -> None:
        self._fetch = fetch
        self._keys: KeyT | None = None
        self._fetched = 0.0
        self._failed: float | None = None
        self._lock = asyncio.Lock()

    async def is_signed(self, check: Callable[[KeyT], bool], now: float) -> bool:
        """Tell whether a signature fits the keys. Raises ProviderError if they cannot be fetched."""
        if self._keys is not None and now - self._fetched <= KEEP_SECONDS:
            if check(self._keys):
                return True
            if now - self._fetched < REFETCH_SECONDS:
                return False
        return check(await self._refresh(now))

    async def _refresh(self, now: float) -> KeyT:
        """Fetch the keys, once for all callbacks that wait for them."""
        async with self._lock:
            if self._keys is not None and now - self._fetched < REFETCH_SECONDS:
                return self._keys
            if self._failed is not None and 0 <= now - self._failed < RETRY_SECONDS:
                raise ProviderError("the keys could not be fetched a moment ago")
            try:
                self._keys = await self._fetch()
            except ProviderError:
                self._failed = now
                raise
            self._fetched, self._failed = now, None
            return self._keys
