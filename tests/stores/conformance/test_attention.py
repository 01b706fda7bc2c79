"""What waits for an operator: every list newest first by cursor, every action once."""

from collections.abc import Awaitable, Callable

import pytest

from genlock.domain.anomaly import AnomalyKind
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, Delivery, Job, Notice, State, Verdict, hash_secret
from genlock.domain.update import UpdateState
from genlock.ports import NewCallback, Reschedule
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, SECRET, ManualClock, end, ended, finish, queued, running, see, update

REFUND_SECONDS = 60.0


async def undeliverable(store: SqlDatabase, code: AttentionCode = AttentionCode.UNDELIVERABLE) -> Job:
    job = await ended(store)
    assert await finish(store, job, Delivery.UNDELIVERABLE, attention_code=code, attention_reason="blocked")
    return await see(store, job)


async def counts(store: SqlDatabase, limit: int = 10) -> dict[str, int]:
    """The counts that are not zero."""
    return {name: number for name, number in (await store.attention_counts(limit, REFUND_SECONDS)).items() if number}


async def test_nothing_waits_at_first(store: SqlDatabase) -> None:
    await queued(store)

    found = await store.attention_counts(10, REFUND_SECONDS)

    assert set(found.values()) == {0}
    assert {*AttentionCode, *AnomalyKind, "expired", "unreadable", "dead_update"} <= found.keys()


async def test_jobs_are_listed_by_reason_newest_first_by_cursor_and_counted_up_to_a_limit(store: SqlDatabase) -> None:
    jobs = [await undeliverable(store) for _ in range(3)]
    poison = await undeliverable(store, AttentionCode.POISON)
    first, second, third = (job.id for job in jobs)

    async def ids(code: AttentionCode, limit: int = 10, before: int | None = None) -> list[int]:
        return [job.id for job in await store.jobs_with_attention(code, limit, before)]

    assert await ids(AttentionCode.UNDELIVERABLE) == [third, second, first]
    assert await ids(AttentionCode.UNDELIVERABLE, 1, third) == [second]
    assert await ids(AttentionCode.POISON) == [poison.id]
    assert await ids(AttentionCode.PARKED) == []
    assert await counts(store) == {"undeliverable": 3, "poison": 1}
    assert await counts(store, limit=2) == {"undeliverable": 2, "poison": 1}


async def test_a_notice_that_failed_in_every_attempt_is_given_up_with_the_attention(store: SqlDatabase) -> None:
    job = await ended(store)
    assert await finish(store, job)
    parked = Reschedule(job_id=job.id, token=job.lease_token, after=None, attention_reason="stage error")
    assert await store.reschedule(parked)

    assert await store.clear_attention(job.id, job.lease_token)

    assert (await see(store, job)).notice is Notice.SENT
    assert await store.violations(settled=True) == []


async def test_a_notice_that_waits_for_the_channel_stays_due_when_the_attention_is_cleared(store: SqlDatabase) -> None:
    job = await ended(store)
    assert await finish(store, job, attention_reason="5 of 6 parts shown")
    assert await store.begin_notice(job.id, job.lease_token)
    assert await store.return_notice(job.id, job.lease_token, 30.0, failed=False)

    assert await store.clear_attention(job.id, job.lease_token)

    row = await see(store, job)
    assert (row.notice, row.due_at is None) == (Notice.DUE, False)


async def test_attention_is_cleared_once_and_nothing_else_changes(store: SqlDatabase) -> None:
    job = await undeliverable(store)
    wallet = await store.wallet(job.account_id)

    assert not await store.clear_attention(job.id, job.lease_token - 1)
    assert await store.clear_attention(job.id, job.lease_token)
    assert not await store.clear_attention(job.id, job.lease_token)

    now = await see(store, job)
    assert (now.attention_code, now.attention_reason, now.delivery) == (None, None, Delivery.UNDELIVERABLE)
    assert now.lease_token == job.lease_token + 1  # a form that was made before is told so
    assert await store.wallet(job.account_id) == wallet
    assert not await store.clear_attention(job.id, now.lease_token)


