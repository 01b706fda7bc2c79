"""Rate limits that all instances share."""

from collections.abc import Sequence

from genlock.stores.rows import Row
from genlock.stores.session import Session, Subject


class Limits(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: limits whose row is known to exist
        self._opened: set[str] = set()

    async def reserve(self, key: str, count: int, interval: float, burst: int, horizon: float) -> list[float]:
        rows: list[Row] = []
        while not rows:
            if key not in self._opened:
                await self.session.one("open_limit", key=key)
                self._opened.add(key)
            rows = await self.session.one(
                "reserve", key=key, count=count, interval=interval, burst=burst, horizon=horizon
            )
            if not rows:  # the row was pruned, because it was not used for long
                self._opened.discard(key)
        first, after = rows[0]["wait"], rows[1]["wait"]
        granted = round((after - first) / interval)
        return [max(0.0, first + number * interval) for number in range(granted)]

    async def take_permits(self, keys: Sequence[str], interval: float, burst: int, spare: float) -> list[float]:
        rows = await self.session.one(
            "take_permits", keys=self.session.array(keys), interval=interval, burst=burst, spare=spare
        )
        waits: dict[str, float] = {}
        for row in rows:
            waits[row["key"]] = min(waits.get(row["key"], row["wait"]), row["wait"])
        # A key without a row was taken by another transaction during the statement.
        return [waits.get(key, interval / 2) for key in keys]

    async def block(self, key: str, seconds: float) -> None:
        await self.session.one("block", key=key, seconds=seconds)
