"""Limits that all instances keep together."""

from collections.abc import Sequence
from typing import Protocol


class LimitStore(Protocol):
    """Limits by key that all instances keep together: when the next turn of each is free."""

    async def reserve(self, key: str, count: int, interval: float, burst: int, horizon: float) -> list[float]:
        """Reserve up to `count` turns of a limit; for each, the seconds until it may be used."""

    async def take_permits(self, keys: Sequence[str], interval: float, burst: int, spare: float) -> list[float]:
        """Take a turn of each of these limits, now or not at all; for each, 0 or the seconds until one is free.

        Only turns that have been free for `spare` seconds are taken.
        """

    async def block(self, key: str, seconds: float) -> None:
        """No turn of this limit for so long."""
