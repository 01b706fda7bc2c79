"""The queue of an update is leased by the statement that stores the update."""

import asyncio

from genlock.domain.update import Received, UpdateState
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, OTHER, ManualClock, update
from tests.stores.conformance.update_queues import claim, number


async def test_the_queue_of_a_new_update_is_leased_to_the_instance_that_stores_it(store: SqlDatabase) -> None:
    received, queue = await store.receive_update(update(1), ME)
    assert received is Received.FRESH
    assert number(queue) == 1
    assert queue is not None
    assert queue.update is not None
    assert (queue.update.attempts, queue.update.body) == (1, update(1).body)
    assert await claim(store) == [], "no claim is needed, and none is possible"
    settled = await store.settle_update(queue, UpdateState.DONE, "", ME)
    assert settled is not None
    assert settled.waiting == 0
    received, again = await store.receive_update(update(2), ME)
    assert again is not None
    assert (number(again), again.token) == (2, queue.token + 1)
    assert await store.violations(settled=False) == []


async def test_a_queue_that_is_not_empty_stays_with_the_instance_that_has_it(store: SqlDatabase) -> None:
    _, queue = await store.receive_update(update(1), ME)
    assert await store.receive_update(update(2), OTHER) == (Received.FRESH, None)
    assert await store.receive_update(update(1), OTHER) == (Received.KNOWN, None)
    assert queue is not None
    settled = await store.settle_update(queue, UpdateState.DONE, "", ME)
    assert settled is not None
    following = settled.queue if settled.queue.update else await store.next_update(settled.queue)
    assert number(following) == 2


async def test_updates_stored_together_lease_their_queue_once_with_the_first_of_them(store: SqlDatabase) -> None:
    answers = await asyncio.gather(*(store.receive_update(update(n, queue), ME) for n in (1, 2, 3) for queue in "ab"))
    assert {received for received, _ in answers} <= {Received.FRESH, Received.KNOWN}
    leased = [queue for _, queue in answers if queue is not None]
    assert len({queue.id for queue in leased}) == len(leased) > 0
    assert await claim(store) == []
    assert await store.violations(settled=False) == []


async def test_a_lease_taken_at_storing_expires_like_any_other(store: SqlDatabase, clock: ManualClock) -> None:
    _, lost = await store.receive_update(update(1), OTHER)
    clock.advance(OTHER.seconds + 1)
    [queue] = await claim(store)
    assert (number(queue), queue.crash_count) == (1, 1)
    assert lost is not None
    assert await store.settle_update(lost, UpdateState.DONE, "", OTHER) is None, "its token is old"


async def test_without_a_lease_the_queue_of_a_new_update_is_due_at_once(store: SqlDatabase) -> None:
    assert await store.receive_update(update(1), None) == (Received.FRESH, None)
    assert [number(queue) for queue in await claim(store)] == [1]
