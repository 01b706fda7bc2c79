"""Attempts: recorded before the call, ended once, and unable to touch the job after it has gone on."""

from genlock.domain.anomaly import AnomalyKind
from genlock.domain.attempt import AttemptOutcome
from genlock.domain.inbox import InboxState
from genlock.domain.job import State, Verdict, hash_secret
from genlock.domain.money import HoldState
from genlock.ports import Database, FailedAttempt, NewCallback, Reschedule, Store
from tests.stores.builders import ME, SECRET, ManualClock, claimed, end, queued, running, see, submitting

HASH, OTHER = hash_secret(SECRET), hash_secret("the secret of the second attempt")


def failed(job_id: int, attempt: int | None = 1, **more: object) -> FailedAttempt:
    return FailedAttempt(
        job_id=job_id,
        attempt=attempt,
        outcome=AttemptOutcome.FAILED,
        error_code="provider_failed",
        **{"task_id": "task", "cost": 0} | more,  # type: ignore[arg-type]
    )


async def second_attempt(store: Store) -> int:
    """Return a job whose first attempt has failed and whose second one is submitted."""
    job = await running(store, "task")
    assert await store.fail_over(failed(job.id))
    again = await claimed(store, job)
    assert again.id == job.id
    assert await store.begin_submit(job.id, again.lease_token, OTHER, None, "other", "other/model")
    return job.id


async def test_an_attempt_is_recorded_in_the_commit_that_begins_the_submit(store: Store, clock: ManualClock) -> None:
    job = await queued(store)

    assert await store.begin_submit(job.id, job.lease_token, HASH, None, "other", "other/model")
    assert await store.begin_submit(job.id, job.lease_token, HASH, None, "other", "other/model"), "a retried statement"

    [attempt] = await store.attempts(job.id)
    assert (attempt.number, attempt.provider, attempt.offer) == (1, "other", "other/model")
    assert (attempt.outcome, attempt.started_at, attempt.ended_at) == (None, clock.now(), None)
    row = await see(store, job)
    assert (row.attempt, row.provider) == (1, "other")
    assert not await store.begin_submit(job.id, job.lease_token + 1, OTHER, None, "third", "third/model")
    assert [recorded.provider for recorded in await store.attempts(job.id)] == ["other"]


async def test_a_busy_provider_is_asked_again_under_the_same_number(store: Store, clock: ManualClock) -> None:
    job = await submitting(store)
    for _ in range(3):
        wait = Reschedule(job_id=job.id, token=job.lease_token, after=0.0, state=State.QUEUED, failed=None)
        assert await store.reschedule(wait)
        assert await store.reschedule(wait), "a retried statement"
        [attempt] = await store.attempts(job.id)
        assert (attempt.outcome, attempt.ended_at) == (AttemptOutcome.BUSY, clock.now())
        clock.advance(1)
        job = await claimed(store, job)
        assert await store.begin_submit(job.id, job.lease_token, OTHER, None)
    [attempt] = await store.attempts(job.id)
    assert (attempt.number, attempt.outcome) == (1, None)
    assert (clock.now() - attempt.started_at).total_seconds() == 3, "busy since the first time"


async def test_an_attempt_records_what_the_last_call_sends(store: Store) -> None:
    """A call that was provably not accepted is repeated under the same number, with what is right then."""
    job = await queued(store)
    assert await store.begin_submit(job.id, job.lease_token, HASH, None, "other", "other/model", '{"url": "first"}')
    wait = Reschedule(job_id=job.id, token=job.lease_token, after=0.0, state=State.QUEUED, failed=None)
    assert await store.reschedule(wait)
    job = await claimed(store, job)
    assert await store.begin_submit(job.id, job.lease_token, OTHER, None, "other", "other/model", '{"url": "\\u0000"}')
    assert not await store.begin_submit(job.id, job.lease_token - 1, HASH, None, "other", "other/model", "{}")

    assert [(attempt.number, attempt.sent_input) for attempt in await store.attempts(job.id)] == [
        (1, '{"url": "\\u0000"}')
    ]
    assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)
    assert await store.fail_over(failed(job.id))
    job = await claimed(store, job)
    assert await store.begin_submit(job.id, job.lease_token, HASH, None)
    assert [attempt.sent_input for attempt in await store.attempts(job.id)] == ['{"url": "\\u0000"}', None]


async def test_the_end_of_a_job_ends_its_attempt_with_its_cost(store: Store, clock: ManualClock) -> None:
    job = await running(store, "task")
    await end(store, job, State.SUCCEEDED, task_id="task", cost=30, attempt=1)

    [attempt] = await store.attempts(job.id)
    assert (attempt.outcome, attempt.cost, attempt.ended_at) == (AttemptOutcome.SUCCEEDED, 30, clock.now())
    assert attempt.task_id == "task"


async def test_the_costs_of_attempts_are_those_that_the_row_of_the_job_does_not_contain(store: Database) -> None:
    job_id = await second_attempt(store)
    await end(store, job_id, State.SUCCEEDED, task_id="second", cost=10, attempt=2)
    assert await store.attempt_costs([job_id]) == []

    await end(store, job_id, State.SUCCEEDED, task_id="task", cost=30, attempt=1)

    assert [(cost.job_id, cost.cost) for cost in await store.attempt_costs([job_id, 404])] == [(job_id, 30)]


