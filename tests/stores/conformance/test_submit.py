import asyncio

import pytest

from genlock.domain.errors import TaskIdConflict
from genlock.domain.inbox import InboxState
from genlock.domain.job import State, hash_secret
from genlock.ports import Lease, Reschedule, Store
from tests.stores.builders import ME, SECRET, ManualClock, claimed, ended, queued, running, see, submitting, unchanged

HASH = hash_secret(SECRET)


async def orphan(store: Store, task_id: str, provider: str = "kie") -> int:
    callback = await store.store_callback(provider, None, "", b"{}")
    assert await store.note_untrusted_callback(callback.id, provider, task_id) is None
    return callback.id


async def test_the_intent_is_written_before_the_call(store: Store, clock: ManualClock) -> None:
    job = await queued(store, placeholder=None)
    clock.advance(1)

    assert await store.begin_submit(job.id, job.lease_token, HASH, "message")

    now = await see(store, job)
    assert (now.state, now.placeholder, now.submitted_at) == (State.SUBMITTING, "message", clock.now())
    assert (now.lease_owner, now.lease_token, now.due_at) == (job.lease_owner, job.lease_token, job.due_at)


async def test_a_known_placeholder_is_not_replaced_by_none(store: Store) -> None:
    job = await queued(store, placeholder="pressed")

    assert await store.begin_submit(job.id, job.lease_token, HASH, None)

    assert (await see(store, job)).placeholder == "pressed"


async def test_a_new_submit_clears_the_grace_time_of_the_last(store: Store) -> None:
    job = await submitting(store)
    assert await store.reschedule(
        Reschedule(job_id=job.id, token=job.lease_token, after=0.0, state=State.QUEUED, grace=True)
    )
    job = await claimed(store, job)
    assert job.grace_until is not None

    assert await store.begin_submit(job.id, job.lease_token, HASH, None)

    assert (await see(store, job)).grace_until is None


async def test_the_intent_may_be_repeated_by_its_holder(store: Store) -> None:
    job = await submitting(store)

    assert await store.begin_submit(job.id, job.lease_token, HASH, None)


@pytest.mark.parametrize("drift", [-1, 1])
async def test_no_intent_with_a_stale_token_is_written(store: Store, drift: int) -> None:
    job = await queued(store)

    assert not await store.begin_submit(job.id, job.lease_token + drift, HASH, "message")

    assert await unchanged(store, job)


async def test_a_job_that_runs_or_has_ended_is_not_submitted_again(store: Store) -> None:
    for job in (await running(store), await ended(store)):
        assert not await store.begin_submit(job.id, job.lease_token, HASH, "message")
        assert await unchanged(store, job)


async def test_a_submitted_job_waits_for_its_first_poll_without_a_lease(store: Store, clock: ManualClock) -> None:
    job = await submitting(store)
    clock.advance(1)

    assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)

    now = await see(store, job)
    assert (now.state, now.task_id, now.lease_owner) == (State.RUNNING, "task", None)
    assert (now.due_at, now.lease_token) == (clock.after(5.0), job.lease_token)


async def test_a_successful_submit_resets_the_count_of_failures(store: Store, clock: ManualClock) -> None:
    job = await submitting(store)
    await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=0.0, failed=True))
    job = await claimed(store, job)
    assert job.attempts == 1

    assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)

    assert (await see(store, job)).attempts == 0
    assert clock.now() == job.read_at


async def test_the_first_poll_is_not_after_the_deadline(store: Store) -> None:
    job = await running(store, poll_after=900.0, deadline_seconds=600.0)

    assert job.due_at == job.deadline_at


async def test_an_answer_that_was_written_may_be_written_again_by_its_holder(store: Store) -> None:
    job = await running(store, "task")

    assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)


@pytest.mark.parametrize("drift", [-1, 1])
async def test_no_answer_with_a_stale_token_is_written(store: Store, drift: int) -> None:
    job = await submitting(store)

    assert not await store.mark_submitted(job.id, job.lease_token + drift, "task", 5.0)

    assert await unchanged(store, job)


async def test_an_answer_without_an_intent_or_after_the_end_changes_nothing(store: Store) -> None:
    for job in (await queued(store), await ended(store)):
        assert not await store.mark_submitted(job.id, job.lease_token, "task", 5.0)
        assert await unchanged(store, job)


