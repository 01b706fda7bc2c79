"""Limits that nobody waits for in the store: one turn now, or the time until there is one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from genlock.ports import Role
from genlock.stores.rows import Row


class LimitRows(ABC):
    """The part of the store that limits by chat stand on."""

    @abstractmethod
    async def one(self, name: str, /, **params: Any) -> list[Row]:
        """Run a statement once, in a transaction of its own."""

    @abstractmethod
    def array(self, values: Sequence[int] | Sequence[str]) -> Any:
        """A list as the dialect takes it."""

    async def take_permits(self, keys: Sequence[str], interval: float, burst: int, spare: float) -> list[float]:
        rows = await self.one("take_permits", keys=self.array(keys), interval=interval, burst=burst, spare=spare)
        waits: dict[str, float] = {}
        for row in rows:
            waits[row["key"]] = min(waits.get(row["key"], row["wait"]), row["wait"])
        # One that is neither taken nor denied was taken by somebody else while the statement looked.
        return [waits.get(key, interval / 2) for key in keys]

    async def block(self, key: str, seconds: float) -> None:
        await self.one("block", key=key, seconds=seconds)

    async def prune_limits(self, idle_seconds: float, role: Role) -> int:
        rows = await self.one("prune_limits", idle_seconds=idle_seconds, holder=role.holder, epoch=role.epoch)
        return len(rows)
