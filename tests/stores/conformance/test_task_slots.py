"""Slots: a provider works on no more tasks at once than it may, whatever happens to the instances."""

from genlock.domain.attempt import AttemptOutcome
from genlock.domain.job import Job, State, hash_secret
from genlock.ports import FailedAttempt, Reschedule, Store
from tests.stores.builders import SECRET, claimed, end, queued, see

HASH = hash_secret(SECRET)


async def begin(
    store: Store,
    job: Job,
    *,
    most: int = 2,
    provider: str = "kie",
    placeholder: str | None = None,
    sent_input: str | None = None,
) -> bool | None:
    row = (job.id, job.lease_token, HASH, placeholder)
    return await store.begin_limited_submit(
        *row, provider=provider, offer="its/model", most=most, sent_input=sent_input
    )


async def test_no_more_tasks_begin_than_there_are_slots_and_an_ended_one_makes_room(store: Store) -> None:
    jobs = [await queued(store) for _ in range(4)]
    assert [await begin(store, job) for job in jobs] == [True, True, None, None]
    assert await store.slots_used("kie") == 2
    assert await store.mark_submitted(jobs[0].id, jobs[0].lease_token, "task", 5.0)
    assert await begin(store, jobs[2]) is None, "a running task keeps its slot"
    await end(store, jobs[0], State.SUCCEEDED)
    assert [await begin(store, job) for job in jobs[2:]] == [True, None]
    assert await store.slots_used("kie") == 2


async def test_a_begun_submit_is_recorded_as_without_a_limit(store: Store) -> None:
    job = await queued(store)
    assert await begin(store, job, provider="other", placeholder="message", sent_input='{"a": 1}') is True
    [attempt] = await store.attempts(job.id)
    assert attempt.sent_input == '{"a": 1}'
    assert (attempt.number, attempt.provider, attempt.offer, attempt.outcome) == (1, "other", "its/model", None)
    row = await see(store, job)
    assert (row.state, row.provider, row.placeholder, row.attempt) == (State.SUBMITTING, "other", "message", 1)


async def test_the_same_statement_again_takes_no_second_slot(store: Store) -> None:
    first, second, third = [await queued(store) for _ in range(3)]
    assert [await begin(store, first) for _ in range(3)] == [True, True, True]
    assert [await begin(store, second), await begin(store, third)] == [True, None]
    assert [attempt.number for attempt in await store.attempts(first.id)] == [1]


async def test_without_a_slot_nothing_is_recorded_but_the_message_that_was_sent(store: Store) -> None:
    job, other = await queued(store, placeholder=None), await queued(store)
    assert await begin(store, other, most=1)
    assert await begin(store, job, most=1, placeholder="message") is None
    row = await see(store, job)
    assert (row.state, row.placeholder, row.attempt) == (State.QUEUED, "message", 0)
    assert await store.attempts(job.id) == []


async def test_a_lost_lease_takes_no_slot(store: Store) -> None:
    job = await queued(store)
    stale = await queued(store)
    assert (
        await store.begin_limited_submit(
            stale.id, stale.lease_token - 1, HASH, "message", provider="kie", offer="m", most=1
        )
        is False
    )
    assert (await see(store, stale)).placeholder != "message"
    assert await begin(store, job, most=1) is True


async def test_a_task_that_the_provider_did_not_accept_gives_its_slot_back(store: Store) -> None:
    job, other = await queued(store), await queued(store)
    assert await begin(store, job, most=1)
    wait = Reschedule(job_id=job.id, token=job.lease_token, after=0.0, state=State.QUEUED, failed=None)
    assert await store.reschedule(wait)
    assert await begin(store, other, most=1) is True
    again = await claimed(store, job)
    assert await begin(store, again, most=1) is None


async def test_a_task_that_goes_to_another_provider_gives_its_slot_back(store: Store) -> None:
    job, other = await queued(store), await queued(store)
    assert await begin(store, job, most=1)
    assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)
    outcome = AttemptOutcome.FAILED
    failed = FailedAttempt(
        job_id=job.id, attempt=1, outcome=outcome, error_code="provider_failed", task_id="task", cost=0
    )
    assert await store.fail_over(failed)
    again = await claimed(store, job)
    assert await begin(store, again, most=1, provider="other") is True
    assert await begin(store, other, most=1) is True
    assert (await store.slots_used("kie"), await store.slots_used("other")) == (1, 1)


async def test_a_crashed_submit_keeps_its_slot_until_it_is_settled(store: Store) -> None:
    job, other = await queued(store), await queued(store)
    assert await begin(store, job, most=1)
    assert await begin(store, other, most=1) is None, "the provider may be working on it"
    await end(store, job, State.EXPIRED)
    assert await begin(store, other, most=1) is True


async def test_slots_are_counted_for_each_provider_and_a_higher_limit_adds_some(store: Store) -> None:
    jobs = [await queued(store) for _ in range(5)]
    assert await begin(store, jobs[0], most=1)
    assert await begin(store, jobs[1], most=1, provider="other") is True
    assert await begin(store, jobs[2], most=1) is None
    assert [await begin(store, job, most=3) for job in jobs[2:]] == [True, True, None]
