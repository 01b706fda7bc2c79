"""A PostgreSQL store on the server's own clock, and a whole job through it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from genlock.domain.job import Job, State, hash_secret
from genlock.ports import Store
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import ME, SECRET, end, finish, order, see
from tests.stores.conftest import RecordingObserver


@asynccontextmanager
async def opened(url: str, observer: RecordingObserver, **options: Any) -> AsyncIterator[PostgresStore]:
    """A store that uses the server's clock."""
    store = await PostgresStore.open(url, observer=observer, **options)
    try:
        yield store
    finally:
        await store.close()


async def complete_job(store: Store, account_id: int, **changes: Any) -> Job:
    """A job from its order to its notice. Answers may be lost and steps repeated: what counts is the row."""
    job = (await store.accept_job(order(account_id, **changes), ME)).job
    await store.begin_submit(job.id, job.lease_token, hash_secret(SECRET), None)
    await store.mark_submitted(job.id, job.lease_token, f"task-{job.id}", 60.0)
    callback = await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")
    await end(store, job, State.SUCCEEDED, callback_id=callback.id)
    job = await see(store, job)
    await finish(store, job)
    await store.begin_notice(job.id, job.lease_token)
    return job
