import asyncio

import pytest

from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Delivery, State, hash_secret
from genlock.ports import Reschedule, Role, Store
from genlock.stores.callbacks import CALLBACK_HOLD_SECONDS
from tests.stores.builders import (
    ME,
    SECRET,
    ManualClock,
    claimed,
    delivered,
    ended,
    running,
    see,
    submitting,
    unchanged,
)

HASH = hash_secret(SECRET)
HOUR = 3600.0


async def untrusted(store: Store, task_id: str, provider: str = "kie") -> tuple[int, int | None]:
    """Store an unauthenticated callback. Returns its id and the job it was matched with."""
    callback = await store.store_callback(provider, None, "", b"{}")
    return callback.id, await store.note_untrusted_callback(callback.id, provider, task_id)


async def orphan(store: Store, task_id: str) -> int:
    """Store an orphan, as if its job had not been known when it came."""
    callback = await store.store_callback("kie", None, "", b"{}")
    await store.settle_callback(callback.id, InboxState.ORPHAN, task_id)
    return callback.id


async def found(store: Store, state: InboxState) -> list[int]:
    return [callback.id for callback in await store.callbacks(state, 100)]


# storing


async def test_a_callback_is_stored_unchanged(store: Store, clock: ManualClock) -> None:
    job = await submitting(store)
    body = bytes(range(256))

    callback = await store.store_callback("kie", job.id, HASH, body)

    assert callback == Callback(
        id=callback.id,
        provider="kie",
        job_id=job.id,
        task_id=None,
        body=body,
        state=InboxState.NEW,
        note="",
        received_at=clock.now(),
        correlation_id=job.correlation_id,
        attempt=1,
    )
    assert await store.callbacks(InboxState.NEW, 10) == [callback]


async def test_a_callback_that_outruns_the_answer_of_the_create_call_finds_its_job(store: Store) -> None:
    job = await submitting(store)
    assert job.task_id is None

    assert (await store.store_callback("kie", job.id, HASH, b"{}")).job_id == job.id


async def test_a_callback_without_the_secret_belongs_to_no_job(store: Store) -> None:
    job, other = await submitting(store), await submitting(store)
    assert await store.begin_submit(other.id, other.lease_token, hash_secret("another"), None)
    unauthenticated = [
        await store.store_callback("kie", job.id, hash_secret("wrong"), b"{}"),
        await store.store_callback("kie", job.id, "", b"{}"),
        await store.store_callback("kie", other.id, HASH, b"{}"),
        await store.store_callback("other", job.id, HASH, b"{}"),
        await store.store_callback("kie", 10**9, HASH, b"{}"),
        await store.store_callback("kie", None, HASH, b"{}"),
    ]

    assert [callback.job_id for callback in unauthenticated] == [None] * len(unauthenticated)
    assert {callback.correlation_id for callback in unauthenticated} == {""}
    assert len(await store.callbacks(InboxState.NEW, 10)) == len(unauthenticated), "all are stored"


