"""The clock of the PostgreSQL server, and plans that scan no finished jobs."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any

import asyncpg
import pytest
import pytest_asyncio

from genlock.sandbox.bench.history import make_history
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import ME, queued
from tests.stores.conftest import RecordingObserver
from tests.stores.open_postgres import opened


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
        ("claim_jobs", {"limit": 10, "owner": "me", "seconds": 30.0}, "jobs_due"),
        ("claim_callbacks", {"limit": 10, "hold_seconds": 5.0}, "inbox_due"),
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