async def test_an_orphan_of_the_task_makes_the_job_due_at_once(store: Store, clock: ManualClock) -> None:
    callback_id = await orphan(store, "task")

    job = await running(store, "task")

    assert job.due_at == clock.now()
    [matched] = await store.callbacks(InboxState.MATCHED, 10)
    assert (matched.id, matched.job_id, matched.correlation_id) == (callback_id, job.id, job.correlation_id)
    assert [job.id for job in await store.claim_jobs(10, ME)] == [job.id]


async def test_an_orphan_of_another_task_or_provider_waits_on(store: Store, clock: ManualClock) -> None:
    others = {await orphan(store, "other task"), await orphan(store, "task", provider="other")}

    job = await running(store, "task", poll_after=5.0)

    assert job.due_at == clock.after(5.0)
    assert {callback.id for callback in await store.callbacks(InboxState.ORPHAN, 10)} == others


async def test_an_answer_with_a_stale_token_matches_no_orphan(store: Store) -> None:
    callback_id = await orphan(store, "task")
    job = await submitting(store)

    assert not await store.mark_submitted(job.id, job.lease_token + 1, "task", 5.0)

    assert [callback.id for callback in await store.callbacks(InboxState.ORPHAN, 10)] == [callback_id]


async def test_a_task_id_belongs_to_one_job_and_a_conflict_fails_alone(store: Store) -> None:
    await running(store, "task")
    job, other = await submitting(store), await submitting(store)

    answers = await asyncio.gather(
        store.mark_submitted(job.id, job.lease_token, "task", 5.0),
        store.mark_submitted(other.id, other.lease_token, "another", 5.0),
        return_exceptions=True,
    )

    assert [type(answers[0]), answers[1]] == [TaskIdConflict, True]
    assert not await store.adopt_task(job.id, None, "task")
    assert await unchanged(store, job)


async def test_two_providers_may_give_the_same_task_id(store: Store) -> None:
    assert (await running(store, "task")).task_id == "task"
    assert (await running(store, "task", provider="other")).task_id == "task"


async def test_a_submit_does_not_begin_after_its_lease_was_released(store: Store) -> None:
    job = await queued(store)
    assert job.lease_owner is not None
    await store.release_leases(job.lease_owner)
    assert not await store.begin_submit(job.id, job.lease_token, HASH, None)


async def test_a_task_whose_submitter_lost_the_lease_is_adopted(store: Store) -> None:
    job = await queued(store)
    assert await store.begin_submit(job.id, job.lease_token, HASH, None)
    await store.release_leases(job.lease_owner or "")
    [taken] = await store.claim_jobs(1, Lease(owner="other", seconds=30))
    assert not await store.mark_submitted(job.id, job.lease_token, "task", 5.0)
    assert not await store.adopt_task(job.id, "another secret", "task")
    assert await store.adopt_task(job.id, HASH, "task")
    found = await store.job(job.id)
    assert found is not None
    assert (found.state, found.task_id, found.lease_owner) == (State.RUNNING, "task", None)
    assert found.lease_token > taken.lease_token
    assert not await store.adopt_task(job.id, HASH, "another task")


async def test_a_task_that_a_callback_named_first_gets_its_handle_from_the_answer(store: Store) -> None:
    job = await queued(store)
    assert await store.begin_submit(job.id, job.lease_token, HASH, None)
    assert await store.adopt_task(job.id, None, "task")
    assert not await store.mark_submitted(job.id, job.lease_token, "task", 5.0, "addresses")
    assert not await store.adopt_task(job.id, HASH, "another task", "addresses")
    assert await store.adopt_task(job.id, HASH, "task", "addresses")
    assert not await store.adopt_task(job.id, HASH, "task", "other addresses")
    found = await store.job(job.id)
    assert found is not None
    assert (found.task_id, found.handle) == ("task", "addresses")


async def test_an_adopted_task_is_not_given_to_another_job(store: Store) -> None:
    first, second = await queued(store), await queued(store)
    for job in (first, second):
        assert await store.begin_submit(job.id, job.lease_token, HASH, None)
    assert await store.mark_submitted(first.id, first.lease_token, "task", 5.0)
    assert not await store.adopt_task(second.id, HASH, "task")
