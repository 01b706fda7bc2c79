"""The clock of the PostgreSQL server, and plans that read no more rows than the work needs."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from genlock.sandbox.bench.history import make_history
from genlock.sandbox.postgres import Postgres
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import ME, queued
from tests.stores.conftest import RecordingObserver
from tests.stores.history import fill
from tests.stores.open_postgres import opened
from tests.stores.test_growth import READ_BY_POSTGRES


async def test_the_clock_is_that_of_the_server(postgres_url: str, observer: RecordingObserver) -> None:
    """Also when the server has another time zone."""
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Tokyo''', current_database()); END $$"
    )
    async with opened(postgres_url, observer) as store:
        before = await connection.fetchval("SELECT clock_timestamp()")
        job = await queued(store)
        after = await connection.fetchval("SELECT clock_timestamp()")
    await connection.close()

    assert before <= job.created_at <= after
    assert job.created_at.utcoffset() == timedelta(0)
    assert job.due_at == job.created_at + timedelta(seconds=ME.seconds)


CALLBACKS_OF_LONG_AGO = """
INSERT INTO inbox (provider, job_id, task_id, body, state, received_at)
SELECT 'instant', n, 'old-' || n, '{}', 'done', now() FROM generate_series(1, 5000) AS n
"""


@pytest_asyncio.fixture(loop_scope="session")
async def long_used(postgres_url: str, observer: RecordingObserver) -> AsyncIterator[PostgresStore]:
    """A store with enough finished jobs that the planner avoids scanning them."""
    await make_history("postgres", postgres_url, 5000)
    async with opened(postgres_url, observer) as store:
        await store.session.pool.execute(CALLBACKS_OF_LONG_AGO)
        await store.session.pool.execute("ANALYZE jobs, inbox")
        yield store


@pytest.mark.parametrize(
    ("name", "values", "index"),
    [
        ("claim_jobs", {"limit": 10, "owner": "me", "seconds": 30.0, "due_since": None}, "jobs_due"),
        ("claim_callbacks", {"limit": 10, "hold_seconds": 5.0, "due_since": None}, "inbox_due"),
        ("match_orphans", {"limit": 10}, "inbox_orphans"),
        ("jobs_needing_attention", {"limit": 10}, "jobs_attention"),
        ("release_leases", {"instance": "me", "keep": "{}", "crashed": True, "isolated_from": 3}, "jobs_due"),
        ("claim_poison_jobs", {"slots": "{100,10,1}", "owner": "me", "seconds": 30.0}, "jobs_poison"),
    ],
)
async def test_statements_that_look_for_work_do_not_scan_finished_jobs(
    long_used: PostgresStore, name: str, values: dict[str, Any], index: str
) -> None:
    text, names = long_used.session.statements[name]
    arguments = [{**values, "now": None}[parameter] for parameter in names]

    plan = "\n".join(row[0] for row in await long_used.session.pool.fetch(f"EXPLAIN {text}", *arguments))

    assert re.search(rf"\bIndex Scan (using|on) {index}\b", plan), plan
    assert "Seq Scan" not in plan, plan


#: Plans that go through a whole index, each for as many rows as there is work to do, or to be done by an operator.
READS_ALL_WORK = {
    "claim_poison_jobs", "counts", "expire_orphans", "expire_recipients", "job_anomalies", "new_callbacks",
    "new_updates", "open_job_ids", "open_jobs_until", "orphan_callbacks", "park_updates", "settled_inbox",
    "settled_jobs", "settled_update_queues", "stats", "unfinished_job_ids",
    "claim_webhooks",  # reads all endpoints, only for a while after a slow search
}  # fmt: skip
#: tables with few rows, and a restore, which reads everything once
SMALL_TABLES = {
    "breakers", "broadcasts", "bulk_actions", "dashboard_sessions", "figure_positions", "instances", "kv",
    "login_links", "migrations", "operators", "promos", "roles", "task_slots",
}  # fmt: skip
READS_EVERYTHING_ONCE = {"clear_figures", "recount_open_api_jobs"}


@pytest.mark.slow
async def test_every_plan_looks_rows_up(postgres_server: Postgres, observer: RecordingObserver) -> None:
    """The plans that the store uses, which are made for unknown parameters, scan no table and no index."""
    found, url = [], postgres_server.create_database()
    async with opened(url, observer) as store, store.session.pool.acquire() as connection:
        await fill(store, 2400)
        for name, (text, names) in store.session.statements.items():
            if name not in READS_EVERYTHING_ONCE:
                await connection.execute(f"PREPARE examined AS {text}")
                values = f"({', '.join(['NULL'] * len(names))})" if names else ""
                plan = json.loads(await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE examined{values}"))
                await connection.execute("DEALLOCATE examined")
                found += [f"{name}: {scan}" for scan in _scans(plan[0]["Plan"], limited=False)]

    postgres_server.drop_database(url)
    unexpected = [scan for scan in found if scan.split(":")[0] not in READS_ALL_WORK]
    assert not unexpected, "\n".join(unexpected)


def _scans(plan: dict[str, Any], *, limited: bool) -> Iterator[str]:
    """Yield the nodes that read a table, or an index without a condition, from end to end.

    A limit ends the scan below it, unless it is the limit of a part of the plan that runs apart: a list for a hash.
    """
    kind, table = plan["Node Type"], plan.get("Relation Name")
    limited = kind == "Limit" or (limited and plan.get("Parent Relationship") not in ("SubPlan", "InitPlan"))
    if table not in SMALL_TABLES:
        if kind == "Seq Scan":
            yield f"Seq Scan on {table}"
        elif kind.startswith("Index") and "Index Cond" not in plan and not limited:
            yield f"{kind} of all of {plan['Index Name']}"
    for child in plan.get("Plans", []):
        yield from _scans(child, limited=limited)


async def test_no_statement_over_arrays_compares_every_item_with_every_other(postgres: PostgresStore) -> None:
    """Without hash joins, a join of two CTEs is a loop in a loop: 62,500 comparisons for a batch of 250."""
    session = postgres.session
    over_arrays = {name: pair for name, pair in session.statements.items() if "unnest(" in pair[0]}
    quadratic = []
    for name, (text, names) in over_arrays.items():
        [row] = await session.pool.fetch(f"EXPLAIN (FORMAT JSON) {text}", *[None] * len(names))
        quadratic += [f"{name}: {pair}" for pair in _joined_ctes(json.loads(row[0])[0]["Plan"])]

    assert len(over_arrays) > 30
    assert not quadratic, "\n".join(quadratic)


def _joined_ctes(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the pairs of CTEs that a nested loop joins."""
    children = plan.get("Plans", [])
    sides = [child for child in children if child.get("Parent Relationship") in ("Outer", "Inner")]
    if plan["Node Type"] == "Nested Loop" and all(_is_cte(side) for side in sides):
        yield " and ".join(_cte_name(side) for side in sides)
    for child in children:
        yield from _joined_ctes(child)


