"""The hours of UTC within which days begin: what each contains before midnight, and after it.

The figures are kept by the hour of UTC. In a zone with half or quarter hours, the two parts of such an hour are counted
from the orders themselves: some minutes of orders for each midnight of the chart, all of them at once. What was counted
is remembered for as long as the figures of the hour stay the same.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from genlock.domain.account_set import AccountSet
from genlock.domain.figures import TopupFigures, hour_number, hour_start
from genlock.ports import HourlyFigureStore, PartAccounts, PartDetails, PartOrders, TimeSpan

Part = TypeVar("Part")

#: parts that are remembered: the midnights of some years
KEPT_MAX = 3000
#: a part is complete, also with accounts that are counted later, when it ended this long ago
COMPLETE = timedelta(minutes=5)


class DayEdges:
    def __init__(self, store: HourlyFigureStore) -> None:
        self._orders = _Parts(store, store.part_orders, PartOrders(providers=(), topups=TopupFigures()))
        self._accounts = _Parts(store, store.part_accounts, PartAccounts(started=0, first_orders=0))
        nothing = PartDetails(models=(), started=AccountSet(), active=AccountSet())
        self._details = _Parts(store, store.part_details, nothing)

    async def orders_before(self, times: Sequence[datetime], now: datetime) -> list[PartOrders]:
        """Return the orders and payments of the hour of each time before it."""
        return await self._orders.read([_before(at) for at in times], now)

    async def accounts_before(self, times: Sequence[datetime], now: datetime) -> list[PartAccounts]:
        """Return how many accounts started, or first ordered, in the hour of each time before it."""
        return await self._accounts.read([_before(at) for at in times], now)

    async def details(self, begin: datetime, end: datetime, now: datetime) -> tuple[PartDetails, ...]:
        """Return three parts: of the first hour, before `begin` and from it on; of the last hour, before `end`."""
        hour = hour_start(hour_number(begin))
        after = (begin, begin if begin == hour else hour + timedelta(hours=1))
        return tuple(await self._details.read([_before(begin), after, _before(end)], now))


def _before(at: datetime) -> TimeSpan:
    return hour_start(hour_number(at)), at


class _Parts(Generic[Part]):
    """Parts of hours of one kind, as they were counted."""

    def __init__(
        self, store: HourlyFigureStore, count: Callable[[Sequence[TimeSpan]], Awaitable[list[Part]]], nothing: Part
    ) -> None:
        self._store = store
        self._count = count
        self._nothing = nothing
        self._kept: dict[TimeSpan, tuple[Hashable, Part]] = {}

    async def read(self, parts: Sequence[TimeSpan], now: datetime) -> list[Part]:
        """Return each part: as it was counted before, unless the figures of its hour have changed."""
        wanted = [part for part in dict.fromkeys(parts) if part[0] != part[1]]
        if not wanted:
            return [self._nothing] * len(parts)
        versions = await self._store.hour_versions(sorted({hour_number(since) for since, _ in wanted}))
        found: dict[TimeSpan, Part] = {}
        for part in wanted:
            known = self._kept.get(part)
            if known is not None and known[0] == versions.get(hour_number(part[0])):
                found[part] = known[1]
        missing = [part for part in wanted if part not in found]
        for part, counted in zip(missing, await self._count(missing) if missing else (), strict=True):
            found[part] = counted
            if part[1] <= now - COMPLETE:
                self._keep(part, versions.get(hour_number(part[0])), counted)
        return [found.get(part, self._nothing) for part in parts]

    def _keep(self, part: TimeSpan, version: Hashable, counted: Part) -> None:
        self._kept[part] = version, counted
        if len(self._kept) > KEPT_MAX:
            self._kept.pop(next(iter(self._kept)))
