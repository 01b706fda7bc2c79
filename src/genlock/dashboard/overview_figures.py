"""What the overview shows of a period, read from the figures by hour and the parts of hours at its edges."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from genlock.dashboard.account_sets import AccountSets
from genlock.dashboard.bars import Bars
from genlock.dashboard.day_edges import DayEdges
from genlock.dashboard.periods import Period, is_within_hour
from genlock.domain.account_set import AccountSet
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.figures import JobFigures, ModelFigures, TopupFigures, hour_number
from genlock.domain.margin import Money, Rates
from genlock.ports import HourlyFigureStore, PartDetails

#: the category of models that the catalog does not contain any more
NO_CATEGORY = ""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The sums of a whole period."""

    jobs: JobFigures
    money: Money
    topups: TopupFigures
    started: int
    active: int
    first_orders: int


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a table: a model or a category."""

    name: str
    figures: JobFigures
    money: Money


@dataclass(frozen=True, kw_only=True)
class Funnel:
    """How far the users who started in the period have come until now. Each number is part of the one before."""

    started: int
    ordered: int
    topped_up: int
    topped_up_again: int


@dataclass(frozen=True, kw_only=True)
class Overview:
    period: Period
    now: Totals
    before: Totals
    funnel: Funnel
    models: Sequence[Line]
    categories: Sequence[Line]
    #: by bar of the charts
    jobs: Sequence[JobFigures]
    money: Sequence[Money]
    topups: Sequence[TopupFigures]
    started: Sequence[int]
    first_orders: Sequence[int]


class OverviewReader:
    def __init__(self, store: HourlyFigureStore, catalog: CurrentCatalog, rates: Rates, edges: DayEdges) -> None:
        self._store = store
        self._catalog = catalog
        self._rates = rates
        self._edges = edges
        self._sets = AccountSets(store)

    async def read(self, period: Period) -> Overview:
        bars = Bars(self._store, self._edges, (*period.starts(), period.end), period.now)
        first, after_begin, last = await self._edges.details(period.begin, period.end, period.now)
        models = await self._models(period.begin, period.end, first, last)
        providers, topups = await bars.orders(), await bars.topups()
        started, first_orders = await bars.started(), await bars.first_orders()
        now = Totals(
            jobs=sum((one.figures for one in models), JobFigures()),
            money=self._rates.money(models),
            topups=sum(topups, TopupFigures()),
            started=sum(started),
            active=len(await self._active(period.begin, period.end, after_begin, last)),
            first_orders=sum(first_orders),
        )
        return Overview(
            period=period, now=now, before=await self._totals(*period.previous, period.now),
            funnel=await self._funnel(period, after_begin, last), models=self._lines(models, str),
            categories=self._lines(models, self._category),
            jobs=[sum((one.figures for one in bar), JobFigures()) for bar in providers],
            money=[self._rates.money(bar) for bar in providers], topups=topups, started=started,
            first_orders=first_orders,
        )  # fmt: skip

    async def _totals(self, begin: datetime, end: datetime, now: datetime) -> Totals:
        bars = Bars(self._store, self._edges, (begin, end), now)
        _, after_begin, last = await self._edges.details(begin, end, now)
        [providers] = await bars.orders()
        [topups], [started], [first_orders] = await bars.topups(), await bars.started(), await bars.first_orders()
        return Totals(
            jobs=sum((one.figures for one in providers), JobFigures()),
            money=self._rates.money(providers),
            topups=topups,
            started=started,
            active=len(await self._active(begin, end, after_begin, last)),
            first_orders=first_orders,
        )

    async def _models(
        self, begin: datetime, end: datetime, first: PartDetails, last: PartDetails
    ) -> list[ModelFigures]:
        hours = await self._store.model_figures(hour_number(begin), hour_number(end))
        sums = defaultdict(JobFigures, {(one.provider, one.model): one.figures for one in hours})
        for one in last.models:
            sums[one.provider, one.model] += one.figures
        for one in first.models:
            sums[one.provider, one.model] -= one.figures
        return [
            ModelFigures(provider=provider, model=model, figures=figures)
            for (provider, model), figures in sums.items()
            if figures.orders or figures.cost
        ]

    async def _active(self, begin: datetime, end: datetime, first: PartDetails, last: PartDetails) -> AccountSet:
        return await self._whole_hours("active", begin, end) | first.active | last.active

    async def _whole_hours(self, kind: str, begin: datetime, end: datetime) -> AccountSet:
        since = hour_number(begin) + 1 if is_within_hour(begin) else hour_number(begin)
        return await self._sets.read(kind, since, max(since, hour_number(end)))

    async def _funnel(self, period: Period, first: PartDetails, last: PartDetails) -> Funnel:
        hours = await self._whole_hours("started", period.begin, period.end)
        started = hours | first.started | last.started
        ordered = started & await self._store.account_set("ordered", 0, 0)
        topped_up = ordered & await self._store.account_set("topped_up", 0, 0)
        again = topped_up & await self._store.account_set("topped_up_again", 0, 0)
        return Funnel(
            started=len(started), ordered=len(ordered), topped_up=len(topped_up), topped_up_again=len(again)
        )  # fmt: skip

    def _category(self, model: str) -> str:
        known = self._catalog.get().models.get(model)
        return known.category if known else NO_CATEGORY

    def _lines(self, models: Iterable[ModelFigures], name_of: Callable[[str], str]) -> list[Line]:
        """Put the figures of all providers together by the name that each model has in a table.

        The lines with the highest revenue come first, then those with the most orders.
        """
        groups: dict[str, list[ModelFigures]] = defaultdict(list)
        for one in models:
            groups[name_of(one.model)].append(one)
        lines = [
            Line(
                name=name,
                figures=sum((one.figures for one in members), JobFigures()),
                money=self._rates.money(members),
            )
            for name, members in groups.items()
        ]
        return sorted(lines, key=lambda line: (-line.money.revenue, -line.figures.orders, line.name))
