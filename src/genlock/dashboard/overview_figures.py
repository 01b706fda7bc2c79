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
from genlock.ports import HourlyFigureStore

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


class OverviewReader:
    def __init__(self, store: HourlyFigureStore, catalog: CurrentCatalog, rates: Rates, edges: DayEdges) -> None:
        self._store = store
        self._catalog = catalog
        self._rates = rates
        self._edges = edges
        self._sets = AccountSets(store)

    async def read(self, period: Period) -> Overview:
        # One bar for the period before, one for the time between, which is not shown, and those of the charts.
        bars = Bars(self._store, self._edges, (*period.previous, *period.starts(), period.end))
        orders_before, _, *orders = await bars.orders()
        topups_before, _, *topups = await bars.topups()
        started_before, _, *started = await bars.started()
        whole = Bars(self._store, self._edges, (*period.previous, period.begin, period.end))
        first_before, _, first = await whole.first_orders()
        models = await self._models(period.begin, period.end)
        active, active_before = await self._active(period.begin, period.end), await self._active(*period.previous)
        return Overview(
            period=period,
            now=self._totals(models, sum(topups, TopupFigures()), sum(started), active, first),
            before=self._totals(orders_before, topups_before, started_before, active_before, first_before),
            funnel=await self._funnel(period), models=self._lines(models, str),
            categories=self._lines(models, self._category),
            jobs=[sum((model_figures.figures for model_figures in bar), JobFigures()) for bar in orders],
            money=[self._rates.money(bar) for bar in orders], topups=topups, started=started,
        )  # fmt: skip

    def _totals(
        self,
        orders: Sequence[ModelFigures],
        topups: TopupFigures,
        started: int,
        active: AccountSet,
        first_orders: int,
    ) -> Totals:
        return Totals(
            jobs=sum((model_figures.figures for model_figures in orders), JobFigures()),
            money=self._rates.money(orders), topups=topups,
            started=started, active=len(active), first_orders=first_orders,
        )  # fmt: skip

    async def _models(self, begin: datetime, end: datetime) -> list[ModelFigures]:
        hours = await self._store.model_figures(hour_number(begin), hour_number(end))
        sums = defaultdict(
            JobFigures,
            {(model_figures.provider, model_figures.model): model_figures.figures for model_figures in hours},
        )
        before_begin, before_end = await self._edges.models_before((begin, end))
        for model_figures in before_end:
            sums[model_figures.provider, model_figures.model] += model_figures.figures
        for model_figures in before_begin:
            sums[model_figures.provider, model_figures.model] -= model_figures.figures
        return [
            ModelFigures(provider=provider, model=model, figures=figures)
            for (provider, model), figures in sums.items()
            if figures.orders or figures.cost
        ]

    async def _active(self, begin: datetime, end: datetime) -> AccountSet:
        return await self._whole_hours("active", begin, end) | await self._edges.active(begin, end)

    async def _whole_hours(self, kind: str, begin: datetime, end: datetime) -> AccountSet:
        since = hour_number(begin) + 1 if is_within_hour(begin) else hour_number(begin)
        return await self._sets.read(kind, since, max(since, hour_number(end)))

    async def _funnel(self, period: Period) -> Funnel:
        hours = await self._whole_hours("started", period.begin, period.end)
        started = hours | await self._edges.started(period.begin, period.end)
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
        for model_figures in models:
            groups[name_of(model_figures.model)].append(model_figures)
        lines = [
            Line(
                name=name,
                figures=sum((model_figures.figures for model_figures in members), JobFigures()),
                money=self._rates.money(members),
            )
            for name, members in groups.items()
        ]
        return sorted(lines, key=lambda line: (-line.money.revenue, -line.figures.orders, line.name))
