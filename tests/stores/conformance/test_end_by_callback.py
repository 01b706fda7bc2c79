"""A callback ends the job whose task and secret it names, in the commit that settles the callback."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Job, State, Verdict, hash_secret
from genlock.ports import JobEnd, NewCallback, Store
from tests.stores.builders import (
    OTHER,
    SECRET,
    ManualClock,
    delivered,
    end,
    ended,
    queued,
    running,
    see,
    submitting,
    unchanged,
)


async def with_a_task(store: Store) -> Job:
    return await running(store, "own")


async def expired_with_a_task(store: Store) -> Job:
    return await ended(store, State.EXPIRED, lease=None, task_id="own")


async def cancelled_with_a_task(store: Store) -> Job:
    return await ended(store, State.CANCELLED, task_id="own")


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED])
@pytest.mark.parametrize("known", [True, False], ids=["a task of another job", "an unknown task"])
@pytest.mark.parametrize("stage", [with_a_task, ended, delivered, expired_with_a_task, cancelled_with_a_task])
async def test_a_callback_that_names_another_task_than_the_jobs_own_ends_neither_job(
    store: Store, clock: ManualClock, stage: Callable[[Store], Awaitable[Job]], state: State, *, known: bool
) -> None:
    other = await running(store, "other") if known else None
    job = await stage(store)
    arrival = NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body="{}")

    attempt = await end(store, job, state, OTHER, task_id="other", cost=9, arrival=arrival)

    assert (attempt.verdict, attempt.job) == (Verdict.WRONG_TASK, None)
    assert await unchanged(store, job)
    assert other is None or await unchanged(store, other)
    callbacks = await store.callbacks(InboxState.DONE, 10)
    assert [(callback.note, callback.task_id) for callback in callbacks] == [("wrong_task", "other")]
    clock.advance(60)
    assert await store.claim_callbacks(10, 0.0) == []


@pytest.mark.parametrize("stage", [submitting, queued])
async def test_a_job_whose_task_is_not_known_yet_is_not_ended_with_the_task_of_another(
    store: Store, stage: Callable[[Store], Awaitable[Job]]
) -> None:
    other, job = await running(store, "other"), await stage(store)

    assert (await end(store, job, State.SUCCEEDED, task_id="other")).verdict is Verdict.WRONG_TASK

    assert await unchanged(store, job)
    assert await unchanged(store, other)


async def test_a_job_whose_task_is_not_known_yet_is_ended_with_the_task_that_its_callback_names(store: Store) -> None:
    job = await submitting(store)

    assert (await end(store, job, State.SUCCEEDED, task_id="own")).verdict is Verdict.WON

    assert (await see(store, job)).task_id == "own"
    assert (await end(store, job, State.FAILED, task_id="other")).verdict is Verdict.WRONG_TASK


async def test_one_of_two_concurrent_callbacks_of_the_same_task_ends_its_job(store: Store) -> None:
    jobs = [await submitting(store) for _ in range(2)]

    attempts = await asyncio.gather(*(end(store, job, State.SUCCEEDED, task_id="task") for job in jobs))

    assert sorted(attempt.verdict for attempt in attempts) == [Verdict.WON, Verdict.WRONG_TASK]
    assert sorted([(await see(store, job)).task_id or "" for job in jobs]) == ["", "task"]


@pytest.mark.parametrize(
    ("state", "token", "note"),
    [(State.SUCCEEDED, None, "duplicate"), (State.FAILED, None, "contradiction"), (State.FAILED, 0, "stale")],
)
async def test_the_callback_is_settled_in_the_same_commit(
    store: Store, state: State, token: int | None, note: str
) -> None:
    job = await running(store, "task")
    first, second = [await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}") for _ in range(2)]

    await end(store, job, State.SUCCEEDED, task_id="task", callback_id=first.id)
    assert [callback.id for callback in await store.callbacks(InboxState.NEW, 10)] == [second.id]
    await end(store, job, state, task_id="task", callback_id=second.id, token=token)

    settled = {callback.id: callback for callback in await store.callbacks(InboxState.DONE, 10)}
    assert [settled[first.id].note, settled[second.id].note] == ["won", note]
    assert {callback.task_id for callback in settled.values()} == {"task"}
    assert await store.claim_callbacks(10, 0.0) == []


async def test_the_callback_that_ends_a_job_is_stored_in_the_same_commit(store: Store, clock: ManualClock) -> None:
    job = await running(store, "task")
    arrival = NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body='{"кот": "\\u0000"}')

    first = await end(store, job, State.SUCCEEDED, task_id="task", arrival=arrival)
    again = await end(store, job, State.FAILED, task_id="task", arrival=arrival)

    assert (first.verdict, again.verdict) == (Verdict.WON, Verdict.CONTRADICTION)
    assert await store.callbacks(InboxState.DONE, 10) == [again.callback, first.callback]
    assert first.callback is not None
    assert first.callback == Callback(
        id=first.callback.id,
        provider="kie",
        job_id=job.id,
        task_id="task",
        body=arrival.body.encode(),
        state=InboxState.DONE,
        note="won",
        received_at=clock.now(),
        correlation_id=job.correlation_id,
        attempt=1,
    )
    assert (await store.store_callback("kie", None, "", b"")).id > first.callback.id


@pytest.mark.parametrize("change", [{"secret_hash": hash_secret("wrong")}, {"provider": "other"}])
async def test_an_end_by_a_callback_needs_the_secret_of_the_job(store: Store, change: dict[str, str]) -> None:
    job = await running(store)
    arrival = replace(NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body="{}"), **change)

    assert await end(store, job, State.SUCCEEDED, arrival=arrival) == JobEnd(verdict=Verdict.MISSING)

    assert await unchanged(store, job)
    assert [await store.callbacks(state, 10) for state in InboxState] == [[] for _ in InboxState]
