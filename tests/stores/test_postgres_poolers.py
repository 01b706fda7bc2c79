"""The store behind PgBouncer in transaction mode."""

import asyncio

import pytest

from genlock.domain.delivery import again
from genlock.domain.job import Delivery
from genlock.domain.money import HoldState
from tests.pgbouncer import POOL_SIZE
from tests.stores.builders import ME, account_with, see
from tests.stores.conftest import RecordingObserver
from tests.stores.open_postgres import complete_job, opened


async def test_a_pooler_is_detected(pgbouncer_url: str, postgres_url: str, observer: RecordingObserver) -> None:
    async with opened(pgbouncer_url, observer) as behind, opened(postgres_url, observer) as direct:
        assert behind.session.pooled
        assert not direct.session.pooled


async def test_jobs_run_through_a_pooler_in_transaction_mode(pgbouncer_url: str, observer: RecordingObserver) -> None:
    """Two instances with more connections than the pooler has: each statement may meet another server process."""
    async with opened(pgbouncer_url, observer) as one, opened(pgbouncer_url, observer) as other:
        stores = (one, other)
        accounts = [await account_with(one) for _ in range(10 * POOL_SIZE)]

        jobs = await asyncio.gather(
            *(complete_job(stores[place % 2], account_id) for place in range(4) for account_id in accounts)
        )

        rows = [await see(one, job) for job in jobs]
        assert {(row.delivery, row.hold_state, row.due_at) for row in rows} == {
            (Delivery.DELIVERED, HoldState.CAPTURED, None)
        }
        assert len({row.id for row in rows}) == 4 * len(accounts)
        assert await one.violations(settled=True) == []
        assert observer.total("store_retries") == 0
        assert observer.total("store_batches") < observer.total("store_batch_items") / 4, "batches were merged"


async def test_every_kind_of_statement_works_through_a_pooler(pgbouncer_url: str, observer: RecordingObserver) -> None:
    async with opened(pgbouncer_url, observer) as store:
        account_id = await account_with(store)
        await store.heartbeat("me", 3.0)
        role = await store.take_role("active", "me", 3.0)
        assert await store.expire_orphans(0.0, role) == []
        assert await store.reserve_permits("create", 3, 1.0, 3, 1.0) == pytest.approx([0, 0, 0])
        job = await complete_job(store, account_id)
        assert await store.resend_job(job.id, again(job.parts))
        assert await store.release_leases("me") == 0
        assert [taken.id for taken in await store.claim_jobs(10, ME)] == [job.id]
        assert await store.counts()
        await store.release_role("active", "me")
