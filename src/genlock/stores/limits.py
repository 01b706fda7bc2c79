"""Rate limits that all instances share."""

from collections.abc import Sequence
from typing import Any

from genlock.ports import SharedLimit, TakenPermits
from genlock.stores.rows import Row
from genlock.stores.session import Session, Subject

#: microseconds are rounded: a permit that is this share of an interval early is free
ROUNDING = 1e-3


class Limits(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: limits whose row is known to exist
        self._opened: set[str] = set()

    async def reserve_permits(self, key: str, count: int, interval: float, burst: int, horizon: float) -> list[float]:
        rows = await self._with_row(
            key, "reserve_permits", key=key, count=count, interval=interval, burst=burst, horizon=horizon
        )
        first, after = rows[0]["wait"], rows[1]["wait"]
        granted = round((after - first) / interval)
        return [max(0.0, first + number * interval) for number in range(granted)]

    async def take_block(self, key: str, count: int, interval: float, burst: int, ahead: float = 0.0) -> TakenPermits:
        rows = await self._with_row(
            key, "reserve_permits", key=key, count=count, interval=interval, burst=burst, horizon=ahead
        )
        first, after = rows[0]["wait"], rows[1]["wait"]
        granted = round((after - first) / interval)
        remaining = 1 + int(-after / interval + ROUNDING) if after <= 0 else 0
        return TakenPermits(granted=granted, remaining=remaining, wait=max(0.0, first))

    async def _with_row(self, key: str, name: str, /, **params: Any) -> list[Row]:
        """Run a statement that needs the row of a limit. It returns nothing if there is none."""
        while True:
            if key not in self._opened:
                await self.session.one("open_limit", key=key)
                self._opened.add(key)
            if rows := await self.session.one(name, **params):
                return rows
            self._opened.discard(key)  # the row was pruned, because it was not used for long

    async def take_call_permits(
        self, keys: Sequence[str], interval: float, burst: int, *, shared: SharedLimit
    ) -> tuple[list[float | None], list[float]]:
        first, *rows = await self._with_row(
            shared.key,
            "take_call_permits",
            keys=self.session.array(keys),
            interval=interval,
            burst=burst,
            shared_key=shared.key,
            shared_interval=shared.interval,
            shared_burst=shared.burst,
            horizon=shared.horizon,
        )
        found: dict[str, float] = {}
        for row in rows:
            found[row["key"]] = min(found.get(row["key"], row["wait"]), row["wait"])
        taken = sum(wait == 0.0 for wait in found.values())
        # A key without a row got no permit of the shared limit, or another transaction took it during the statement.
        missing = None if taken >= first["room"] else interval / 2
        waits = [found.get(key, missing) for key in keys]
        return waits, [max(0.0, first["wait"] + number * shared.interval) for number in range(taken)]

    async def take_permits(self, keys: Sequence[str], interval: float, burst: int, spare: float) -> list[float]:
        rows = await self.session.one(
            "take_permits", keys=self.session.array(keys), interval=interval, burst=burst, spare=spare
        )
        waits: dict[str, float] = {}
        for row in rows:
            waits[row["key"]] = min(waits.get(row["key"], row["wait"]), row["wait"])
        # A key without a row was taken by another transaction during the statement.
        return [waits.get(key, interval / 2) for key in keys]

    async def block_limit(self, key: str, seconds: float) -> None:
        await self.session.one("block_limit", key=key, seconds=seconds)
