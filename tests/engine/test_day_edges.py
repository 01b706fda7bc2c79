"""The overview of a viewer in any time zone equals a count of the rows between the midnights of that zone."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from genlock.dashboard.day_edges import DayEdges
from genlock.dashboard.money_days import MoneyDays
from genlock.dashboard.overview_figures import Overview, OverviewReader, Totals
from genlock.dashboard.periods import Period, read_period
from genlock.domain.catalog import Catalog
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.figures import JobFigures, TopupFigures
from genlock.domain.margin import Rates
from genlock.domain.money import EntryKind
from genlock.engine import hourly_figures
from genlock.stores.database import SqlDatabase
from genlock.stores.rows import not_null
from tests.engine.counted_figures import a_keeper, one_job, one_payment, rows, settle
from tests.engine.manual_clock import ManualClock
from tests.engine.random_history import History
from tests.stores.builders import delivered

ZONES = (
    "Asia/Kolkata", "Asia/Kathmandu", "Australia/Adelaide", "Australia/Lord_Howe", "America/St_Johns", "Europe/Berlin",
)  # fmt: skip
NOTHING = Decimal(0)
#: a credit of one provider is worth 200 of the other
RATES = Rates(0.01, {"kie": Decimal("0.005"), "other": Decimal(1)})
#: the first and the last day of a range, in days before today
RANGES = ((1, 1), (6, 2), (99, 0))


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hourly_figures, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(History, "pauses", (20.0, 400.0, 900.0, 1700.0, 5000.0, 11_000.0))


def queries(zone: ZoneInfo, now: datetime) -> list[dict[str, str]]:
    today = now.astimezone(zone).date()
    ranges = [(today - timedelta(days=first), today - timedelta(days=last)) for first, last in RANGES]
    return [
        *({"period": name} for name in ("today", "7d", "30d")),
        *({"from": f"{first}", "to": f"{last}"} for first, last in ranges),
    ]


@dataclass(frozen=True)
class Rows:
    """All rows, read once, with the time of each."""

    jobs: list[tuple[datetime, Mapping[str, Any]]]
    payments: list[tuple[datetime, Mapping[str, Any]]]
    accounts: list[tuple[datetime, Mapping[str, Any]]]

    @classmethod
    async def read(cls, store: SqlDatabase) -> "Rows":
        async def table(statement: str, column: str) -> list[tuple[datetime, Mapping[str, Any]]]:
            return [(not_null(store.session.time(row[column])), row) for row in await rows(store, statement)]

        return cls(
            jobs=await table("SELECT * FROM jobs ORDER BY id", "created_at"),
            payments=await table("SELECT * FROM payments ORDER BY at", "at"),
            accounts=await table("SELECT * FROM accounts", "created_at"),
        )

    def count(self, begin: datetime, end: datetime) -> dict[str, object]:
        """What an overview of this time must show."""
        inside = [row for at, row in self.jobs if begin <= at < end]
        first: dict[int, datetime] = {}
        for at, row in self.jobs:
            first.setdefault(row["account_id"], at)
        paid, topups = Counter[int](), TopupFigures()
        for at, row in self.payments:
            paid[row["account_id"]] += 1
            if begin <= at < end:
                topups += one_payment(row, repeated=paid[row["account_id"]] > 1)
        return {
            "jobs": without_last(sum((one_job(row) for row in inside), JobFigures())),
            "topups": topups,
            "active": len({row["account_id"] for row in inside}),
            "first orders": sum(begin <= at < end for at in first.values()),
            "started": sum(begin <= at < end for at, _ in self.accounts),
        }

    def count_bars(self, period: Period) -> list[tuple[int, Decimal]]:
        """How many orders each bar has, and what they cost in US dollars."""
        found = []
        for begin, end in pairwise((*period.starts(), period.end)):
            inside = [row for at, row in self.jobs if begin <= at < end]
            found.append((len(inside), sum((RATES.cost(row["provider"], row["cost"] or 0) for row in inside), NOTHING)))
        return found


def shown(totals: Totals) -> dict[str, object]:
    return {
        "jobs": without_last(totals.jobs),
        "topups": totals.topups,
        "active": totals.active,
        "first orders": totals.first_orders,
        "started": totals.started,
    }


async def wrong_days(tables: Rows, zone: ZoneInfo, days: MoneyDays) -> list[str]:
    """Which days of *Money* differ from a count of their rows."""
    found = []
    for day in await days.read(zone, None, None):
        begin = datetime.combine(day.day, time(), zone)
        counted = tables.count(begin, datetime.combine(day.day + timedelta(days=1), time(), zone))
        if (without_last(day.orders), day.topups) != (counted["jobs"], counted["topups"]):
            found.append(f"{zone} {day.day}: {day} instead of {counted}")
    return found


def without_last(figures: JobFigures) -> tuple[int, ...]:
    """The figures that are sums."""
    one = figures
    return one.orders, one.delivered, one.failed, one.cancelled, one.refunded, one.revenue, one.cost, one.loss


def faults(tables: Rows, overview: Overview) -> list[str]:
    """What an overview shows wrong."""
    period = overview.period
    bars = zip(overview.jobs, overview.money, strict=True)
    compared = {
        "now": (shown(overview.now), tables.count(period.begin, period.end)),
        "before": (shown(overview.before), tables.count(*period.previous)),
        "bars": ([(jobs.orders, money.cost) for jobs, money in bars], tables.count_bars(period)),
        "cost": (overview.now.money.cost, sum(money.cost for money in overview.money)),
        "funnel": (overview.funnel.started, overview.now.started),
        "models": (sum(line.figures.orders for line in overview.models), overview.now.jobs.orders),
        "sums": (sum(overview.started), overview.now.started),
    }
    return [f"{period.zone} {period.name} {name}: {found}" for name, found in compared.items() if found[0] != found[1]]


async def test_every_period_of_every_zone_is_exact(store: SqlDatabase, clock: ManualClock) -> None:
    history, keeper = History(store, clock, Random(1)), await a_keeper(store)
    for _ in range(90):
        await history.step()
    await settle(keeper, clock)
    edges, tables = DayEdges(store), await Rows.read(store)
    reader, problems = OverviewReader(store, CurrentCatalog(Catalog(models={})), RATES, edges), []
    for zone in map(ZoneInfo, ZONES):
        for query in queries(zone, clock.now()):
            period = read_period(query, zone, clock.now())
            for _ in range(2):  # the second time, with sets of accounts from the cache
                problems += faults(tables, await reader.read(period))
        problems += await wrong_days(tables, zone, MoneyDays(store, RATES, edges))
    assert problems == []


def turn_to(clock: ManualClock, hour: int, minute: int) -> None:
    """Let the time pass until this time of the day."""
    wanted = clock.now().replace(hour=hour, minute=minute, second=0, microsecond=0)
    clock.advance((wanted - clock.now()).total_seconds() % timedelta(days=1).total_seconds())


async def test_a_refund_of_an_order_before_midnight_is_noticed(store: SqlDatabase, clock: ManualClock) -> None:
    keeper = await a_keeper(store)
    turn_to(clock, 18, 10)  # midnight in India is at 18:30
    before = await delivered(store, price=100, notice=False)
    turn_to(clock, 18, 40)
    await delivered(store, price=100, notice=False)
    await settle(keeper, clock)
    reader = OverviewReader(store, CurrentCatalog(Catalog(models={})), RATES, DayEdges(store))
    period = read_period({"period": "today"}, ZoneInfo("Asia/Kolkata"), clock.now())
    assert (await reader.read(period)).now.jobs.revenue == 100

    assert await store.transfer(before.account_id, EntryKind.REFUND, 100, f"refund:{before.id}")
    await settle(keeper, clock)

    found = (await reader.read(period)).now.jobs
    assert (found.orders, found.revenue, found.refunded) == (1, 100, 0)


async def test_orders_of_a_past_day_that_are_counted_later_are_noticed_although_sets_are_cached(
    store: SqlDatabase, clock: ManualClock
) -> None:
    keeper = await a_keeper(store)
    reader = OverviewReader(store, CurrentCatalog(Catalog(models={})), RATES, DayEdges(store))
    await delivered(store, notice=False)
    await settle(keeper, clock)
    await delivered(store, notice=False)
    clock.advance(timedelta(days=70).total_seconds())
    today = clock.now().date()
    period = read_period({"from": f"{today - timedelta(days=89)}", "to": f"{today}"}, UTC, clock.now())
    assert (await reader.read(period)).now.active == 1

    await settle(keeper, clock)

    assert (await reader.read(period)).now.active == 2
