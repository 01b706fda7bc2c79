"""The hours of UTC within which days begin: what each contains before midnight, and after it.

The figures are kept by the hour of UTC. In a zone with half or quarter hours, the orders of the two parts of such an
hour are those of its quarters. The models and the accounts of a part are counted from the rows, some minutes of them.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from genlock.domain.account_set import AccountSet
from genlock.domain.figures import ModelFigures, TopupFigures, hour_number, hour_start
from genlock.ports import HourlyFigureStore, PartOrders, TimeSpan

Part = TypeVar("Part")
Count = Callable[[Sequence[TimeSpan]], Awaitable[list[Part]]]
_NO_ORDERS = PartOrders(providers=(), topups=TopupFigures())


class DayEdges:
    def __init__(self, store: HourlyFigureStore) -> None:
        self._store = store

    async def orders_before(self, times: Sequence[datetime]) -> list[PartOrders]:
        """Return the orders and payments of the hour of each time before it."""
        return await _count(self._store.part_orders, map(_before, times), _NO_ORDERS)

    async def started_before(self, times: Sequence[datetime]) -> list[int]:
        """Return how many accounts started in the hour of each time before it."""
        return await _count(self._store.count_started, map(_before, times), 0)

    async def first_orders_before(self, times: Sequence[datetime]) -> list[int]:
        """Return how many accounts ordered for the first time in the hour of each time before it."""
        return [
            len(accounts) for accounts in await _count(self._store.part_first_orders, map(_before, times), AccountSet())
        ]

    async def models_before(self, times: Sequence[datetime]) -> list[Sequence[ModelFigures]]:
        """Return the orders by model of the hour of each time before it."""
        nothing: Sequence[ModelFigures] = ()
        return await _count(self._store.part_models, map(_before, times), nothing)

    async def started(self, begin: datetime, end: datetime) -> AccountSet:
        """Return the accounts that started in a period outside its whole hours."""
        return AccountSet.union(await _count(self._store.part_started, (_after(begin), _before(end)), AccountSet()))

    async def active(self, begin: datetime, end: datetime) -> AccountSet:
        """Return the accounts that ordered in a period outside its whole hours."""
        return AccountSet.union(await _count(self._store.part_active, (_after(begin), _before(end)), AccountSet()))


def _before(at: datetime) -> TimeSpan:
    return hour_start(hour_number(at)), at


def _after(at: datetime) -> TimeSpan:
    hour = hour_start(hour_number(at))
    return at, at if at == hour else hour + timedelta(hours=1)


async def _count(count: Count[Part], parts: Iterable[TimeSpan], nothing: Part) -> list[Part]:
    """Count those of the parts that are not empty, all at once."""
    given = list(parts)
    within = [(since, until) for since, until in given if since != until]
    found = dict(zip(within, await count(within) if within else (), strict=True))
    return [found.get(part, nothing) for part in given]
