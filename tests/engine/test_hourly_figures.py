"""The figures by hour: kept beside a random history, they equal what a count of all rows finds, and a rebuild."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from genlock.dashboard.account_sets import AccountSets
from genlock.domain.account_set import AccountSet
from genlock.domain.delivery import again
from genlock.domain.figures import (
    JobFigures,
    ModelFigures,
    hour_number,
    hour_start,
    percentile,
    sum_by_provider,
)
from genlock.engine import hourly_figures
from genlock.ports import UNITED_DAYS, Role, united_kind
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import shipped
from genlock.stores.postgres import PostgresStore
from genlock.stores.sqlite import SqliteStore
from tests.engine.counted_figures import a_keeper, counted, rows, settle
from tests.engine.manual_clock import ManualClock
from tests.engine.random_history import HOUR, History
from tests.stores.builders import RESULT, delivered, queued


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.stores.hourly_figures.BLOCK_JOBS", 7)
    monkeypatch.setattr(hourly_figures, "PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(hourly_figures, "ROWS", 5)
    monkeypatch.setattr(hourly_figures, "BLOCKS", 2)


async def kept(store: SqlDatabase, since: int, until: int, bot: str | None) -> dict[str, Any]:
    """The figures as the dashboard reads them."""
    models = await store.model_figures(since, until, bot)
    return {
        "hours": await store.period_figures(since, until, bot=bot),
        "models": {(model_figures.provider, model_figures.model): model_figures.figures for model_figures in models},
        "topups": await store.topup_figures(since, until, bot=bot),
        "started": await store.account_set("started", since, until, bot),
        "active": await store.account_set("active", since, until, bot),
        "ordered": await store.account_set("ordered", 0, 0) if bot is None else AccountSet(),
        "paid again": len(await store.account_set("topped_up_again", 0, 0)) if bot is None else 0,
    }


async def quarters(store: SqlDatabase, since: int, until: int) -> dict[str, JobFigures]:
    """The sums of all quarters of an hour by provider."""
    edges = [hour_start(since) + number * timedelta(minutes=15) for number in range(4 * (until - since) + 1)]
    parts = await store.part_orders(list(pairwise(edges)))
    sums = sum_by_provider(model_figures for part in parts for model_figures in part.providers)
    return {provider: figures for provider, figures in sums.items() if figures != JobFigures()}


async def everything(store: SqlDatabase, since: int, until: int) -> list[Any]:
    return [
        await quarters(store, since, until),
        [await kept(store, since, until, bot) for bot in (None, "bot", "second")],
        await store.model_durations(since, until),
        await store.delivery_durations(since, until),
        await store.account_set_sizes("first_order", since, until),
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_the_figures_equal_a_count_of_all_rows_and_a_rebuild(
    store: SqlDatabase, clock: ManualClock, seed: int, first_seed: int
) -> None:
    rng = Random(first_seed + seed)
    history = History(store, clock, rng)
    start = hour_number(clock.now())
    keeper = await a_keeper(store)
    for _ in range(60):
        await history.step()
        if rng.random() < 0.3:
            await keeper.leader.elect()
            await keeper.round()
    await history.finish_deliveries()
    for _ in range(3):
        await history.change_later()
    await settle(keeper, clock)
    end_ = hour_number(clock.now()) + 1

    for since, until in [(start, end_), (start + 3, end_ - 5), (start + 30, start + 31), (end_ - 20, end_ - 1)]:
        for bot in (None, "bot", "second"):
            assert await kept(store, since, until, bot) == await counted(store, since, until, bot)
    assert sum((await store.account_set_sizes("first_order", start, end_)).values()) == len(
        await store.account_set("ordered", 0, 0)
    )
    providers = [
        model_figures for hour in (await store.provider_figures(start, end_)).values() for model_figures in hour
    ]
    sums = sum_by_provider(await store.model_figures(start, end_))
    assert sum_by_provider(providers) == sums
    assert await quarters(store, start, end_) == {
        provider: replace(figures, last_failed_job=0) for provider, figures in sums.items()
    }
    days = await store.period_figures(start, end_, 24)
    assert sum(days.values(), JobFigures()) == sum((await store.period_figures(start, end_)).values(), JobFigures())
    assert {(first - start) % 24 for first in days} == {0}
    before = await everything(store, start, end_)
    await store.clear_figures()
    assert await store.period_figures(start, end_) == {}
    await keeper.leader.elect()
    await keeper.round()
    assert await everything(store, start, end_) == before


async def execute(store: SqlDatabase, script: str) -> None:
    if isinstance(store, SqliteStore):

        def run(connection: Any) -> None:
            for statement in script.split(";"):
                connection.execute(statement)

        await store.session.call(run)
        return
    assert isinstance(store, PostgresStore)
    async with store.session.pool.acquire() as connection, connection.transaction():
        await connection.execute(script)


async def test_an_upgrade_divides_the_totals_of_hours_by_provider(store: SqlDatabase, clock: ManualClock) -> None:
    history, keeper = History(store, clock, Random(5)), await a_keeper(store)
    for _ in range(25):
        await history.step()
    await settle(keeper, clock)
    totals, providers = await store.period_figures(0, 10**6), await store.provider_figures(0, 10**6)
    assert {model_figures.provider for hour in providers.values() for model_figures in hour} == {"kie", "other"}
    await execute(
        store,
        """DELETE FROM job_figures WHERE span = 'hour_total';
        INSERT INTO job_figures
        SELECT 'hour_total', start, bot, '', '', sum(orders), sum(delivered), sum(failed), sum(cancelled),
            sum(refunded), sum(revenue), sum(cost), sum(loss), max(last_failed_job)
        FROM job_figures WHERE span = 'hour' GROUP BY start, bot""",
    )
    assert await store.period_figures(0, 10**6) == totals
    dialect = "sqlite" if isinstance(store, SqliteStore) else "postgres"
    [upgrade] = [migration for migration in shipped(dialect) if migration.name == "hour_totals_of_providers"]

    await execute(store, upgrade.text)

    assert await store.period_figures(0, 10**6) == totals
    found = await store.provider_figures(0, 10**6)
    assert {
        hour: [model_figures for model_figures in figures if model_figures.provider] for hour, figures in found.items()
    } == providers


async def test_days_that_have_passed_are_united_once_and_hold_the_accounts_of_their_days(
    store: SqlDatabase, clock: ManualClock
) -> None:
    keeper, kind, day_seconds = await a_keeper(store), united_kind("active"), 24 * HOUR
    clock.advance(-(clock.now().timestamp() % (UNITED_DAYS * day_seconds)) + 40 * HOUR)  # the second of 30 days
    first = hour_number(clock.now()) // 24 - 1
    jobs = [await delivered(store, notice=False)]
    for days in (20, 9):  # the last is on the first of the next 30 days
        clock.advance(days * day_seconds)
        jobs.append(await delivered(store, notice=False))
    await settle(keeper, clock)
    assert await store.account_sets_of_days(kind, [first]) == {}, "there may be more orders of the last of these days"

    clock.advance(2 * day_seconds)
    await delivered(store, notice=False)
    await settle(keeper, clock)

    found = await store.account_sets_of_days(kind, [first, first + UNITED_DAYS])
    assert found == {first: AccountSet.of([job.account_id for job in jobs[:2]])}
    sets = AccountSets(store)
    for since, until in ((first * 24, (first + 31) * 24), (first * 24, (first + 40) * 24)):
        assert await sets.read("active", since, until) == await store.account_set("active", since, until)


async def test_new_orders_are_counted_while_an_upgrade_counts_the_history_again(
    store: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history of a large installation takes an hour."""
    for _ in range(7 * 12):
        await queued(store, lease=None)
    keeper = await a_keeper(store)
    await keeper.round()
    await execute(store, "UPDATE figure_blocks SET quarters_at = NULL")
    monkeypatch.setattr(hourly_figures, "PAUSE_SECONDS", 0.02)
    monkeypatch.setattr(hourly_figures, "ROUND_SECONDS", 0.05, raising=False)

    await keeper.round()
    await queued(store, lease=None)
    await keeper.round()

    assert sum(figures.orders for figures in (await store.period_figures(0, 10**6)).values()) == 7 * 12 + 1
    left = "SELECT block FROM figure_blocks WHERE quarters_at IS NULL"
    assert await rows(store, left) != []
    for _ in range(20):
        await keeper.round()
    assert await rows(store, left) == []


