"""Accounts, orders and jobs in every state, made through the Store port alone."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from genlock.domain.api_key import ALL_SCOPES, NewApiKey
from genlock.domain.delivery import MESSAGE_ONLY, Part, Step
from genlock.domain.job import Delivery, Job, NewJob, State, Verdict, hash_secret
from genlock.domain.money import EntryKind
from genlock.domain.profile import Profile
from genlock.domain.result import PartKind
from genlock.domain.update import NewUpdate
from genlock.ports import Database, EndJob, FinishDelivery, JobEnd, Lease, Store
from tests.changes import PATIENCE_SECONDS

ME = Lease(owner="me", seconds=30.0)
OTHER = Lease(owner="other", seconds=30.0)
PRICE = 100
#: the id of a chat that has a draft
CHAT = 77
SECRET = "the secret of the callback address"
RESULT = (Part(kind=PartKind.FILE, value="https://files.example/1.png"),)
SHOWN = (replace(RESULT[0], step=Step.DONE, message="message-1", file="file-1"),)

_numbers = count(1)


class ManualClock:
    """A clock that moves only when the test advances it."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def after(self, seconds: float) -> datetime:
        return self._now + timedelta(seconds=seconds)


async def until(condition: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for another task, thread or process."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - they set no event of ours
            await asyncio.sleep(0)


def order(account_id: int, **changes: Any) -> NewJob:
    number = next(_numbers)
    plain = NewJob(
        account_id=account_id,
        request_key=f"key-{number}",
        provider="kie",
        channel="chat",
        bot="bot",
        address=f"address-{number}",
        model="model",
        input='{"prompt":"a cat"}',
        price=PRICE,
        deadline_seconds=600.0,
        placeholder="placeholder",
        correlation_id=f"correlation-{number}",
    )
    return replace(plain, **changes)


async def account_with(store: Store, available: int = 1000) -> int:
    number = next(_numbers)
    account_id = await store.ensure_account("chat", "bot", f"external_id-{number}")
    if available:
        assert await store.transfer(account_id, EntryKind.TOPUP, available, f"topup:{number}")
    return account_id


async def ensure_profile(
    store: Database, account_id: int, *, language: str, name: str, username: str, referred_by: int | None = None
) -> Profile:
    """The profile of a user who has just written, in no chat that has a draft."""
    profile, _ = await store.ensure_profile_and_draft(
        account_id, chat=None, language=language, name=name, username=username, referred_by=referred_by
    )
    return profile


async def profiled(store: Database, external_id: str, *, name: str = "Ann", referred_by: int | None = None) -> int:
    account = await store.ensure_account("chat", "bot", external_id)
    await ensure_profile(
        store, account, language="ru", name=name, username=name.lower() + external_id, referred_by=referred_by
    )
    return account


async def see(store: Store, job: Job | int) -> Job:
    """The job's row as it is now."""
    found = await store.job(job if isinstance(job, int) else job.id)
    assert found is not None
    return found


async def unchanged(store: Store, before: Job) -> bool:
    """Whether the row has not changed, apart from the time it was read."""
    now = await see(store, before)
    return now == replace(before, read_at=now.read_at)


async def queued(store: Store, lease: Lease | None = ME, **changes: Any) -> Job:
    account_id = changes.pop("account_id", None) or await account_with(store)
    return (await store.accept_job(order(account_id, **changes), lease)).job


async def submitting(store: Store, lease: Lease = ME, **changes: Any) -> Job:
    job = await queued(store, lease, **changes)
    assert await store.begin_submit(job.id, job.lease_token, hash_secret(SECRET), None)
    return await see(store, job)


async def running(store: Store, task_id: str | None = None, *, poll_after: float = 5.0, **changes: Any) -> Job:
    """A job that waits for its provider, without a lease."""
    job = await submitting(store, **changes)
    assert await store.mark_submitted(job.id, job.lease_token, task_id or f"task-{job.id}", poll_after)
    return await see(store, job)


async def end(store: Store, job: Job | int, state: State, lease: Lease | None = ME, **changes: Any) -> JobEnd:
    """One attempt to end a job, without a token."""
    parts = RESULT if state is State.SUCCEEDED else MESSAGE_ONLY
    ending = EndJob(job_id=job if isinstance(job, int) else job.id, state=state, parts=parts)
    return await store.end_job(replace(ending, **changes), lease)


async def ended(store: Store, state: State = State.SUCCEEDED, lease: Lease | None = ME, **changes: Any) -> Job:
    """A job that has just ended, leased for its delivery."""
    attempt = await end(store, await running(store, **changes), state, lease)
    assert attempt.verdict is Verdict.WON
    assert attempt.job is not None
    return attempt.job


async def finish(
    store: Store, job: Job, delivery: Delivery = Delivery.DELIVERED, lease: Lease = ME, **changes: Any
) -> bool:
    """Finish a delivery. Returns whether the lease was valid."""
    attention = None if delivery is Delivery.DELIVERED else "look"
    word = FinishDelivery(
        job_id=job.id, token=job.lease_token, delivery=delivery, parts=SHOWN, attention_reason=attention
    )
    return await store.finish_delivery(replace(word, **changes), lease) is not None


async def delivered(store: Store, state: State = State.SUCCEEDED, **changes: Any) -> Job:
    """A job whose result is in the chat and whose notice is still to be sent."""
    job = await ended(store, state, **changes)
    assert await finish(store, job)
    return await see(store, job)


async def claimed(store: Store, job: Job, lease: Lease = ME) -> Job:
    """Claim all due jobs and return this one."""
    [found] = [taken for taken in await store.claim_jobs(100, lease) if taken.id == job.id]
    return found


def update(number: int, queue: str = "ann", **changes: Any) -> NewUpdate:
    plain = NewUpdate(
        bot="bot",
        update_id=number,
        ordering_key=queue,
        kind="message",
        urgent=False,
        dedup_key=None,
        body=f'{{"update_id":{number}}}',
    )
    return replace(plain, **changes)


def new_key(account_id: int, number: int = 1, **changes: Any) -> NewApiKey:
    plain = NewApiKey(
        account_id=account_id,
        name="shop",
        scopes=ALL_SCOPES,
        shown="glk_abcdef",
        secret_hash=f"hash-{number}",
        spend_limit=None,
        request_key=f"request-{number}",
        author="operator",
    )
    return replace(plain, **changes)