async def test_a_job_whose_attempt_failed_is_queued_for_another_provider(store: Store, clock: ManualClock) -> None:
    job = await running(store, "task")
    callback = await store.store_callback("kie", job.id, HASH, b"{}")

    assert await store.fail_over(failed(job.id, callback_id=callback.id))
    assert not await store.fail_over(failed(job.id)), "only once"

    row = await see(store, job)
    assert (row.state, row.task_id, row.handle, row.due_at) == (State.QUEUED, None, "", clock.now())
    assert row.hold_state is HoldState.HELD
    assert row.lease_token > job.lease_token
    [attempt] = await store.attempts(job.id)
    assert (attempt.outcome, attempt.task_id, attempt.cost) == (AttemptOutcome.FAILED, "task", 0)
    [settled] = await store.callbacks(InboxState.DONE, 10)
    assert settled.note == "failed over"


async def test_only_the_current_attempt_and_its_own_task_can_fail_over(store: Store) -> None:
    job, other = await running(store, "task"), await running(store, "another task")

    assert not await store.fail_over(failed(job.id, 2))
    assert not await store.fail_over(failed(job.id, task_id="another task"))
    assert not await store.fail_over(failed(job.id, None, token=job.lease_token - 1))
    lost = await submitting(store)
    assert not await store.fail_over(failed(lost.id, task_id="another task")), "it belongs to another job"
    assert (await see(store, other)).task_id == "another task"
    done = await running(store, "third task")
    await end(store, done, State.SUCCEEDED)
    assert not await store.fail_over(failed(done.id, task_id="third task"))


async def test_a_report_about_an_abandoned_attempt_neither_ends_the_job_nor_is_lost(store: Database) -> None:
    for state, cost, kinds in (
        (State.SUCCEEDED, 40, {AnomalyKind.LOSS}),
        (State.SUCCEEDED, None, {AnomalyKind.CONTRADICTION}),
        (State.FAILED, 0, set()),
    ):
        job_id = await second_attempt(store)
        callback = await store.store_callback("kie", job_id, HASH, b"{}")
        assert (callback.job_id, callback.attempt) == (job_id, 1), "recognised by the secret of the first attempt"
        before = await see(store, job_id)

        late = await end(store, job_id, state, task_id="task", cost=cost, attempt=1, callback_id=callback.id)

        assert late.verdict is Verdict.ABANDONED
        row = await see(store, job_id)
        assert (row.state, row.cost, row.lease_token) == (State.SUBMITTING, None, before.lease_token)
        first, second = await store.attempts(job_id)
        assert (first.outcome, first.late_report, first.cost) == (AttemptOutcome.FAILED, state, cost or 0)
        assert (second.outcome, second.late_report) == (None, None)
        assert {anomaly.kind for anomaly in await store.job_anomalies(job_id)} == kinds
        assert await store.mark_submitted(job_id, row.lease_token, f"second {job_id}", 5.0)
        done = await end(store, job_id, State.SUCCEEDED, task_id=f"second {job_id}", cost=10, attempt=2)
        assert done.verdict is Verdict.WON
        assert (await see(store, job_id)).cost == 10, "the user pays once, and the first cost is not the job's"
        await store.claim_jobs(10, ME)


async def test_a_repeated_failure_does_not_end_the_job_that_waits_for_its_next_attempt(store: Store) -> None:
    job = await running(store, "task")
    assert await store.fail_over(failed(job.id))

    repeated = await end(store, job, State.FAILED, task_id="task", attempt=1)
    arrival = NewCallback(provider="kie", secret_hash=HASH, body="{}")
    arrived = await end(store, job, State.SUCCEEDED, task_id="task", arrival=arrival)

    assert (repeated.verdict, arrived.verdict) == (Verdict.ABANDONED, Verdict.MISSING)
    assert (await see(store, job)).state is State.QUEUED


async def test_the_task_of_an_abandoned_attempt_is_recorded_with_it_and_not_with_the_next(store: Store) -> None:
    job = await submitting(store)
    assert await store.fail_over(failed(job.id, None, token=job.lease_token, task_id=None))
    again = await claimed(store, job)
    assert await store.begin_submit(job.id, again.lease_token, OTHER, None, "other", "other/model")

    assert not await store.adopt_task(job.id, HASH, "late task", "addresses")
    assert not await store.adopt_task(job.id, None, "late task", attempt=1), "a callback of the first attempt"

    first, second = await store.attempts(job.id)
    assert (first.task_id, first.handle, second.task_id) == ("late task", "addresses", None)
    assert (await see(store, job)).task_id is None
    assert await store.known_tasks("kie", ["late task", "unknown"]) == {"late task"}


async def test_an_operators_retry_of_a_parked_submit_is_another_attempt(store: Store) -> None:
    job = await submitting(store)
    assert await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=None))
    assert await store.retry_job(job.id, resubmit=job.lease_token)
    again = await claimed(store, job)
    assert await store.begin_submit(job.id, again.lease_token, OTHER, None)

    first, second = await store.attempts(job.id)
    assert (first.outcome, second.number, second.outcome) == (AttemptOutcome.UNKNOWN, 2, None)
    assert (await end(store, job, State.SUCCEEDED, task_id="first", attempt=1)).verdict is Verdict.ABANDONED
