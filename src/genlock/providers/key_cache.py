"""The keys of a provider's signatures: fetched when needed, kept for a while, and fetched again after a rotation."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT")

KEEP_SECONDS = 6 * 3600.0
#: a signature that no key fits may be from a new key; forged ones must not cause a fetch each
REFETCH_SECONDS = 60.0


class KeyCache(Generic[KeyT]):
    def __init__(self, fetch: Callable[[], Awaitable[KeyT]]) -> None:
        self._fetch = fetch
        self._keys: KeyT | None = None
        self._fetched = 0.0

    async def is_signed(self, check: Callable[[KeyT], bool], now: float) -> bool:
        """Tell whether a signature fits the keys. Raises ProviderError if they cannot be fetched."""
        if self._keys is None or now - self._fetched > KEEP_SECONDS:
            return check(await self._refresh(now))
        if check(self._keys):
            return True
        if now - self._fetched < REFETCH_SECONDS:
            return False
        return check(await self._refresh(now))

    async def _refresh(self, now: float) -> KeyT:
        self._keys = await self._fetch()
        self._fetched = now
        return self._keys