async def test_a_job_that_waits_for_work_or_is_leased_stays_on_the_list(store: SqlDatabase) -> None:
    parked = await queued(store)
    await store.reschedule(
        Reschedule(
            job_id=parked.id,
            token=parked.lease_token,
            after=None,
            attention_reason="look",
            attention_code=AttentionCode.PARKED,
        )
    )
    informed = await ended(store)
    assert await finish(store, informed, Delivery.UNKNOWN)  # its notice is due, and leased

    for job in (parked, informed):
        now = await see(store, job)
        assert now.attention_code is not None
        assert not await store.clear_attention(now.id, now.lease_token)


# callbacks


async def unreadable(store: SqlDatabase, body: bytes = b"<html>") -> int:
    callback = await store.store_callback("kie", None, "", body)
    await store.settle_callback(callback.id, InboxState.UNREADABLE, note="not JSON")
    return callback.id


async def test_unreadable_callbacks_are_listed_by_cursor_with_the_beginning_of_their_bodies(store: SqlDatabase) -> None:
    job = await running(store)
    known = await store.store_callback("kie", job.id, hash_secret(SECRET), b"\xff" * 50)
    await store.settle_callback(known.id, InboxState.UNREADABLE, note="no")
    others = [await unreadable(store) for _ in range(2)]

    found = await store.kept_callbacks(InboxState.UNREADABLE, 10, 3)

    assert [callback.id for callback in found] == [others[1], others[0], known.id]
    assert (found[2].job_id, found[2].correlation_id, found[2].body) == (job.id, job.correlation_id, b"\xff\xff\xff")
    assert [callback.id for callback in await store.kept_callbacks(InboxState.UNREADABLE, 1, 3, others[0])] == [
        known.id
    ]
    assert await store.kept_callbacks(InboxState.EXPIRED, 10, 3) == []
    assert await counts(store) == {"unreadable": 3}


@pytest.mark.parametrize("act", ["retry", "close"])
async def test_a_kept_callback_is_read_again_or_closed_once(store: SqlDatabase, act: str) -> None:
    callback_id = await unreadable(store)
    other = await unreadable(store)
    actions: dict[str, Callable[[int], Awaitable[bool]]] = {
        "retry": store.retry_callback,
        "close": lambda number: store.close_callback(number, "seen by op"),
    }

    assert await actions[act](callback_id)
    assert not await actions[act](callback_id)
    assert not await actions[act](10**9)

    assert [callback.id for callback in await store.kept_callbacks(InboxState.UNREADABLE, 10, 9)] == [other]
    claimed = await store.claim_callbacks(10, 5.0)
    assert [callback.id for callback in claimed] == ([callback_id] if act == "retry" else [])


# updates


async def dead_update(store: SqlDatabase, number: int) -> int:
    await store.store_update(update(number, queue=f"user-{number}"))
    [queue] = await store.claim_update_queues(10, ME, bots=["bot"], urgent=False)
    assert queue.update
    assert await store.settle_update(queue, UpdateState.DEAD, "it failed", ME)
    return queue.update.id


async def test_dead_updates_are_listed_by_cursor_and_discarded_once(store: SqlDatabase) -> None:
    ids = [await dead_update(store, number) for number in range(1, 4)]

    assert [listed.id for listed in await store.dead_updates(10)] == ids[::-1]
    assert [listed.id for listed in await store.dead_updates(1, ids[2])] == [ids[1]]
    assert await counts(store) == {"dead_update": 3}
    assert await store.discard_update(ids[0], "discarded by op")
    assert not await store.discard_update(ids[0], "again")
    assert not await store.retry_update(ids[0])
    assert [listed.id for listed in await store.dead_updates(10)] == [ids[2], ids[1]]
    [done] = await store.updates(UpdateState.DONE, 10)
    assert done.note == "discarded by op"


# anomalies


