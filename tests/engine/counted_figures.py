"""The figures by hour as a count of all rows finds them, and the engine's keeper of those figures."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from genlock.domain.account_set import AccountSet
from genlock.domain.figures import (
    JobFigures,
    TopupFigures,
    hour_number,
)
from genlock.engine.context import EngineContext
from genlock.engine.engine import Engine
from genlock.engine.hourly_figures import HourlyFigureKeeper
from genlock.engine.limits import RateLimiter
from genlock.stores.database import SqlDatabase
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore
from tests.engine.manual_clock import ManualClock
from tests.engine.random_history import HOUR
from tests.engine.recorder import Recorder
from tests.engine.world import RULES


async def a_keeper(store: SqlDatabase, name: str = "me") -> HourlyFigureKeeper:
    ctx = EngineContext(
        store=store, providers={}, channels={}, observer=Recorder(), instance=name, limits=RateLimiter(store, {}),
        rules=RULES,
    )  # fmt: skip
    engine = Engine(ctx)
    await engine.leader.elect()
    return HourlyFigureKeeper(ctx, engine.leader, store)


async def settle(keeper: HourlyFigureKeeper, clock: ManualClock) -> None:
    """Let the time pass after which every block and every row has been counted."""
    for _ in range(3):
        clock.advance(2 * HOUR)
        await keeper.leader.elect()
        await keeper.round()


async def rows(store: SqlDatabase, statement: str) -> list[Mapping[str, Any]]:
    if isinstance(store, SqliteStore):

        def read(connection: Any) -> list[Mapping[str, Any]]:
            cursor = connection.execute(statement)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

        return await store.session.call(read)
    assert isinstance(store, PostgresStore)
    return [dict(row) for row in await store.session.pool.fetch(statement)]


async def counted(store: SqlDatabase, since: int, until: int, bot: str | None) -> dict[str, Any]:
    """The figures as a count of all rows finds them."""

    def hour_of(at: Any) -> int:
        time = store.session.time(at)
        assert time
        return hour_number(time)

    jobs = [(hour_of(row["created_at"]), row) for row in await rows(store, "SELECT * FROM jobs")]
    inside = [(hour, row) for hour, row in jobs if since <= hour < until and row["bot"] == (bot or row["bot"])]
    hours: dict[int, JobFigures] = defaultdict(JobFigures)
    models: dict[tuple[str, str], JobFigures] = defaultdict(JobFigures)
    for hour, row in inside:
        hours[hour] += one_job(row)
        models[row["provider"], row["model"]] += one_job(row)
    payments = await rows(
        store, "SELECT p.*, a.bot FROM payments p JOIN accounts a ON a.id = p.account_id ORDER BY p.at"
    )
    topups: dict[int, TopupFigures] = defaultdict(TopupFigures)
    paid: Counter[int] = Counter()
    for row in payments:
        hour = hour_of(row["at"])
        paid[row["account_id"]] += 1
        if since <= hour < until and row["bot"] == (bot or row["bot"]):
            topups[hour] += one_payment(row, repeated=paid[row["account_id"]] > 1)
    accounts = await rows(store, "SELECT id, bot, created_at FROM accounts")
    return {
        "hours": dict(hours),
        "models": dict(models),
        "topups": dict(topups),
        "started": AccountSet.of(
            row["id"] for row in accounts
            if since <= hour_of(row["created_at"]) < until and row["bot"] == (bot or row["bot"])
        ),
        "active": AccountSet.of(row["account_id"] for _, row in inside),
        "ordered": AccountSet.of(row["account_id"] for _, row in jobs if bot is None),
        "paid again": sum(number > 1 for number in paid.values()) if bot is None else 0,
    }  # fmt: skip


def one_job(row: Mapping[str, Any]) -> JobFigures:
    failed, captured = row["state"] in ("failed", "expired"), row["hold_state"] == "captured"
    return JobFigures(
        orders=1,
        delivered=int(row["state"] == "succeeded" and row["delivery"] == "delivered"),
        failed=int(failed),
        cancelled=int(row["state"] == "cancelled"),
        refunded=int(row["hold_state"] == "released"),
        revenue=row["price"] if captured else 0,
        cost=row["cost"] or 0,
        loss=0 if captured else row["cost"] or 0,
        last_failed_job=row["id"] if failed else 0,
    )


def one_payment(row: Mapping[str, Any], *, repeated: bool) -> TopupFigures:
    if row["state"] != "paid":
        return TopupFigures(refunds=1, refunded_amount=row["stars"])
    return TopupFigures(topups=1, paid_amount=row["stars"], credits=row["amount"], repeated=int(repeated))
