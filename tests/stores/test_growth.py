"""No statement reads more rows because there are more orders: every statement of both databases is run and counted."""

import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from genlock.domain.inbox import InboxState
from genlock.domain.job import State
from genlock.domain.job_search import JobFilter
from genlock.domain.update import UpdateState
from genlock.sandbox.postgres import Postgres
from genlock.stores import invariants
from genlock.stores.batch import Params
from genlock.stores.postgres import PostgresStore
from genlock.stores.queries import load
from genlock.stores.rows import Row
from genlock.stores.sqlite import SqliteStore
from tests.databases import new_sqlite
from tests.stores.builders import ManualClock
from tests.stores.conftest import RecordingObserver
from tests.stores.every_method.everything import SQLITE_ONLY, use_everything
from tests.stores.history import HEAVY, fill

SIZE = 300
STEP = 100
FACTOR = 8
#: Statements that read more when there is more of what they are about, with the reason why they may.
GROWS = {
    "check_wallets": "the check on demand reads all entries of an account; the periodic one begins at its checkpoint",
    "save_ledger_checkpoints": "the first checkpoint of an account reads all of its entries",
    "check_gift_runs": "the check on demand reads all free runs of an account that came from promo codes",
    "order_lookup": "it counts the orders of one account in an hour, which are limited",
    "part_jobs": "it counts the orders of less than an hour at the two ends of a period",
    "part_orders": "it reads the accounts of the same orders",
    "late_cancels": "it counts the cancellations of one account in a day, which are limited",
    "match_orphans": "SQLite reads the index of task ids for each orphan that it matches, which is rare",
    "check_debts": "it reads all entries of an account that has a debt",
    "erase_account": "it is rare, and reads the drafts and entries of one account, and the audit log",
    "erase_updates": "it takes a range of ids, which is larger than the history here",
    "clear_figures": "it deletes all figures, at an operator's command",
    "prune_promo_uses": "it looks at every promo code, and operators make them one by one",
    "recount_open_api_jobs": "a restore reads all accounts once",
    "erase_callbacks": "it takes a range of ids, which is larger than the history here",
}
#: The history is old, or all of it happened just now: a statement about the last day reads no more if there was more.
#: `every_method` advances the clock by a minute, so that a shorter period than the product's would contain nothing.
BUSY = pytest.mark.parametrize("busy", [False, True], ids=["old", "busy"])
#: rows that may be read more for other reasons; on SQLite, instructions
SLACK = {"sqlite": 3000, "postgres": 60}
READ_BY_POSTGRES = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(c.oid)), 0)::bigint
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'i')
"""
Costs = dict[str, int]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in steps runs in more steps here, not in larger ones."""
    monkeypatch.setattr("genlock.stores.scan.STEP", STEP)
    for name in ("STEP", "SUBJECT_LINES"):
        monkeypatch.setattr(f"genlock.stores.audit.{name}", STEP)
    for name in ("STEP", "FIRST_STEP", "WINDOW", "COUNTED_MAX"):
        monkeypatch.setattr(f"genlock.stores.job_search.{name}", STEP)
    monkeypatch.setattr("genlock.stores.job_queries.ACCOUNT_STEP", STEP)
    monkeypatch.setattr("genlock.stores.job_search.SAMPLE_BLOCKS", 10)
    monkeypatch.setattr("genlock.stores.job_search.SAMPLE_BLOCK_IDS", 5)
    monkeypatch.setattr("genlock.stores.retention.LIMITS_AT_ONCE", STEP)
    monkeypatch.setattr("genlock.stores.retention.ROWS_AT_ONCE", STEP)
    monkeypatch.setattr("genlock.stores.broadcasts.COUNTED_AT_ONCE", STEP)
    monkeypatch.setattr("genlock.stores.broadcasts.PROFILES_AT_ONCE", STEP)
    monkeypatch.setattr("genlock.stores.profiles.NAMES_READ", STEP)
    monkeypatch.setattr("genlock.stores.hourly_figures.BLOCK_JOBS", STEP)
    monkeypatch.setattr("tests.stores.every_method.upkeep.BLOCK_JOBS", STEP)
    for name, steps in invariants._STEPS.items():
        monkeypatch.setitem(invariants._STEPS, name, replace(steps, size=STEP))


async def instructions(store: SqliteStore, work: Awaitable[Any], monkeypatch: pytest.MonkeyPatch) -> Costs:
    """The instructions of SQLite's virtual machine that each statement took, at most."""
    costs: Costs = defaultdict(int)
    execute, step = store.session._execute, 100
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += step
        return 0

    def measured(connection: sqlite3.Connection, name: str, params: Params) -> list[Row]:
        nonlocal counted
        counted = 0
        rows = execute(connection, name, params)
        costs[name] = max(costs[name], counted)
        return rows

    await store.session.call(lambda connection: connection.set_progress_handler(count, step))
    with monkeypatch.context() as patch:
        patch.setattr(store.session, "_execute", measured)
        await work
    return costs