def _is_cte(plan: dict[str, Any]) -> bool:
    return plan["Node Type"] == "CTE Scan" or (
        plan["Node Type"] in ("Materialize", "Sort", "Memoize", "Subquery Scan") and _is_cte(plan["Plans"][0])
    )


def _cte_name(plan: dict[str, Any]) -> str:
    return str(plan["CTE Name"]) if plan["Node Type"] == "CTE Scan" else _cte_name(plan["Plans"][0])


#: one run for each of many accounts, and many runs of one
MANY_FREE_RUNS = """
INSERT INTO free_runs (account_id, request_key, source, at)
SELECT CASE WHEN n % 6 = 0 THEN 1 ELSE n + 1 END, md5(n::text), 'day', now() - interval '10 days'
FROM generate_series(1, 12000) AS n
"""


@pytest.mark.parametrize("name", ["free_runs", "take_free_run"])
async def test_an_account_with_many_used_runs_reads_those_of_today(
    postgres_url: str, observer: RecordingObserver, name: str
) -> None:
    """The planner knows that an account has one run on the average: then every index of the account looks as good."""
    async with opened(postgres_url, observer) as store:
        await store.session.pool.execute(MANY_FREE_RUNS)
        await store.session.pool.execute("ANALYZE free_runs")
        text, names = store.session.statements[name]
        values = {"account_id": 1, "request_key": "key", "per_day": 1, "ignore_key": "key", "now": None}
        async with store.session.pool.acquire() as connection, connection.transaction():
            before = await connection.fetchval(READ_BY_POSTGRES)
            await connection.fetch(text, *[values[parameter] for parameter in names])
            read = await connection.fetchval(READ_BY_POSTGRES) - before

    assert read < 20


#: one endpoint has thousands of events that wait since the same moment, the others none
BACKLOG_OF_ONE = """
INSERT INTO webhook_deliveries (public_id, webhook_id, job_id, event, event_at, state, due_at)
SELECT 'msg_' || n, CASE WHEN n % 10 = 0 THEN 1 ELSE n % 500 END, n, 'job.succeeded', now(),
    CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'delivered' END, CASE WHEN n % 10 = 0 THEN now() - interval '1 hour' END
FROM generate_series(1, 40000) AS n
"""


@pytest.mark.parametrize("statistics", ["SELECT 1", "VACUUM ANALYZE webhook_deliveries"], ids=["none", "fresh"])
async def test_the_events_that_wait_for_an_endpoint_are_neither_sorted_nor_compared_with_each_other(
    postgres_url: str, observer: RecordingObserver, statistics: str
) -> None:
    async with opened(postgres_url, observer) as store:
        await store.session.pool.execute(BACKLOG_OF_ONE)
        await store.session.pool.execute(statistics)
        text, _ = store.session.statements["due_webhook_deliveries"]
        async with store.session.pool.acquire() as connection:
            await connection.execute(f"PREPARE examined AS {text}")
            rows = await connection.fetch("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE examined (1, NULL, NULL, 50)")
    plan = "\n".join(row[0] for row in rows)

    assert "Join" not in plan, plan
    assert "Sort" not in plan, plan
    assert re.search(r"loops=50\b", plan), plan
