"""What the overview shows of a period, read from the figures by hour."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from genlock.dashboard.periods import Period
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.figures import JobFigures, ModelFigures, TopupFigures
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
    first_orders: Sequence[int]


class OverviewReader:
    def __init__(self, store: HourlyFigureStore, catalog: CurrentCatalog, rates: Rates) -> None:
        self._store = store
        self._catalog = catalog
        self._rates = rates

    async def read(self, period: Period) -> Overview:
        store, since, until, step = self._store, period.since, period.until, period.step_hours
        models = await store.model_figures(since, until)
        jobs = period.sum_by_bar(await store.period_figures(since, until, step), JobFigures())
        topups = period.sum_by_bar(await store.topup_figures(since, until, step), TopupFigures())
        started = period.sum_by_bar(await store.account_set_sizes("started", since, until, step), 0)
        first_orders = period.sum_by_bar(await store.account_set_sizes("first_order", since, until, step), 0)
        now = Totals(
            jobs=sum((one.figures for one in models), JobFigures()),
            money=self._rates.money(models),
            topups=sum(topups, TopupFigures()),
            started=sum(started),
            active=len(await store.account_set("active", since, until)),
            first_orders=sum(first_orders),
        )
        return Overview(
            period=period, now=now, before=await self._totals(*period.previous),
            funnel=await self._funnel(since, until), models=self._by_model(models),
            categories=self._by_category(models), jobs=jobs, money=self._money_by_bar(jobs, now), topups=topups,
            started=started, first_orders=first_orders,
        )  # fmt: skip

    async def _totals(self, since: int, until: int) -> Totals:
        store, hours = self._store, until - since
        models = await store.model_figures(since, until)
        return Totals(
            jobs=sum((one.figures for one in models), JobFigures()),
            money=self._rates.money(models),
            topups=sum((await store.topup_figures(since, until, hours)).values(), TopupFigures()),
            started=sum((await store.account_set_sizes("started", since, until, hours)).values()),
            active=len(await store.account_set("active", since, until)),
            first_orders=sum((await store.account_set_sizes("first_order", since, until, hours)).values()),
        )

    async def _funnel(self, since: int, until: int) -> Funnel:
        started = await self._store.account_set("started", since, until)
        ordered = started & await self._store.account_set("ordered", 0, 0)
        topped_up = ordered & await self._store.account_set("topped_up", 0, 0)
        again = topped_up & await self._store.account_set("topped_up_again", 0, 0)
        return Funnel(
            started=len(started), ordered=len(ordered), topped_up=len(topped_up), topped_up_again=len(again)
        )  # fmt: skip

    def _money_by_bar(self, jobs: Sequence[JobFigures], now: Totals) -> list[Money]:
        """Convert the costs of the bars at the average rate of the period: they are not kept by provider and hour."""
        rate = now.money.cost / now.jobs.cost if now.jobs.cost else Decimal(0)
        return [Money(revenue=self._rates.revenue(one.revenue), cost=one.cost * rate) for one in jobs]

    def _by_model(self, models: Iterable[ModelFigures]) -> list[Line]:
        return _sorted(Line(name=one.model, figures=one.figures, money=self._rates.of(one)) for one in models)

    def _by_category(self, models: Iterable[ModelFigures]) -> list[Line]:
        found: dict[str, Line] = {}
        groups: dict[str, list[ModelFigures]] = defaultdict(list)
        for one in models:
            model = self._catalog.get().models.get(one.model)
            groups[model.category if model else NO_CATEGORY].append(one)
        for name, members in groups.items():
            figures = sum((one.figures for one in members), JobFigures())
            found[name] = Line(name=name, figures=figures, money=self._rates.money(members))
        return _sorted(found.values())


def _sorted(lines: Iterable[Line]) -> list[Line]:
    """The lines with the highest revenue first, then those with the most orders."""
    return sorted(lines, key=lambda line: (-line.money.revenue, -line.figures.orders, line.name))
