"""Updates: each id once, each user's in order, one at a time, and none lost in a crash."""

import asyncio

import pytest

from genlock.domain.poison import ISOLATED_FROM
from genlock.domain.update import Received, UpdateQueue, UpdateState
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, OTHER, ManualClock, update
from tests.stores.conformance.update_queues import claim, number, stored
from tests.stores.conftest import Raw


async def test_an_update_is_stored_once_however_often_it_arrives(store: SqlDatabase) -> None:
    arrivals = await asyncio.gather(*(store.store_update(update(7)) for _ in range(5)))
    assert sorted(arrivals) == [Received.FRESH, *[Received.KNOWN] * 4]
    assert await store.store_update(update(7)) is Received.KNOWN
    assert await store.store_update(update(7, bot="another")) is Received.FRESH
    assert await store.violations(settled=False) == []


async def test_a_known_update_stays_known_when_it_is_done(store: SqlDatabase) -> None:
    await stored(store, 7)
    [queue] = await claim(store)
    await store.settle_update(queue, UpdateState.DONE, "", ME)
    assert await store.store_update(update(7)) is Received.KNOWN
    assert await claim(store) == []


async def test_an_update_is_read_back_as_it_was_stored(store: SqlDatabase) -> None:
    body = '{"update_id":7,"message":{"text":"\\u0000 \\ud83d\\ude00 привет \\\\ \\""}}'
    await store.store_update(update(7, body=body, kind="message"))
    [queue] = await claim(store)
    assert queue.update is not None
    assert (queue.update.body, queue.update.kind, queue.update.bot) == (body, "message", "bot")
    assert (queue.update.attempts, queue.update.state) == (1, UpdateState.NEW)


async def test_updates_of_a_user_are_handled_in_order_one_at_a_time(store: SqlDatabase) -> None:
    await stored(store, 1, 2, 3)
    [queue] = await claim(store)
    seen = [number(queue)]
    assert await claim(store) == [], "the queue is held"
    await stored(store, 4)
    assert await claim(store) == [], "and stays so when more comes"
    while (settled := await store.settle_update(queue, UpdateState.DONE, "", ME)) and settled.waiting:
        queue = settled.queue
        seen.append(number(queue))
        assert await claim(store) == []
    assert seen == [1, 2, 3, 4]
    assert await store.violations(settled=True) == []


async def test_settling_the_last_update_releases_the_queue(store: SqlDatabase) -> None:
    await stored(store, 1)
    [queue] = await claim(store)
    settled = await store.settle_update(queue, UpdateState.DONE, "", ME)
    assert settled is not None
    assert settled.waiting == 0
    await stored(store, 2)
    [again] = await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)
    assert (number(again), again.token) == (2, queue.token + 1)


async def test_a_flooding_user_takes_one_claim(store: SqlDatabase) -> None:
    await stored(store, *range(50), queue="flood")
    await stored(store, 100, queue="bob")
    await stored(store, 101, queue="cid")
    queues = await claim(store, limit=3)
    assert sorted(number(queue) for queue in queues) == [0, 100, 101]


async def test_the_longest_waiting_update_queue_is_first(store: SqlDatabase, clock: ManualClock) -> None:
    for place, name in enumerate(("ann", "bob", "cid")):
        await stored(store, 10 - place, queue=name)
        clock.advance(1)
    assert [number(queue) for queue in await claim(store, limit=2)] in ([10, 9], [9, 10])
    assert [number(queue) for queue in await claim(store)] == [8]


async def test_urgent_update_queues_are_claimed_separately(store: SqlDatabase) -> None:
    await stored(store, 1)
    await stored(store, 2, queue="ann/pre_checkout_query", urgent=True)
    assert [number(queue) for queue in await claim(store, urgent=True)] == [2]
    assert [number(queue) for queue in await claim(store)] == [1]


async def test_an_update_queue_with_many_crashes_is_claimed_separately(store: SqlDatabase, clock: ManualClock) -> None:
    await stored(store, 1, 2)
    for crash_count, pause in enumerate((*[0.0] * (ISOLATED_FROM - 1), 1.0, 2.0, 4.0)):
        [queue] = await store.claim_update_queues(
            10, ME, bots=["bot"], urgent=False, poison=crash_count >= ISOLATED_FROM
        )
        assert (number(queue), queue.crash_count) == (1, crash_count)
        await store.release_leases(ME.owner, crashed=True)
        if pause:
            clock.advance(pause - 0.001)
            assert await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False, poison=True) == []
            clock.advance(0.001)

    await stored(store, 9, queue="bob")
    assert [number(queue) for queue in await claim(store)] == [9]


