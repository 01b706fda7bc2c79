"""Heartbeats, released leases, roles and shared limits."""

import asyncio
from dataclasses import replace

import pytest

from genlock.domain.job import Delivery
from genlock.ports import Lease, Role, Store
from tests.stores.builders import ME, OTHER, ManualClock, claimed, delivered, ended, queued, running, see, unchanged

# heartbeats


async def test_an_instance_without_heartbeat_is_reported_to_the_others(store: Store, clock: ManualClock) -> None:
    assert await store.heartbeat("me", 3.0) == []
    assert await store.heartbeat("other", 3.0) == []
    clock.advance(3)
    assert await store.heartbeat("me", 3.0) == []
    clock.advance(0.001)

    assert await store.heartbeat("me", 3.0) == ["other"]
    assert await store.heartbeat("third", 3.0) == ["other"]


async def test_an_instance_that_crashed_before_the_clock_was_set_back_is_noticed(
    store: Store, clock: ManualClock
) -> None:
    for name in ("me", "other", "alive"):
        await store.heartbeat(name, 3.0)
    clock.advance(-300)

    assert await store.heartbeat("me", 3.0) == []
    clock.advance(2)
    await store.heartbeat("alive", 3.0)
    assert await store.heartbeat("me", 3.0) == []
    clock.advance(2)
    assert await store.heartbeat("me", 3.0) == ["other"]


async def test_a_late_heartbeat_does_not_report_its_own_instance(store: Store, clock: ManualClock) -> None:
    await store.heartbeat("me", 3.0)
    clock.advance(60)

    assert await store.heartbeat("me", 3.0) == []


async def test_an_instance_with_heartbeats_is_alive(store: Store, clock: ManualClock) -> None:
    await store.heartbeat("other", 3.0)
    for _ in range(5):
        clock.advance(2)
        await store.heartbeat("other", 3.0)
        assert await store.heartbeat("me", 3.0) == []


# released leases


async def test_jobs_of_a_crashed_instance_are_due_at_once(store: Store, clock: ManualClock) -> None:
    await store.heartbeat("me", 3.0)
    jobs = [await queued(store), await ended(store), await delivered(store)]
    others = await queued(store, lease=OTHER)
    clock.advance(5)

    assert await store.release_leases("me") == 3

    for job in jobs:
        assert await unchanged(store, replace(job, due_at=clock.now(), lease_owner=None))
    assert await unchanged(store, others)
    assert {job.id for job in await store.claim_jobs(10, OTHER)} == {job.id for job in jobs}


async def test_an_instance_whose_leases_were_released_is_deleted(store: Store, clock: ManualClock) -> None:
    await store.heartbeat("other", 3.0)
    clock.advance(5)

    assert await store.release_leases("other") == 0

    assert await store.heartbeat("me", 3.0) == []


async def test_release_leases_may_be_repeated(store: Store, clock: ManualClock) -> None:
    job = await queued(store)
    assert await store.release_leases("me") == 1
    taken = await claimed(store, job, OTHER)
    clock.advance(1)

    assert await store.release_leases("me") == 0

    assert await unchanged(store, taken)


async def test_release_leases_leaves_the_excepted_jobs_alone(store: Store, clock: ManualClock) -> None:
    await store.heartbeat("me", 3.0)
    excepted, lost, also_excepted = [await queued(store) for _ in range(3)]
    clock.advance(5)

    assert await store.release_leases("me", [excepted.id, also_excepted.id]) == 1

    assert await unchanged(store, excepted)
    assert await unchanged(store, also_excepted)
    assert (await see(store, lost)).lease_owner is None
    assert await store.heartbeat("other", 3.0) == ["me"], "the instance is not deleted"


async def test_release_leases_leaves_waiting_jobs_alone(store: Store) -> None:
    waiting = await running(store, poll_after=60.0)

    assert await store.release_leases("me") == 0

    assert await unchanged(store, waiting)


async def test_an_instance_whose_leases_were_released_is_fenced_by_the_next_claim(store: Store) -> None:
    job = await ended(store)
    await store.release_leases("me")

    taken = await claimed(store, job, OTHER)

    assert taken.delivery is Delivery.SENDING
    assert taken.lease_token == job.lease_token + 1
    assert not await store.renew_lease(job.id, job.lease_token, ME)


# roles


async def test_a_role_is_taken_renewed_and_read(store: Store, clock: ManualClock) -> None:
    mine = Role(holder="me", epoch=1)
    assert await store.take_role("active", "me", 3.0) == mine
    for _ in range(3):
        clock.advance(2)
        assert await store.take_role("active", "me", 3.0) == mine
        assert await store.take_role("active", "other", 3.0) == mine


async def test_a_role_that_is_not_renewed_passes_on_in_a_new_epoch(store: Store, clock: ManualClock) -> None:
    await store.take_role("active", "me", 3.0)
    clock.advance(3)
    assert (await store.take_role("active", "other", 3.0)).holder == "me"
    clock.advance(0.001)

    assert await store.take_role("active", "other", 3.0) == Role(holder="other", epoch=2)
    assert await store.take_role("active", "me", 3.0) == Role(holder="other", epoch=2)
    clock.advance(4)
    assert await store.take_role("active", "me", 3.0) == Role(holder="me", epoch=3)


