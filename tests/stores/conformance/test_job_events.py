"""The kept history of a job: its events, ledger entries, callbacks and audit lines."""

import json
from datetime import timedelta
from typing import Any

from genlock.domain.delivery import again
from genlock.domain.job import Delivery, State, hash_secret
from genlock.domain.job_event import EventRow
from genlock.domain.money import EntryKind
from genlock.stores.database import SqlDatabase
from tests.stores.builders import (
    RESULT,
    SECRET,
    ManualClock,
    account_with,
    claimed,
    delivered,
    ended,
    finish,
    running,
    see,
)


def row(correlation_id: str, number: int, *events: tuple[int, str, dict[str, Any]]) -> EventRow:
    return EventRow(correlation_id=correlation_id, number=number, events=json.dumps(events))


async def test_events_are_dated_by_the_clock_of_the_database_and_read_oldest_first(
    store: SqlDatabase, clock: ManualClock
) -> None:
    first = row("a", 1, (1500, "SUBMIT_START", {"provider": "kie"}), (20, "SUBMIT_OK", {"task_id": "t"}))
    await store.add_job_events("one", [first, row("b", 2, (0, "JOB_CREATED", {}))])
    clock.advance(0.5)
    await store.add_job_events("two", [row("a", 1, (400, "JOB_ENDED", {"seconds": 1.5}))])
    begin = clock.after(-0.5)

    found = await store.job_events("a", 10)

    assert [(event.at, event.event, event.instance, dict(event.fields)) for event in found] == [
        (begin - timedelta(milliseconds=1500), "SUBMIT_START", "one", {"provider": "kie"}),
        (begin - timedelta(milliseconds=20), "SUBMIT_OK", "one", {"task_id": "t"}),
        (begin + timedelta(milliseconds=100), "JOB_ENDED", "two", {"seconds": 1.5}),
    ]
    assert [event.event for event in await store.job_events("b", 10)] == ["JOB_CREATED"]
    assert [event.event for event in await store.job_events("a", 1)] == ["JOB_ENDED"]
    assert await store.job_events("c", 10) == []


async def test_a_row_that_was_written_twice_is_read_once(store: SqlDatabase, clock: ManualClock) -> None:
    written = row("a", 1, (0, "JOB_CREATED", {}))
    await store.add_job_events("one", [written])
    clock.advance(1)
    await store.add_job_events("one", [written, row("a", 2, (0, "JOB_ENDED", {}))])

    assert [event.event for event in await store.job_events("a", 10)] == ["JOB_CREATED", "JOB_ENDED"]


async def test_texts_with_any_character_are_kept(store: SqlDatabase) -> None:
    text = 'nul \0, half a pair \ud800, "quotes", кот, \u202e right to left, {brace}'

    await store.add_job_events("one", [row("a", 1, (0, "DELIVER_FAIL", {"reason": text}))])

    [event] = await store.job_events("a", 10)
    assert event.fields == {"reason": text}


async def test_old_events_are_pruned_by_the_leader_only(store: SqlDatabase, clock: ManualClock) -> None:
    role = await store.take_role("active", "me", 3.0)
    await store.add_job_events("me", [row("a", number, (0, "JOB_CREATED", {})) for number in range(1, 4)])
    clock.advance(100)
    await store.add_job_events("me", [row("a", 4, (0, "JOB_ENDED", {}))])

    assert await store.prune("job_events", 100.1, 10, role) == 0
    assert await store.prune("job_events", 50.0, 2, role) == 2
    assert await store.prune("job_events", 50.0, 2, role) == 1
    assert [event.event for event in await store.job_events("a", 10)] == ["JOB_ENDED"]
    await store.release_role("active", "me")
    await store.take_role("active", "other", 3.0)
    assert await store.prune("job_events", 0.0, 10, role) == 0


async def test_the_ledger_entries_of_a_job_are_found_also_those_of_an_earlier_hold(
    store: SqlDatabase, clock: ManualClock
) -> None:
    account_id = await account_with(store, 1000)
    others = await delivered(store, account_id=account_id)
    job = await ended(store, account_id=account_id)
    clock.advance(1)
    assert await finish(store, job, Delivery.UNDELIVERABLE)
    clock.advance(1)
    assert await store.resend_paid_job(job.id, again(RESULT), (await see(store, job)).lease_token)
    clock.advance(1)
    job = await claimed(store, job)
    assert await finish(store, job)
    clock.advance(1)
    await store.transfer(account_id, EntryKind.REFUND, job.price, f"refund:{job.id}")

    entries = await store.job_ledger_entries(await see(store, job))

    assert [entry.kind for entry in entries] == [
        EntryKind.HOLD,
        EntryKind.RELEASE,
        EntryKind.HOLD,
        EntryKind.CAPTURE,
        EntryKind.REFUND,
    ]
    assert all(entry.job_id == job.id or entry.kind is EntryKind.REFUND for entry in entries)
    assert [entry.kind for entry in await store.job_ledger_entries(others)] == [EntryKind.HOLD, EntryKind.CAPTURE]


async def test_a_free_job_has_no_ledger_entries(store: SqlDatabase) -> None:
    assert await store.job_ledger_entries(await running(store, price=0)) == []


async def test_the_callbacks_of_a_job_are_found_by_id_and_cut(store: SqlDatabase) -> None:
    job, other = await running(store), await running(store)
    mine = await store.store_callback("kie", job.id, hash_secret(SECRET), b"\xff\x00 0123456789")
    others = await store.store_callback("kie", other.id, hash_secret(SECRET), b"{}")

    [found] = await store.job_callbacks(job.id, [mine.id, others.id, 10**9], 5)

    assert (found.id, found.job_id, found.body) == (mine.id, job.id, b"\xff\x00 01")
    assert await store.job_callbacks(job.id, [], 5) == []


async def test_audit_lines_are_found_by_their_subject(store: SqlDatabase) -> None:
    for number, subject in enumerate(["#1", "#11", "1", "#1"]):
        await store.add_audit(key=f"k{number}", actor="op", action=f"act {number}", subject=subject, detail="")

    assert [line.action for line in await store.audit_about(["#1"], 10)] == ["act 3", "act 0"]
    assert [line.action for line in await store.audit_about(["#1", "1"], 2)] == ["act 3", "act 2"]
    assert await store.audit_about([], 10) == []


async def test_the_state_of_the_job_does_not_depend_on_its_events(store: SqlDatabase) -> None:
    job = await ended(store)
    await store.add_job_events("me", [row(job.correlation_id, 1, (0, "JOB_ENDED", {}))])

    assert (await see(store, job)).state is State.SUCCEEDED
    assert await store.violations(settled=False) == []