async def test_callbacks_merged_into_one_batch_keep_their_own_bodies_and_jobs(store: Store) -> None:
    jobs = [await submitting(store) for _ in range(10)]
    bodies = [b"body %d" % number for number in range(40)]
    places = [jobs[number // 4].id if number % 2 else None for number in range(40)]

    calls = (store.store_callback("kie", job_id, HASH, body) for job_id, body in zip(places, bodies, strict=True))
    callbacks = await asyncio.gather(*calls)

    assert [(callback.job_id, callback.body) for callback in callbacks] == list(zip(places, bodies, strict=True))
    stored = {callback.id: callback for callback in await store.callbacks(InboxState.NEW, 100)}
    assert stored == {callback.id: callback for callback in callbacks}


async def test_the_newest_callbacks_come_first(store: Store) -> None:
    ids = [(await store.store_callback("kie", None, "", b"{}")).id for _ in range(3)]

    assert [callback.id for callback in await store.callbacks(InboxState.NEW, 2)] == ids[:0:-1]


# claiming and settling


async def test_a_callback_that_is_not_settled_in_time_is_claimed_again(store: Store, clock: ManualClock) -> None:
    job = await submitting(store)
    callback = await store.store_callback("kie", job.id, HASH, b"{}")

    clock.advance(CALLBACK_HOLD_SECONDS - 0.001)
    assert await store.claim_callbacks(10, 7.0) == []
    clock.advance(0.001)
    assert await store.claim_callbacks(10, 7.0) == [callback]
    assert await store.claim_callbacks(10, 7.0) == []
    clock.advance(7)
    assert await store.claim_callbacks(10, 7.0) == [callback]


async def test_the_oldest_callbacks_are_claimed_first_up_to_the_limit(store: Store, clock: ManualClock) -> None:
    ids = []
    for _ in range(4):
        ids.append((await store.store_callback("kie", None, "", b"{}")).id)
        clock.advance(1)
    clock.advance(10)

    assert {callback.id for callback in await store.claim_callbacks(3, 5.0)} == set(ids[:3])
    assert {callback.id for callback in await store.claim_callbacks(3, 5.0)} == set(ids[3:])


async def test_concurrent_claims_share_the_callbacks(store: Store, clock: ManualClock) -> None:
    ids = [(await store.store_callback("kie", None, "", b"{}")).id for _ in range(30)]
    clock.advance(10)

    claims = await asyncio.gather(*(store.claim_callbacks(5, 5.0) for _ in range(8)))

    assert sorted(callback.id for claim in claims for callback in claim) == ids


async def test_a_settled_callback_is_not_due(store: Store, clock: ManualClock) -> None:
    callback = await store.store_callback("kie", None, "", b"rubbish")

    await store.settle_callback(callback.id, InboxState.UNREADABLE, note="no JSON")

    clock.advance(100)
    assert await store.claim_callbacks(10, 5.0) == []
    [settled] = await store.callbacks(InboxState.UNREADABLE, 10)
    assert (settled.id, settled.body, settled.task_id, settled.note) == (callback.id, b"rubbish", None, "no JSON")


async def test_a_callback_is_settled_once_with_the_task_id_read_from_it(store: Store) -> None:
    callback = await store.store_callback("kie", None, "", b"{}")
    await store.settle_callback(callback.id, InboxState.DONE, "task", "running")

    await store.settle_callback(callback.id, InboxState.DONE)

    [settled] = await store.callbacks(InboxState.DONE, 10)
    assert (settled.task_id, settled.note) == ("task", "running")


# untrusted callbacks


async def test_an_untrusted_callback_makes_its_running_job_due(store: Store, clock: ManualClock) -> None:
    job = await running(store, "task", poll_after=60.0)
    clock.advance(1)

    callback_id, job_id = await untrusted(store, "task")

    assert job_id == job.id
    assert (await see(store, job)).due_at == clock.now()
    [matched] = await store.callbacks(InboxState.MATCHED, 10)
    assert (matched.id, matched.job_id, matched.task_id) == (callback_id, job.id, "task")
    assert (await claimed(store, job)).state is State.RUNNING


async def test_an_untrusted_callback_has_no_other_effect(store: Store, clock: ManualClock) -> None:
    """A forged callback can cause a status query and nothing else."""
    polled = await claimed(store, await running(store, poll_after=0.0))
    finished = await delivered(store)
    assert await store.begin_notice(finished.id, finished.lease_token)
    later = await ended(store)
    assert await store.reschedule(
        Reschedule(job_id=later.id, token=later.lease_token, after=60.0, delivery=Delivery.PENDING)
    )
    jobs = [polled, await ended(store), await delivered(store), await see(store, finished), await see(store, later)]
    clock.advance(1)

    for job in jobs:
        _, job_id = await untrusted(store, f"task-{job.id}")
        assert job_id == job.id
        assert await unchanged(store, job)


async def test_unauthenticated_callbacks_that_name_a_known_task_are_counted_and_only_one_is_kept_open(
    store: Store, clock: ManualClock
) -> None:
    job = await running(store, "task", poll_after=60.0)
    first, _ = await untrusted(store, "task")
    for _ in range(4):
        clock.advance(1)
        assert (await untrusted(store, "task"))[1] == job.id
    authenticated = await store.store_callback("kie", job.id, HASH, b"{}")

    assert await store.count_unauthenticated_callbacks(HOUR, 100) == 5
    assert await found(store, InboxState.MATCHED) == [first]
    assert [(callback.body, callback.note) for callback in await store.callbacks(InboxState.DONE, 10)] == [
        (b"", "repeated")
    ] * 4
    assert (await see(store, job)).due_at == clock.now(), "each of them causes a status query"
    assert await found(store, InboxState.NEW) == [authenticated.id], "a callback with the job's secret is kept"

    clock.advance(HOUR)
    assert await store.count_unauthenticated_callbacks(HOUR, 100) == 0
    later, _ = await untrusted(store, "task")
    assert await found(store, InboxState.MATCHED) == [later, first]


async def test_an_unauthenticated_callback_is_pruned_as_such_even_if_its_job_is_known(
    store: Store, clock: ManualClock
) -> None:
    role = await store.take_role("active", "me", 10**6)
    await running(store, "task")
    await untrusted(store, "task")
    await untrusted(store, "task")
    clock.advance(HOUR)

    assert await store.prune("unauthenticated_callbacks", HOUR - 1, 10, role) == 2


@pytest.mark.parametrize(("task_id", "provider"), [("other", "kie"), ("task", "other")])
async def test_an_untrusted_callback_of_an_unknown_task_becomes_an_orphan(
    store: Store, task_id: str, provider: str
) -> None:
    job = await running(store, "task")

    callback_id, job_id = await untrusted(store, task_id, provider)

    assert job_id is None
    assert await found(store, InboxState.ORPHAN) == [callback_id]
    assert await unchanged(store, job)
    assert (await store.counts())["orphans"] == 1


async def test_an_untrusted_callback_that_two_instances_handle_keeps_the_state_of_the_first(store: Store) -> None:
    orphan = await store.store_callback("kie", None, "", b"first")
    repeated = await store.store_callback("kie", None, "", b"second")
    for _ in range(2):
        for callback in (orphan, repeated):
            assert await store.note_untrusted_callback(callback.id, "kie", "task") is None
    await store.settle_callback(repeated.id, InboxState.UNREADABLE, note="an instance that fell behind")

    assert [(callback.id, callback.body) for callback in await store.callbacks(InboxState.ORPHAN, 10)] == [
        (orphan.id, b"first")
    ]
    assert [(callback.id, callback.note) for callback in await store.callbacks(InboxState.DONE, 10)] == [
        (repeated.id, "repeated")
    ]
    assert await found(store, InboxState.UNREADABLE) == []


# orphans


async def test_orphans_are_matched_when_their_job_is_known(store: Store, clock: ManualClock) -> None:
    """The task id came from a callback, not from the create call, so only the sweeper can match the orphan."""
    job = await ended(store, task_id="task", lease=None)
    first, second = await orphan(store, "task"), await orphan(store, "task")
    other, _ = await untrusted(store, "other")
    foreign, _ = await untrusted(store, "task", "other")
    clock.advance(1)

    assert sorted(await store.match_orphans(10)) == [(first, job.id), (second, job.id)]

    assert sorted(await found(store, InboxState.MATCHED)) == [first, second]
    assert sorted(await found(store, InboxState.ORPHAN)) == [other, foreign]
    assert await unchanged(store, job), "an ended job needs no query"
    assert await store.match_orphans(10) == []


async def test_a_matched_orphan_makes_its_running_job_due(store: Store, clock: ManualClock) -> None:
    free = await running(store, "free", poll_after=60.0)
    polled = await claimed(store, await running(store, "polled", poll_after=0.0))
    for task_id in ("free", "polled"):
        await orphan(store, task_id)
    clock.advance(1)

    assert len(await store.match_orphans(10)) == 2

    assert (await see(store, free)).due_at == clock.now()
    assert await unchanged(store, polled), "the poll is in progress"


async def test_orphans_are_matched_a_page_at_a_time(store: Store) -> None:
    orphans = []
    for number in range(5):
        await running(store, f"task-{number}")
        orphans.append(await orphan(store, f"task-{number}"))

    pages = [await store.match_orphans(2) for _ in range(4)]

    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert sorted(callback_id for page in pages for callback_id, _ in page) == orphans


async def test_unmatched_orphans_expire_and_are_stored(store: Store, clock: ManualClock) -> None:
    role = await store.take_role("active", "me", 10**6)
    old, _ = await untrusted(store, "old")
    clock.advance(HOUR)
    young, _ = await untrusted(store, "young")
    assert await store.expire_orphans(HOUR, role) == []
    clock.advance(0.001)

    assert await store.expire_orphans(HOUR, role) == [old]

    assert await found(store, InboxState.EXPIRED) == [old]
    assert await found(store, InboxState.ORPHAN) == [young]
    assert await store.expire_orphans(HOUR, role) == []


async def test_only_the_active_instance_in_its_epoch_expires_orphans(store: Store, clock: ManualClock) -> None:
    before = await store.take_role("active", "me", 3.0)
    orphan, _ = await untrusted(store, "old")
    clock.advance(HOUR + 1)
    now = await store.take_role("active", "other", 3.0)
    assert now.epoch > before.epoch

    for pretender in (
        before,
        Role(holder="me", epoch=now.epoch),
        Role(holder="other", epoch=now.epoch + 1),
        Role(holder="other", epoch=before.epoch),
    ):
        assert await store.expire_orphans(HOUR, pretender) == []
    assert await found(store, InboxState.ORPHAN) == [orphan]

    assert await store.expire_orphans(HOUR, now) == [orphan]


async def test_another_role_expires_no_orphans(store: Store, clock: ManualClock) -> None:
    role = await store.take_role("cook", "me", 10**6)
    await untrusted(store, "old")
    clock.advance(HOUR + 1)

    assert await store.expire_orphans(HOUR, role) == []


async def test_only_orphans_expire(store: Store, clock: ManualClock) -> None:
    role = await store.take_role("active", "me", 10**6)
    await running(store, "task")
    await untrusted(store, "task")
    new = await store.store_callback("kie", None, "", b"{}")
    clock.advance(HOUR + 1)

    assert await store.expire_orphans(HOUR, role) == []
    assert await found(store, InboxState.NEW) == [new.id]
    assert [job.lease_owner for job in await store.claim_jobs(10, ME)] == [ME.owner]


async def test_a_callback_that_cannot_be_applied_expires_after_a_while(store: Store, clock: ManualClock) -> None:
    callback = await store.store_callback("other", None, "", b"{}")
    clock.advance(3600)
    assert not await store.expire_callback(callback.id, 3600.0, "unknown task")

    clock.advance(1)
    assert await store.expire_callback(callback.id, 3600.0, "unknown task")

    assert await store.claim_callbacks(10, 5.0) == []
    [expired] = await store.callbacks(InboxState.EXPIRED, 10)
    assert (expired.id, expired.note) == (callback.id, "unknown task")


async def test_a_settled_callback_does_not_expire(store: Store, clock: ManualClock) -> None:
    callback = await store.store_callback("kie", None, "", b"{}")
    await store.settle_callback(callback.id, InboxState.DONE)
    clock.advance(10_000)

    assert not await store.expire_callback(callback.id, 3600.0, "unknown task")