async def test_a_released_role_is_free_at_once(store: Store) -> None:
    await store.take_role("active", "me", 3.0)

    await store.release_role("active", "me")

    assert await store.take_role("active", "other", 3.0) == Role(holder="other", epoch=2)


async def test_only_the_holder_releases_a_role(store: Store) -> None:
    await store.take_role("active", "me", 3.0)

    await store.release_role("active", "other")
    await store.release_role("unknown", "me")

    assert (await store.take_role("active", "other", 3.0)).holder == "me"


async def test_roles_are_independent(store: Store) -> None:
    assert await store.take_role("active", "me", 3.0) == Role(holder="me", epoch=1)
    assert await store.take_role("cook", "other", 3.0) == Role(holder="other", epoch=1)


async def test_one_of_many_candidates_gets_the_role_and_all_see_it(store: Store, clock: ManualClock) -> None:
    """Also the previous holder sees an instance that has just taken the role."""
    for _ in range(4):
        names = [f"instance-{number}" for number in range(10)]
        roles = await asyncio.gather(*(store.take_role("active", name, 3.0) for name in reversed(names)))

        assert len(set(roles)) == 1
        assert await store.take_role("active", "late", 3.0) == roles[0]
        clock.advance(4)


# shared limits


async def test_after_a_pause_a_burst_may_go_at_once(store: Store) -> None:
    waits = await store.reserve_permits("create", 7, interval=0.5, burst=5, horizon=10.0)

    assert waits == pytest.approx([0, 0, 0, 0, 0, 0.5, 1.0], abs=1e-5)


async def test_without_a_burst_permits_are_evenly_spaced(store: Store) -> None:
    assert await store.reserve_permits("create", 4, interval=0.5, burst=1, horizon=10.0) == pytest.approx(
        [0, 0.5, 1.0, 1.5]
    )


async def test_the_next_permits_follow_the_reserved_ones(store: Store, clock: ManualClock) -> None:
    assert await store.reserve_permits("create", 3, interval=0.5, burst=1, horizon=10.0) == pytest.approx([0, 0.5, 1.0])
    clock.advance(0.25)

    assert await store.reserve_permits("create", 2, interval=0.5, burst=1, horizon=10.0) == pytest.approx([1.25, 1.75])


async def test_no_permit_is_given_beyond_the_horizon(store: Store, clock: ManualClock) -> None:
    first = await store.reserve_permits("create", 100, interval=0.5, burst=1, horizon=2.0)
    assert first == pytest.approx([0, 0.5, 1.0, 1.5, 2.0])
    assert await store.reserve_permits("create", 100, interval=0.5, burst=1, horizon=2.0) == []
    clock.advance(1.0)

    assert await store.reserve_permits("create", 100, interval=0.5, burst=1, horizon=2.0) == pytest.approx([1.5, 2.0])


async def test_a_refused_permit_costs_nothing(store: Store, clock: ManualClock) -> None:
    await store.reserve_permits("create", 5, interval=0.5, burst=1, horizon=2.0)
    for _ in range(10):
        assert await store.reserve_permits("create", 5, interval=0.5, burst=1, horizon=0.1) == []
    clock.advance(2.5)

    assert await store.reserve_permits("create", 1, interval=0.5, burst=1, horizon=0.1) == [0]


async def test_a_pause_earns_no_more_than_the_burst(store: Store, clock: ManualClock) -> None:
    for _ in range(2):
        clock.advance(10**6)
        assert await store.reserve_permits("create", 10, interval=1.0, burst=3, horizon=0.5) == [0, 0, 0]


async def test_limits_are_independent(store: Store) -> None:
    assert await store.reserve_permits("create", 5, interval=1.0, burst=1, horizon=0.0) == [0]
    assert await store.reserve_permits("status", 5, interval=1.0, burst=1, horizon=0.0) == [0]


async def test_no_keys_take_no_permits(store: Store) -> None:
    assert await store.reserve_permits("create", 0, interval=1.0, burst=1, horizon=0.0) == []


@pytest.mark.parametrize("interval", [0.5, 0.1, 1 / 3, 0.0007])
async def test_over_time_exactly_the_rate_is_given(store: Store, clock: ManualClock, interval: float) -> None:
    start = clock.now()
    assert await store.reserve_permits("create", 4, interval, burst=4, horizon=interval / 2) == pytest.approx([0] * 4)

    permits: list[float] = []
    while (now := (clock.now() - start).total_seconds()) < 100 * interval:
        permits += [
            now + wait for wait in await store.reserve_permits("create", 3, interval, burst=4, horizon=2.1 * interval)
        ]
        clock.advance(0.37 * interval)

    assert permits == pytest.approx([interval * number for number in range(1, len(permits) + 1)], abs=1e-4)
    assert len(permits) >= 100, "no permit too many and none lost"


async def test_concurrent_reservations_get_different_permits(store: Store) -> None:
    given = await asyncio.gather(*(store.reserve_permits("create", 3, 0.5, burst=1, horizon=100.0) for _ in range(10)))

    permits = sorted(wait for waits in given for wait in waits)
    assert permits == pytest.approx([0.5 * number for number in range(30)])


async def test_leases_may_have_any_length(store: Store, clock: ManualClock) -> None:
    job = await queued(store, lease=Lease(owner="me", seconds=0.25))

    assert job.due_at == clock.after(0.25)
