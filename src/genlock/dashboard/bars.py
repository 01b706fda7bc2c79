"""Exact figures of successive periods: the bars of a chart, or the days of a table.

Figures are stored by the hour of UTC, while a bar may begin or end within an hour. A bar is the sum of the hours from
the one it begins in, plus the part of its last hour before its end, less the part of its first hour before its
beginning.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import TypeVar

from genlock.dashboard.day_edges import DayEdges
from genlock.domain.figures import JobFigures, ModelFigures, TopupFigures, hour_number, sum_by_provider
from genlock.ports import HourlyFigureStore, PartOrders

T = TypeVar("T")
Sum = TypeVar("Sum", int, JobFigures, TopupFigures)
#: reads figures from one hour until another, in periods of some hours each
ReadPeriods = Callable[[int, int, int], Awaitable[dict[int, T]]]


@dataclass
class Bars:
    store: HourlyFigureStore
    #: what the hours contain within which a bar begins
    edges: DayEdges
    #: the beginning of each bar, and the end of the last one
    times: Sequence[datetime]
    _orders: Sequence[PartOrders] | None = None

    async def orders(self) -> list[list[ModelFigures]]:
        """Return the orders of each bar by provider, all models together."""
        nothing: list[ModelFigures] = []
        hours = await self._whole_hours(self.store.provider_figures, nothing)
        edges = [part.providers for part in await self._order_edges()]
        return [
            _plus_and_less(whole, after, before) for whole, (before, after) in zip(hours, pairwise(edges), strict=True)
        ]

    async def topups(self) -> list[TopupFigures]:
        edges = [part.topups for part in await self._order_edges()]
        return await self._sums(self.store.topup_figures, TopupFigures(), edges)

    async def started(self) -> list[int]:
        return await self._sums(self._reader_of("started"), 0, await self.edges.started_before(self.times))

    async def first_orders(self) -> list[int]:
        return await self._sums(self._reader_of("first_order"), 0, await self.edges.first_orders_before(self.times))

    async def _order_edges(self) -> Sequence[PartOrders]:
        """Return for each time the orders and payments of its hour before that time."""
        if self._orders is None:
            self._orders = await self.edges.orders_before(self.times)
        return self._orders

    def _reader_of(self, kind: str) -> ReadPeriods[int]:
        async def read(since: int, until: int, hours: int) -> dict[int, int]:
            return await self.store.account_set_sizes(kind, since, until, hours)

        return read

    async def _sums(self, read: ReadPeriods[Sum], nothing: Sum, parts: Sequence[Sum]) -> list[Sum]:
        hours = await self._whole_hours(read, nothing)
        return [whole + after - before for whole, (before, after) in zip(hours, pairwise(parts), strict=True)]

    async def _whole_hours(self, read: ReadPeriods[T], nothing: T) -> list[T]:
        """Return the figures of the hours of each bar: those that begin in it, and the one it begins in."""
        found: dict[int, T] = {}
        hours = [hour_number(at) for at in self.times]
        for since, until, length in _runs(hours):
            found |= await read(since, until, length)
        return [found.get(hour, nothing) if after > hour else nothing for hour, after in pairwise(hours)]


def _runs(hours: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield first hour, end and length of successive bars that are equally long: one statement reads them together.

    Days are, except where the clocks change; the last bar may be shorter.
    """
    for length, bars in groupby(pairwise(hours), lambda bar: bar[1] - bar[0]):
        run = list(bars)
        if length > 0:
            yield run[0][0], run[-1][1], length


def _plus_and_less(
    hours: Iterable[ModelFigures], plus: Iterable[ModelFigures], less: Iterable[ModelFigures]
) -> list[ModelFigures]:
    sums = sum_by_provider((*hours, *plus))
    for model_figures in less:
        sums[model_figures.provider] -= model_figures.figures
    return [ModelFigures(provider=provider, model="", figures=figures) for provider, figures in sums.items()]
