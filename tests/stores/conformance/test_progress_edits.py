"""Progress edits whose outcome is unknown."""

from dataclasses import replace
from typing import Any

import pytest

from genlock.domain.delivery import again
from genlock.domain.job import Job, State, Verdict
from genlock.ports import Reschedule, Store
from tests.stores.builders import ME, OTHER, SHOWN, ManualClock, claimed, end, finish, running, see, unchanged


async def edited(store: Store, clock: ManualClock, **changes: Any) -> Job:
    """A running job with a progress edit on its way."""
    job = await running(store, placeholder="m1", **changes)
    clock.advance(5)
    job = await claimed(store, job)
    clock.advance(1)
    assert await store.begin_progress(job.id, job.lease_token, ME)
    return await see(store, job)


async def test_a_progress_edit_is_recorded_and_renews_the_lease(store: Store, clock: ManualClock) -> None:
    job = await edited(store, clock)

    assert (job.progress_message, job.due_at, job.lease_owner) == ("m1", clock.after(ME.seconds), ME.owner)
    for stale in (replace(ME, owner="another"), ME):
        token = job.lease_token - (stale is ME)
        assert not await store.begin_progress(job.id, token, stale)
    assert await unchanged(store, job)


@pytest.mark.parametrize("settled", [True, False])
async def test_a_progress_edit_is_cleared_only_when_it_is_settled(
    store: Store, clock: ManualClock, *, settled: bool
) -> None:
    job = await edited(store, clock)

    assert await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=5.0, progress_settled=settled))

    assert (await see(store, job)).progress_message == (None if settled else "m1")


async def test_the_end_of_a_job_says_whether_a_progress_edit_may_take_effect(store: Store, clock: ManualClock) -> None:
    quiet = (await end(store, await running(store, placeholder="m1"), State.FAILED)).job
    loud = (await end(store, await edited(store, clock), State.FAILED, OTHER)).job

    assert quiet is not None
    assert loud is not None
    assert (quiet.progress_message, loud.progress_message) == (None, "m1")
    assert loud.just_ended
    clock.advance(60)
    assert not (await claimed(store, loud)).just_ended


@pytest.mark.parametrize("notice", [True, False], ids=["notice", "no notice"])
async def test_an_overwritable_message_is_due_again_after_its_delivery(
    store: Store, clock: ManualClock, *, notice: bool
) -> None:
    job = await edited(store, clock, notice=notice)
    ending = (await end(store, job, State.FAILED)).job
    assert ending is not None

    assert await finish(store, ending, overwritable=True)
    if notice:
        assert await store.begin_notice(job.id, ending.lease_token)

    now = await see(store, job)
    assert (now.progress_message, now.due_at, now.lease_owner) == ("m1", clock.after(4), None)
    assert await store.violations(settled=True) == []
    assert await store.resend_job(job.id, again(now.parts))
    assert (await see(store, job)).progress_message == "m1"


async def test_a_message_that_cannot_be_overwritten_is_not_due_again(store: Store, clock: ManualClock) -> None:
    ending = (await end(store, await edited(store, clock), State.SUCCEEDED)).job
    assert ending is not None

    assert await finish(store, ending)
    assert await store.begin_notice(ending.id, ending.lease_token)

    now = await see(store, ending)
    assert (now.progress_message, now.due_at) == (None, None)


async def test_the_cost_of_a_cancelled_job_does_not_end_the_puts_of_its_message(
    store: Store, clock: ManualClock
) -> None:
    ending = (await end(store, await edited(store, clock), State.CANCELLED)).job
    assert ending is not None
    assert await finish(store, ending, overwritable=True)
    assert await store.begin_notice(ending.id, ending.lease_token)

    assert (await end(store, ending, State.SUCCEEDED, cost=7)).verdict is Verdict.CANCELLED

    assert (await see(store, ending)).due_at is not None


async def test_a_changed_address_clears_the_progress_edit(store: Store, clock: ManualClock) -> None:
    ending = (await end(store, await edited(store, clock), State.FAILED)).job
    assert ending is not None

    assert await store.change_address(ending.id, ending.lease_token, "elsewhere", SHOWN)

    assert (await see(store, ending)).progress_message is None
