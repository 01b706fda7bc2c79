"""Bulk actions: begun once, moved by one instance at a time, stopped between steps."""

import asyncio

from genlock.domain.bulk import (
    FAILURES_KEPT,
    BulkAction,
    BulkFailure,
    BulkKind,
    BulkReason,
    BulkSelection,
    BulkState,
    BulkTarget,
)
from genlock.domain.job import State
from genlock.domain.job_search import CountKind, JobCount, JobFilter
from genlock.stores.database import SqlDatabase
from genlock.stores.parking import Parking
from tests.stores.builders import ManualClock, queued

EXPECTED = JobCount(number=2, kind=CountKind.ABOUT)
STEP = (BulkTarget(job_id=7, token=3), BulkTarget(job_id=5, token=1))


async def begin(store: SqlDatabase, key: str = "key", selection: BulkSelection | None = None) -> BulkAction:
    chosen = selection or BulkSelection(job_ids=(5, 7))
    return await store.begin_bulk_action(
        BulkKind.RESEND, chosen, author="telegram:42", request_key=key, expected=EXPECTED
    )


async def see(store: SqlDatabase, action: BulkAction) -> BulkAction:
    found = await store.bulk_action(action.id)
    assert found is not None
    return found


async def test_a_bulk_action_is_begun_once_per_request_and_takes_the_jobs_there_are(
    store: SqlDatabase, clock: ManualClock
) -> None:
    job = await queued(store)
    filters = JobFilter(states=(State.FAILED,), text="лиса", since=clock.now())
    first, again = await begin(store, selection=BulkSelection(filters=filters)), await begin(store)
    both = await asyncio.gather(begin(store, "other"), begin(store, "other"))

    assert first == again
    assert first.selection == BulkSelection(filters=filters)
    assert (first.below, first.expected, first.created_at) == (job.id + 1, EXPECTED, clock.now())
    assert both[0] == both[1]
    assert (both[0].selection.job_ids, both[0].below) == ((7, 5), 8)
    assert [action.id for action in await store.bulk_actions(10)] == [both[0].id, first.id]
    assert await store.bulk_actions(10, before=both[0].id) == [first]
    assert await store.open_bulk_actions(10) == [first, both[0]]
    assert await store.bulk_action(404) is None


async def test_one_instance_moves_it_at_a_time(store: SqlDatabase) -> None:
    begun = await begin(store)
    stepping, too_late = await asyncio.gather(
        store.begin_bulk_step(begun, STEP, 5, []), store.begin_bulk_step(begun, STEP, 5, [])
    )
    stepping = stepping or too_late
    assert stepping is not None
    assert (stepping.step, stepping.below) == (STEP, 5)
    assert await store.begin_bulk_step(stepping, STEP, 4, []) is None  # the step is not finished
    assert not await store.end_bulk_action(stepping, BulkState.DONE)

    failure = BulkFailure(job_id=5, reason=BulkReason.ERROR, detail="Boom: 'quoted', back\\slash")
    between = await store.finish_bulk_step(stepping, done=1, failures=[failure])

    assert between is not None
    assert (between.step, between.done, between.failed) == ((), 1, 1)
    assert await store.finish_bulk_step(stepping, done=1, failures=[failure]) is None
    assert await see(store, begun) == between
    assert await store.bulk_failures(begun.id, 10) == [failure]
    assert await store.bulk_failures(begun.id, 10, after=5) == []


async def test_a_stop_lets_the_begun_step_finish_and_no_other_begin(store: SqlDatabase, clock: ManualClock) -> None:
    stepping = await store.begin_bulk_step(await begin(store), STEP, 5, [])
    assert stepping is not None
    assert await store.stop_bulk_action(stepping.id)
    assert not await store.stop_bulk_action(stepping.id)

    between = await store.finish_bulk_step(stepping, done=2, failures=[])

    assert between is not None
    assert (between.state, between.done, between.ended_at) == (BulkState.STOPPED, 2, None)
    assert await store.begin_bulk_step(between, STEP, 4, []) is None
    assert await store.end_bulk_action(between, BulkState.DONE)
    ended = await see(store, stepping)
    assert (ended.state, ended.ended_at) == (BulkState.STOPPED, clock.now())
    assert not await store.end_bulk_action(ended, BulkState.DONE)
    assert not await store.stop_bulk_action(ended.id)
    assert await store.open_bulk_actions(10) == []


async def test_failures_beyond_the_first_thousand_are_only_counted(store: SqlDatabase) -> None:
    action: BulkAction | None = await begin(store)
    for first in (1, 600, 2000):
        assert action is not None
        failures = [BulkFailure(job_id=first + n, reason=BulkReason.ENDED) for n in range(590)]
        action = await store.begin_bulk_step(action, (), 5, failures)
    assert action is not None
    assert action.failed == 3 * 590
    assert len(await store.bulk_failures(action.id, 5000)) == FAILURES_KEPT


async def test_a_restored_bulk_action_does_not_continue(store: SqlDatabase, clock: ManualClock) -> None:
    stepping = await store.begin_bulk_step(await begin(store), STEP, 5, [])
    assert stepping is not None

    await Parking(store.session).park("restored")

    parked = await see(store, stepping)
    assert (parked.state, parked.step, parked.ended_at) == (BulkState.STOPPED, (), clock.now())
    assert await store.finish_bulk_step(stepping, done=2, failures=[]) is None


async def test_what_old_bulk_actions_left_out_is_deleted(store: SqlDatabase, clock: ManualClock) -> None:
    role = await store.take_role("active", "me", 1000.0)
    failure = BulkFailure(job_id=5, reason=BulkReason.ENDED)
    for key in ("old", "new"):
        stepping = await store.begin_bulk_step(await begin(store, key), (), 5, [failure])
        assert stepping is not None
        assert await store.end_bulk_action(stepping, BulkState.DONE)
        clock.advance(60)
    open_ = await store.begin_bulk_step(await begin(store, "open"), (), 5, [failure])
    assert open_ is not None

    assert await store.prune("bulk_failures", 90.0, 10, role) == 1
    assert await store.prune("bulk_failures", 90.0, 10, role) == 0
    assert await store.prune("bulk_failures", 0.0, 10, role) == 1
    assert await store.bulk_failures(open_.id, 10) == [failure]
