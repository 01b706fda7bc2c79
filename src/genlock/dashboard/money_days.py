"""The figures of each day of the viewer's time zone."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta, tzinfo
from decimal import Decimal
from itertools import groupby

from genlock.dashboard.bars import Bars
from genlock.dashboard.day_edges import DayEdges
from genlock.dashboard.periods import midnight
from genlock.domain.figures import JobFigures, ModelFigures, TopupFigures
from genlock.domain.margin import Money, Rates
from genlock.domain.value import value
from genlock.ports import Database

DAYS, DAYS_MAX = 30, 400


@value
class Day:
    day: date
    orders: JobFigures
    topups: TopupFigures
    money: Money
    #: the part of the cost for orders that no user paid for, in US dollars
    loss: Decimal

    @property
    def is_empty(self) -> bool:
        return not (self.orders.orders or self.topups.topups or self.topups.refunds)


@value
class QuietDays:
    """Successive days without orders and payments."""

    first: date
    last: date


class MoneyDays:
    def __init__(self, store: Database, rates: Rates, edges: DayEdges) -> None:
        self._store = store
        self._rates = rates
        self._edges = edges

    async def read(self, zone: tzinfo, since: datetime | None, until: datetime | None) -> list[Day]:
        """Return the figures of each day of a zone, the newest first; the last 30 days unless a range is given."""
        now = await self._store.read_clock()
        today = now.astimezone(zone).date()
        last = min((until - timedelta(microseconds=1)).astimezone(zone).date(), today) if until else today
        first = since.astimezone(zone).date() if since else last - timedelta(days=DAYS - 1)
        first = max(first, last - timedelta(days=DAYS_MAX - 1))
        days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
        if not days:
            return []
        times = [midnight(day, zone) for day in (*days, last + timedelta(days=1))]
        bars = Bars(self._store, self._edges, times)
        figures = zip(days, await bars.orders(), await bars.topups(), strict=True)
        return [self._day(day, orders, topups) for day, orders, topups in figures][::-1]

    def _day(self, day: date, orders: Sequence[ModelFigures], topups: TopupFigures) -> Day:
        return Day(
            day=day,
            orders=sum((model_figures.figures for model_figures in orders), JobFigures()),
            topups=topups,
            money=self._rates.money(orders),
            loss=sum(
                (self._rates.cost(model_figures.provider, model_figures.figures.loss) for model_figures in orders),
                Decimal(0),
            ),
        )


def lines_of(days: Iterable[Day]) -> list[Day | QuietDays]:
    """Return the days, newest first, with successive empty ones as one line."""
    found: list[Day | QuietDays] = []
    for is_empty, group in groupby(days, lambda day: day.is_empty):
        members = list(group)
        found += [QuietDays(first=members[-1].day, last=members[0].day)] if is_empty else members
    return found