@pytest.mark.parametrize("survive", ["settled", "postponed", "stopped"])
async def test_settling_or_postponing_an_update_resets_the_crash_count(store: SqlDatabase, survive: str) -> None:
    await stored(store, 1, 2)
    for _ in range(2):
        assert len(await claim(store)) == 1
        await store.release_leases(ME.owner, crashed=True)
    [queue] = await claim(store)
    assert queue.crash_count == 2
    if survive == "settled":
        settled = await store.settle_update(queue, UpdateState.DONE, "", ME)
        assert settled is not None
        assert settled.queue.crash_count == 0
        return
    if survive == "postponed":
        await store.postpone_update(queue, 0.0, "")
    else:
        await store.release_leases(ME.owner)
    [queue] = await claim(store)
    assert queue.crash_count == (0 if survive == "postponed" else 2), "a clean stop says nothing of it"


async def test_an_expired_lease_of_a_queue_counts_as_a_crash(store: SqlDatabase, clock: ManualClock) -> None:
    await stored(store, 1)
    await claim(store)
    clock.advance(ME.seconds + 1)
    assert [queue.crash_count for queue in await claim(store)] == [0], "our own"
    clock.advance(ME.seconds + 1)
    assert [queue.crash_count for queue in await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)] == [
        1
    ]


async def test_a_stale_holder_changes_nothing(store: SqlDatabase, clock: ManualClock) -> None:
    await stored(store, 1, 2)
    [old] = await claim(store)
    clock.advance(ME.seconds + 1)
    [new] = await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)
    assert number(new) == 1
    assert await store.settle_update(old, UpdateState.DONE, "", ME) is None
    assert not await store.postpone_update(old, 1.0, "")
    assert await store.renew_update_queues([old], ME) == set()
    assert await store.next_update(old) is None
    assert number(await store.next_update(new)) == 1
    settled = await store.settle_update(new, UpdateState.DONE, "", OTHER)
    assert settled is not None
    assert number(settled.queue) == 2


async def test_the_following_update_is_the_next_of_the_same_queue(store: SqlDatabase) -> None:
    await stored(store, 1, 2, 3)
    await stored(store, 4, queue="bob")
    [ann, bob] = sorted(await claim(store), key=number)
    assert ann.update
    assert bob.update
    behind = await store.following_update(ann.update.id)
    assert behind
    assert behind.update_id == 2
    assert await store.following_update(bob.update.id) is None
    settled = await store.settle_update(ann, UpdateState.DONE, "", ME)
    assert settled
    assert settled.queue.update
    behind = await store.following_update(settled.queue.update.id)
    assert behind
    assert behind.update_id == 3


async def test_an_update_is_open_until_it_is_settled_and_again_when_the_operator_retries_it(store: SqlDatabase) -> None:
    await stored(store, 1)
    [queue] = await claim(store)
    assert queue.update
    assert await store.is_update_open(queue.update.id)
    assert await store.settle_update(queue, UpdateState.DEAD, "", ME)
    assert not await store.is_update_open(queue.update.id)
    assert await store.retry_update(queue.update.id)
    assert await store.is_update_open(queue.update.id)


async def test_settling_again_changes_nothing(store: SqlDatabase) -> None:
    """A statement whose answer was lost is repeated."""
    await stored(store, 1, 2, 3)
    [queue] = await claim(store)
    assert await store.settle_update(queue, UpdateState.DONE, "", ME)
    assert await store.settle_update(queue, UpdateState.DONE, "", ME) is None
    assert await store.violations(settled=False) == []


async def test_a_renewed_update_queue_outlives_its_first_lease(store: SqlDatabase, clock: ManualClock) -> None:
    await stored(store, 1)
    [queue] = await claim(store)
    clock.advance(ME.seconds - 1)
    assert await store.renew_update_queues([queue], ME) == {queue.id}
    clock.advance(ME.seconds - 1)
    assert await claim(store) == []


