"""Statements on PostgreSQL read few rows also where the planner's averages are wrong, or where it has none yet."""

from typing import Any

import pytest

from genlock.domain.broadcast import Segment
from genlock.stores.postgres import PostgresStore
from tests.stores.conftest import RecordingObserver
from tests.stores.open_postgres import opened
from tests.stores.test_growth import READ_BY_POSTGRES

#: one account has a tenth of the jobs, all of API keys; the others have a few each
JOBS_OF_ONE_CLIENT = """
INSERT INTO jobs (account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, model, input,
    price, hold_state, state, task_id, delivery, notice, deadline_at, lease_token, created_at, ended_at, delivered_at,
    api_key_id)
SELECT CASE WHEN n % 10 = 0 THEN 1 ELSE 2 + n % 8000 END, md5(n::text), '', '', 'kie', 'api', 'bot', '{}', 'model',
    '{}', 0, 'free', 'succeeded', md5(n::text), 'delivered', 'none', now(), 2, now(), now(), now(),
    CASE WHEN n % 10 = 0 THEN 1 END
FROM generate_series(1, 40000) AS n
"""
#: unauthenticated callbacks that no job waits for, among many others
ORPHANS = """
INSERT INTO inbox (provider, task_id, body, state, received_at)
SELECT 'kie', 'orphan-' || n, '{}', CASE WHEN n % 300 = 0 THEN 'orphan' ELSE 'done' END, now()
FROM generate_series(1, 60000) AS n
"""
CODES = """
INSERT INTO promos (code, bot, amount, runs, per_account, author, created_at)
SELECT 'OPEN-' || n, '', 1000, 0, 1, 'me', now() FROM generate_series(0, 500) AS n
"""
USES_OF_A_FEW_CODES = """
INSERT INTO promo_uses (code, account_id, number, request_key, at)
SELECT 'OPEN-' || n % 10, n, 1, 'key', now() - interval '2 years' FROM generate_series(1, 20000) AS n
"""
USERS = """
INSERT INTO accounts (channel, bot, external_id, created_at)
SELECT 'chat', 'bot', n::text, now() FROM generate_series(1, 6000) AS n
"""
PROFILES = """
INSERT INTO profiles (account_id, language, name, username, created_at, seen_at)
SELECT id, 'en', '', '', now(), now() FROM accounts
"""
PAYMENTS = """
INSERT INTO payments (charge, account_id, stars, amount, state, at)
SELECT id::text, id, 1, 1, 'paid', now() FROM accounts WHERE id % 2 = 0
"""

#: most that wait for an operator are of one kind, and very many have been handled
ANOMALIES = """
INSERT INTO job_anomalies (job_id, kind, at, handled_at)
SELECT n, CASE WHEN n % 3 = 0 THEN 'loss' ELSE 'wrong_task' END, now(), CASE WHEN n % 3 = 0 THEN now() END
FROM generate_series(1, 9000) AS n
"""
REFUNDS = """
INSERT INTO payments (charge, account_id, stars, amount, state, at)
SELECT n::text, n, 1, 1, CASE WHEN n % 8 = 0 THEN 'refunded' ELSE 'paid' END, now() - n * interval '1 second'
FROM generate_series(1, 9000) AS n
"""

DUE_JOBS = """
INSERT INTO jobs (account_id, request_key, request_hash, correlation_id, provider, channel, bot, address, model, input,
    price, hold_state, state, notice, due_at, deadline_at, lease_token, created_at)
SELECT n, 'key', '', '', 'kie', 'chat', 'bot', '{}', 'model', '{}', 0, 'free', 'queued', 'none', now(), now(), 1, now()
FROM generate_series(1, 3000) AS n
"""


async def rows_read(store: PostgresStore, name: str, **values: Any) -> int:
    """Return how many rows and index entries a statement reads; what it writes is rolled back."""
    text, names = store.session.statements[name]
    async with store.session.pool.acquire() as connection, connection.transaction():
        before = await connection.fetchval(READ_BY_POSTGRES)
        await connection.fetch(text, *[{**values, "now": None}[parameter] for parameter in names])
        return int(await connection.fetchval(READ_BY_POSTGRES)) - int(before)