async def tuples(store: PostgresStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Costs:
    """The rows and index entries that each statement read on PostgreSQL, at most."""
    costs: Costs = defaultdict(int)
    names = {text: name for name, (text, _) in store.session.statements.items()}

    async def measured(text: str, values: Sequence[Any]) -> list[Row]:
        async with store.session.pool.acquire() as connection, connection.transaction():
            before = await connection.fetchval(READ_BY_POSTGRES)
            rows: Any = await connection.fetch(text, *values)
            costs[names[text]] = max(costs[names[text]], await connection.fetchval(READ_BY_POSTGRES) - before)
            return list(rows)

    with monkeypatch.context() as patch:
        patch.setattr(store.session, "_try", measured)
        await use_everything(store, clock)
    return costs


def grown(dialect: str, small: Costs, large: Costs) -> list[str]:
    """The statements that read more rows in the larger database, unless there is a reason for it."""
    return [
        f"{name}: {small[name]} → {large[name]}"
        for name in sorted(large)
        if name not in GROWS and large[name] > small[name] * 1.5 + SLACK[dialect]
    ]


@pytest.mark.slow
@BUSY
async def test_no_statement_reads_more_rows_in_a_longer_history_on_sqlite(
    tmp_path: Path, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch, *, busy: bool
) -> None:
    costs = []
    for size in (SIZE, SIZE * FACTOR):
        clock = ManualClock()
        store = await SqliteStore.open(new_sqlite(tmp_path, f"{size}.db"), clock=clock, observer=observer)
        await fill(store, size, busy=busy)
        costs.append(await instructions(store, use_everything(store, clock), monkeypatch))
        await store.close()

    assert load("sqlite").keys() - SQLITE_ONLY == costs[0].keys() == costs[1].keys()
    found = grown("sqlite", *costs)
    assert not found, "\n".join(found)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("history", [{}, {"busy": True}, {"few_accounts": True}], ids=["old", "busy", "few accounts"])
async def test_no_statement_reads_more_rows_in_a_longer_history_on_postgresql(
    postgres_server: Postgres, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch, history: dict[str, bool]
) -> None:
    """Where a few accounts have all orders, the planner expects to meet those of any account soon."""
    costs = []
    for size in (SIZE, SIZE * FACTOR):
        clock, url = ManualClock(), postgres_server.create_database()
        store = await PostgresStore.open(url, clock=clock, observer=observer)
        await fill(store, size, **history)
        costs.append(await tuples(store, clock, monkeypatch))
        await store.close()
        postgres_server.drop_database(url)

    assert load("postgres").keys() == costs[0].keys() == costs[1].keys()
    found = grown("postgres", *costs)
    assert not found, "\n".join(found)


async def test_a_list_of_an_account_takes_few_statements_in_a_long_history(
    tmp_path: Path, observer: RecordingObserver
) -> None:
    store = await SqliteStore.open(new_sqlite(tmp_path), clock=ManualClock(), observer=observer)
    await fill(store, SIZE)
    before = observer.total("store_statements")
    assert not await store.jobs(state=State.EXPIRED, account_id=3)
    statements = observer.total("store_statements") - before
    await store.close()

    assert statements < 5


async def test_a_count_of_more_orders_of_a_user_takes_as_much_longer(
    tmp_path: Path, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite, the ranges of ids are JSON, which has no index."""
    store = await SqliteStore.open(new_sqlite(tmp_path), clock=ManualClock(), observer=observer)
    await fill(store, SIZE * FACTOR)
    of_one_user, costs = JobFilter(account_id=HEAVY, text="x"), []
    for window in (STEP, STEP * FACTOR):
        monkeypatch.setattr("genlock.stores.job_search.WINDOW", window)
        costs.append((await instructions(store, store.count_jobs(of_one_user), monkeypatch))["count_jobs"])
    await store.close()

    assert costs[1] < costs[0] * FACTOR * 1.5


WAITING_UPDATES = """
INSERT INTO updates (bot, update_id, ordering_key, kind, urgent, body, state, received_at)
WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < :rows)
SELECT 'bot', n, 'user-' || n, 'message', 0, '{}', 'new', n FROM series
"""
WAITING_CALLBACKS = """
INSERT INTO inbox (provider, body, state, due_at, received_at)
WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < :rows)
SELECT 'kie', x'7b7d', 'new', n, n FROM series
"""


async def test_a_list_of_what_waits_copies_only_the_rows_that_it_shows(
    tmp_path: Path, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite, what it reads of the others holds up every user."""
    store, rows = await SqliteStore.open(new_sqlite(tmp_path), clock=ManualClock(), observer=observer), 5000

    def insert(connection: sqlite3.Connection) -> None:
        for statement in (WAITING_UPDATES, WAITING_CALLBACKS):
            connection.execute(statement, {"rows": rows})

    async def list_both() -> None:
        assert [found.update_id for found in await store.updates(UpdateState.NEW, 2)] == [rows, rows - 1]
        assert len(await store.callbacks(InboxState.NEW, 2)) == 2

    await store.session.call(insert)
    costs = await instructions(store, list_both(), monkeypatch)
    await store.close()

    per_row = {name: cost / rows for name, cost in costs.items()}
    assert max(per_row.values()) < 20, per_row