async def test_update_queues_of_a_crashed_instance_are_due_at_once(store: SqlDatabase) -> None:
    await stored(store, 1)
    await stored(store, 2, queue="bob")
    held = await claim(store)
    await store.release_update_queues("me", [held[0].id])
    [freed] = await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)
    assert freed.id == held[1].id
    await store.release_leases("me")
    [freed] = await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)
    assert freed.id == held[0].id


async def test_a_failed_attempt_is_repeated_later_and_delays_only_its_own_queue(
    store: SqlDatabase, clock: ManualClock
) -> None:
    await stored(store, 1, 2)
    await stored(store, 3, queue="bob")
    first, _ = sorted(await claim(store), key=number)
    assert await store.postpone_update(first, 5.0, "it broke")
    assert not await store.postpone_update(first, 5.0, "again"), "once"
    await stored(store, 4)
    assert await claim(store) == []
    clock.advance(5)
    [queue] = await claim(store)
    assert queue.update is not None
    assert (number(queue), queue.update.attempts, queue.update.note) == (1, 2, "it broke")
    settled = await store.settle_update(queue, UpdateState.DEAD, "it broke again", ME)
    assert settled is not None
    assert settled.queue.update is not None
    assert (number(settled.queue), settled.queue.update.attempts) == (2, 1)


async def test_an_attempt_that_ended_with_its_process_counts(store: SqlDatabase) -> None:
    """So an update that crashes its worker is noticed."""
    await stored(store, 1)
    for attempt in (1, 2, 3):
        [queue] = await claim(store)
        assert queue.update is not None
        assert queue.update.attempts == attempt
        await store.release_leases("me")
    [queue] = await claim(store)
    await store.settle_update(queue, UpdateState.DONE, "", ME)
    await stored(store, 2)
    [queue] = await claim(store)
    assert queue.update is not None
    assert queue.update.attempts == 1


async def test_dead_updates_are_listed_and_can_be_retried(store: SqlDatabase) -> None:
    await stored(store, 1)
    [queue] = await claim(store)
    await store.settle_update(queue, UpdateState.DEAD, "why", ME)
    [dead] = await store.updates(UpdateState.DEAD, 10)
    assert (dead.update_id, dead.note) == (1, "why")
    assert await store.retry_update(dead.id)
    assert not await store.retry_update(dead.id)
    assert [number(queue) for queue in await claim(store)] == [1]
    assert await store.violations(settled=False) == []


async def test_no_update_is_missed_when_it_arrives_while_others_are_settled(store: SqlDatabase, raw: Raw) -> None:
    """Store and settle updates of the same queues concurrently until all are done."""
    accounts, each = 8, 30
    seen: dict[str, list[int]] = {str(account): [] for account in range(accounts)}

    async def arrive(account: int) -> None:
        for place in range(each):
            await store.store_update(update(account * 1000 + place, str(account)))

    async def work(owner: str) -> None:
        while sum(map(len, seen.values())) < accounts * each:
            for queue in await store.claim_update_queues(3, ME if owner == "me" else OTHER, bots=["bot"], urgent=False):
                held: UpdateQueue | None = queue
                while held is not None:
                    seen[str(number(held) // 1000)].append(number(held) % 1000)
                    settled = await store.settle_update(held, UpdateState.DONE, "", ME)
                    assert settled is not None
                    held = None
                    if settled.waiting:
                        held = settled.queue if settled.queue.update else await store.next_update(settled.queue)
                        assert held is not None
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*(arrive(account) for account in range(accounts)), work("me"), work("other"))
    assert seen == {str(account): list(range(each)) for account in range(accounts)}
    assert await store.violations(settled=True) == []
    assert await raw("SELECT count(*) FROM updates WHERE state <> 'done'") == [(0,)]


@pytest.mark.parametrize("bad", ["a NUL \0 in it"])
async def test_one_invalid_update_does_not_affect_the_others(store: SqlDatabase, bad: str) -> None:
    answers = await asyncio.gather(
        store.store_update(update(1)),
        store.store_update(update(2, kind=bad)),
        store.store_update(update(3)),
        return_exceptions=True,
    )
    assert (answers[0], answers[2]) == (Received.FRESH, Received.FRESH)
    assert isinstance(answers[1], Exception)