async def test_a_client_with_many_orders_reads_those_of_one_body(
    postgres_url: str, observer: RecordingObserver
) -> None:
    """An account has few jobs of API keys on the average: any index of the account looks good to the planner."""
    async with opened(postgres_url, observer) as store:
        await store.session.pool.execute(JOBS_OF_ONE_CLIENT)
        await store.session.pool.execute("VACUUM ANALYZE jobs")
        read = await rows_read(store, "newest_api_job_between", account_id=1, first="body 0", last="body 9")

    assert read < 20


async def test_orphans_are_looked_up_also_before_the_first_statistics(
    postgres_url: str, observer: RecordingObserver
) -> None:
    """As after a restore: the planner expects thousands of orphans, and would rather read all jobs."""
    async with opened(postgres_url, observer) as store:
        await store.session.pool.execute(JOBS_OF_ONE_CLIENT)
        await store.session.pool.execute(ORPHANS)
        read = await rows_read(store, "match_orphans", limit=200)

    assert read < 1000


async def test_retention_does_not_read_the_uses_of_codes_that_have_not_ended(
    postgres_url: str, observer: RecordingObserver
) -> None:
    async with opened(postgres_url, observer) as store:
        role = await store.take_role("active", "me", 60.0)
        for statement in (CODES, USES_OF_A_FEW_CODES, "ANALYZE promos, promo_uses"):
            await store.session.pool.execute(statement)
        read = await rows_read(
            store, "prune_promo_uses", older_than=86400.0, limit=500, holder=role.holder, epoch=role.epoch
        )

    assert read < 2000


@pytest.mark.parametrize("paid", [True, False], ids=["paid", "not paid"])
async def test_a_broadcast_by_payment_does_not_read_all_payments_for_each_user(
    postgres_url: str, observer: RecordingObserver, *, paid: bool
) -> None:
    async with opened(postgres_url, observer) as store:
        for statement in (USERS, PROFILES, PAYMENTS):
            await store.session.pool.execute(statement)
        broadcast = await store.begin_broadcast(
            "text", bot="bot", author="me", request_key="key", segment=Segment(paid=paid)
        )
        await store.session.pool.execute("VACUUM ANALYZE")
        read = await rows_read(store, "next_recipient", broadcast_id=broadcast.id, window=1000, seconds=60.0)

    assert read < 100


async def test_a_rare_kind_of_anomaly_is_listed_without_reading_the_others(
    postgres_url: str, observer: RecordingObserver
) -> None:
    async with opened(postgres_url, observer) as store:
        for statement in (ANOMALIES, "VACUUM ANALYZE job_anomalies"):
            await store.session.pool.execute(statement)
        read = await rows_read(store, "anomalies", kind="contradiction", before=10**9, limit=50)

    assert read < 100


async def test_refunds_in_a_rare_state_are_listed_without_reading_the_other_payments(
    postgres_url: str, observer: RecordingObserver
) -> None:
    async with opened(postgres_url, observer) as store:
        for statement in (REFUNDS, "VACUUM ANALYZE payments"):
            await store.session.pool.execute(statement)
        read = await rows_read(store, "payments_in_state", state="refunding", at=4 * 10**15, key="", since=0, limit=50)

    assert read < 100


async def test_the_gauges_read_each_open_job_once(postgres_url: str, observer: RecordingObserver) -> None:
    async with opened(postgres_url, observer) as store:
        await store.session.pool.execute(DUE_JOBS)
        await store.session.pool.execute("VACUUM ANALYZE jobs")
        read = await rows_read(store, "stats", window=600.0, user_errors="{}")
        gauges = await store.stats()

    assert gauges["queued"] == gauges["due"] == 3000
    assert gauges["undelivered"] == 0
    assert read < 4000