async def test_a_block_is_final_when_its_jobs_need_no_work_and_counted_again_after_a_change(
    store: SqlDatabase, clock: ManualClock
) -> None:
    job = await delivered(store, notice=False)
    keeper = await a_keeper(store)
    await keeper.round()
    await settle(keeper, clock)
    assert await store.due_job_blocks(10) == []

    assert await store.resend_job(job.id, again(RESULT))

    assert await store.due_job_blocks(10) == [(job.id - 1) // 7]
    await keeper.leader.elect()
    await keeper.round()
    assert [model_figures.figures.delivered for model_figures in await store.model_figures(0, 10**6)] == [0]


async def test_an_old_leader_changes_no_figures(store: SqlDatabase) -> None:
    await delivered(store)
    keeper = await a_keeper(store)
    assert keeper.leader.role
    old = Role(holder="old", epoch=keeper.leader.role.epoch - 1)

    [block] = await store.due_job_blocks(10)
    assert not await store.fold_jobs(block, old)
    assert not await store.save_account_sets("orders", "", "5", {}, old)

    assert await store.period_figures(0, 10**6) == {}
    assert await store.figure_position("orders") == ""


async def test_a_step_that_was_read_before_the_figures_were_cleared_is_not_written(store: SqlDatabase) -> None:
    keeper = await a_keeper(store)
    assert keeper.leader.role
    assert await store.save_account_sets("orders", "", "5", {}, keeper.leader.role)
    await store.clear_figures()

    assert not await store.save_account_sets("orders", "5", "9", {}, keeper.leader.role)

    assert await store.figure_position("orders") == ""


async def test_ids_that_were_never_used_do_not_stop_the_count(store: SqlDatabase) -> None:
    first = await delivered(store)
    last_id = await job_after_a_gap(store)
    assert last_id > first.id + 90
    keeper = await a_keeper(store)

    await keeper.round()

    assert [model_figures.figures.orders for model_figures in await store.model_figures(0, 10**6)] == [2]
    assert (await store.figures_progress()).contained_job == last_id


async def job_after_a_gap(store: SqlDatabase) -> int:
    if isinstance(store, SqliteStore):
        job = await delivered(store)
        await rows(store, f"UPDATE jobs SET id = id + 100 WHERE id = {job.id} RETURNING id")  # noqa: S608
        return job.id + 100
    await rows(store, "SELECT nextval('jobs_id_seq') FROM generate_series(1, 100)")
    return (await delivered(store)).id


def test_a_percentile_is_interpolated_within_its_bucket() -> None:
    assert percentile({}, 0.5) is None
    assert percentile({10: 4}, 0.5) == pytest.approx(4.0)
    assert percentile({10: 50, 20: 50}, 0.99) == pytest.approx(180 + 60 * 49 / 50, abs=60)
    assert percentile({29: 1}, 0.5) == 7200.0


def test_figures_of_models_are_values() -> None:
    one = ModelFigures(provider="kie", model="cat", figures=JobFigures(orders=1, last_failed_job=3))
    assert one.figures + JobFigures(orders=2, last_failed_job=2) == JobFigures(orders=3, last_failed_job=3)
