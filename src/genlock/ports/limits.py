"""Rate limits that all instances share."""

from collections.abc import Sequence
from typing import Protocol


class LimitStore(Protocol):
    """Rate limits by key: when the next permit of each is free."""

    async def reserve_permits(self, key: str, count: int, interval: float, burst: int, horizon: float) -> list[float]:
        """Reserve up to `count` permits. Returns the seconds until each may be used, at most `horizon`."""

    async def take_permits(self, keys: Sequence[str], interval: float, burst: int, spare: float) -> list[float]:
        """Take a permit of each limit that has one now. Returns for each key 0, or the seconds until one is free.

        Only permits that have been free for `spare` seconds are taken.
        """

    async def block_limit(self, key: str, seconds: float) -> None:
        """Grant no permit of this limit for `seconds`."""
