from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from genlock.domain.inbox import InboxState
from genlock.domain.job import State
from genlock.ports import Reschedule, Store
from tests.stores.builders import ManualClock, delivered, end, ended, queued, running, see, submitting


def times(value: Any) -> Iterator[datetime]:
    """All times in a value."""
    for field in fields(value):
        found = getattr(value, field.name)
        if isinstance(found, datetime):
            yield found


async def test_every_time_is_aware_and_in_utc(store: Store) -> None:
    graceful = await submitting(store)
    assert await store.reschedule(Reschedule(job_id=graceful.id, token=graceful.lease_token, after=5.0, grace=True))
    job = await delivered(store)
    await store.store_callback("kie", None, "", b"{}")
    seen = [
        await see(store, graceful),
        job,
        *await store.jobs(),
        *await store.callbacks(InboxState.NEW, 10),
        *await store.ledger_entries(job.account_id, 10),
    ]

    found = [time for value in seen for time in times(value)]

    assert len(found) > 20
    assert {time.utcoffset() for time in found} == {timedelta(0)}
    named = {field.name for field in fields(job) if field.name.endswith(("_at", "_until"))}
    assert all(any(getattr(row, name) for row in seen[:2]) for name in named), "one of each kind was looked at"


async def test_times_are_stored_to_the_microsecond(store: Store, clock: ManualClock) -> None:
    clock.advance(0.123456)

    job = await queued(store, lease=None)

    assert job.created_at == datetime(2030, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    assert job.due_at == job.created_at


async def test_every_step_of_a_job_has_a_time(store: Store, clock: ManualClock) -> None:
    start = clock.now()
    job = await queued(store)
    clock.advance(1)
    assert await store.begin_submit(job.id, job.lease_token, "hash", None)
    clock.advance(1)
    assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)
    clock.advance(1)
    await end(store, job, State.EXPIRED)

    now = await see(store, job)

    steps = [now.created_at, now.submitted_at, now.ended_at, now.read_at]
    assert [step and (step - start).total_seconds() for step in steps] == [0, 1, 3, 3]
    assert (await delivered(store)).delivered_at == clock.now()
    assert (await ended(store)).delivered_at is None
    assert (await running(store)).ended_at is None