async def test_what_the_provider_should_not_have_done_is_noted_in_the_commit_that_found_it(store: SqlDatabase) -> None:
    contradicted = await ended(store)
    assert (await end(store, contradicted, State.FAILED)).verdict is Verdict.CONTRADICTION
    wrong = await running(store)
    assert (await end(store, wrong, State.SUCCEEDED, task_id="another")).verdict is Verdict.WRONG_TASK
    cancelled = await ended(store, State.CANCELLED)
    assert (await end(store, cancelled, State.SUCCEEDED, cost=0)).verdict is Verdict.CANCELLED
    assert await counts(store) == {"contradiction": 1, "wrong_task": 1}
    assert (await end(store, cancelled, State.SUCCEEDED, cost=7)).verdict is Verdict.CANCELLED
    late = await ended(store, State.FAILED)
    assert await finish(store, late)
    assert await store.begin_notice(late.id, late.lease_token)
    assert (await end(store, late, State.SUCCEEDED)).verdict is Verdict.LATE

    assert await counts(store) == {"contradiction": 2, "wrong_task": 1, "loss": 1}
    found = await store.anomalies(AnomalyKind.CONTRADICTION, 10)
    assert [anomaly.job_id for anomaly in found] == [late.id, contradicted.id]
    [older] = await store.anomalies(AnomalyKind.CONTRADICTION, 10, found[0].id)
    assert older.job_id == contradicted.id
    assert [anomaly.kind for anomaly in await store.job_anomalies(cancelled.id)] == [AnomalyKind.LOSS]


async def test_an_end_as_usual_is_no_anomaly(store: SqlDatabase) -> None:
    job = await ended(store)
    assert (await end(store, job, State.SUCCEEDED)).verdict is Verdict.DUPLICATE
    expired = await ended(store, State.EXPIRED)
    assert await finish(store, expired)
    assert await store.begin_notice(expired.id, expired.lease_token)
    assert (await end(store, expired, State.SUCCEEDED)).verdict is Verdict.LATE
    body = NewCallback(provider="kie", secret_hash=hash_secret(SECRET), body="{}")
    await end(store, await running(store), State.FAILED, arrival=body)

    assert await counts(store) == {}


async def test_an_anomaly_is_handled_once_and_a_repeated_report_does_not_bring_it_back(store: SqlDatabase) -> None:
    job = await ended(store)
    await end(store, job, State.FAILED)
    [anomaly] = await store.job_anomalies(job.id)

    assert await store.handle_anomaly(anomaly.id)
    assert not await store.handle_anomaly(anomaly.id)
    assert (await end(store, job, State.FAILED)).verdict is Verdict.CONTRADICTION

    assert await counts(store) == {}
    assert await store.anomalies(AnomalyKind.CONTRADICTION, 10) == []


async def test_old_anomalies_are_pruned(store: SqlDatabase, clock: ManualClock) -> None:
    role = await store.take_role("active", "me", 3.0)
    await end(store, await ended(store), State.FAILED)
    clock.advance(100)

    assert await store.prune("anomalies", 101.0, 10, role) == 0
    assert await store.prune("anomalies", 99.0, 10, role) == 1
    assert await counts(store) == {}


# entries


async def test_open_refunds_count_when_they_are_old_and_are_listed_for_all_bots(
    store: SqlDatabase, clock: ManualClock
) -> None:
    await store.kv_put("chat:refund:a", "op", "bot")
    clock.advance(100)
    await store.kv_put("chat:refund:b", "op", "other")
    await store.kv_put("cost_above_price:model", "7")

    assert await counts(store) == {"open_refund": 1, "cost_above_price": 1}
    found = await store.kv_list_of_all_bots("chat:refund:", 10)
    assert [(entry.key, entry.bot, entry.age) for entry in found] == [
        ("chat:refund:a", "bot", 100.0),
        ("chat:refund:b", "other", 0.0),
    ]
    assert len(await store.kv_list_of_all_bots("chat:refund:", 1)) == 1
