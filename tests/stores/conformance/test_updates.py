"""Updates: each id once, each person's in order, one at a time, and never lost by whoever dies."""

import asyncio
from typing import Any

import pytest

from genlock.domain.poison import ISOLATED_FROM
from genlock.domain.update import Received, UpdateQueue, UpdateState
from genlock.stores.database import SqlDatabase
from genlock.stores.updates import REPEAT_SECONDS
from tests.stores.conftest import Raw
from tests.stores.lives import ME, OTHER, HandClock, update


async def stored(store: SqlDatabase, *numbers: int, lane: str = "ann", **changes: Any) -> None:
    for number in numbers:
        assert await store.store_update(update(number, lane, **changes)) is Received.FRESH


async def claim(store: SqlDatabase, limit: int = 100, *, urgent: bool = False) -> list[UpdateQueue]:
    return await store.claim_update_queues(limit, ME, bots=["bot"], urgent=urgent)


def number(lane: UpdateQueue | None) -> int:
    assert lane is not None
    assert lane.update is not None
    return lane.update.update_id


async def test_an_update_is_kept_once_however_often_it_comes(store: SqlDatabase) -> None:
    arrivals = await asyncio.gather(*(store.store_update(update(7)) for _ in range(5)))
    assert sorted(arrivals) == [Received.FRESH, *[Received.KNOWN] * 4]
    assert await store.store_update(update(7)) is Received.KNOWN
    assert await store.store_update(update(7, bot="another")) is Received.FRESH
    assert await store.violations(settled=False) == []


async def test_a_known_update_stays_known_when_it_is_done(store: SqlDatabase) -> None:
    await stored(store, 7)
    [lane] = await claim(store)
    await store.settle_update(lane, UpdateState.DONE, "", ME)
    assert await store.store_update(update(7)) is Received.KNOWN
    assert await claim(store) == []


async def test_an_update_comes_back_as_it_was_sent(store: SqlDatabase) -> None:
    body = '{"update_id":7,"message":{"text":"\\u0000 \\ud83d\\ude00 привет \\\\ \\""}}'
    await store.store_update(update(7, body=body, kind="message"))
    [lane] = await claim(store)
    assert lane.update is not None
    assert (lane.update.body, lane.update.kind, lane.update.bot) == (body, "message", "bot")
    assert (lane.update.attempts, lane.update.state) == (1, UpdateState.NEW)


async def test_a_persons_updates_are_worked_off_in_order_one_at_a_time(store: SqlDatabase) -> None:
    await stored(store, 1, 2, 3)
    [lane] = await claim(store)
    seen = [number(lane)]
    assert await claim(store) == [], "the lane is held"
    await stored(store, 4)
    assert await claim(store) == [], "and stays so when more comes"
    while (left := await store.settle_update(lane, UpdateState.DONE, "", ME)) and left.waiting:
        lane = left.lane
        seen.append(number(lane))
        assert await claim(store) == []
    assert seen == [1, 2, 3, 4]
    assert await store.violations(settled=True) == []


async def test_whoever_settles_the_last_one_gives_the_lane_back(store: SqlDatabase) -> None:
    await stored(store, 1)
    [lane] = await claim(store)
    left = await store.settle_update(lane, UpdateState.DONE, "", ME)
    assert left is not None
    assert left.waiting == 0
    await stored(store, 2)
    [again] = await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)
    assert (number(again), again.token) == (2, lane.token + 1)


async def test_one_who_floods_takes_one_place(store: SqlDatabase) -> None:
    await stored(store, *range(50), lane="flood")
    await stored(store, 100, lane="bob")
    await stored(store, 101, lane="cid")
    queues = await claim(store, limit=3)
    assert sorted(number(lane) for lane in queues) == [0, 100, 101]


async def test_the_longest_waiting_lane_is_first(store: SqlDatabase, clock: HandClock) -> None:
    for place, name in enumerate(("ann", "bob", "cid")):
        await stored(store, 10 - place, lane=name)
        clock.advance(1)
    assert [number(lane) for lane in await claim(store, limit=2)] in ([10, 9], [9, 10])
    assert [number(lane) for lane in await claim(store)] == [8]


async def test_urgent_lanes_are_claimed_apart(store: SqlDatabase) -> None:
    await stored(store, 1)
    await stored(store, 2, lane="ann/pre_checkout_query", urgent=True)
    assert [number(lane) for lane in await claim(store, urgent=True)] == [2]
    assert [number(lane) for lane in await claim(store)] == [1]


async def test_a_lane_that_was_often_in_hand_at_a_death_is_left_to_those_who_ask_for_it(
    store: SqlDatabase, clock: HandClock
) -> None:
    await stored(store, 1, 2)
    for crash_count, pause in enumerate((*[0.0] * (ISOLATED_FROM - 1), 1.0, 2.0, 4.0)):
        [lane] = await store.claim_update_queues(
            10, ME, bots=["bot"], urgent=False, poison=crash_count >= ISOLATED_FROM
        )
        assert (number(lane), lane.crash_count) == (1, crash_count)
        await store.release_leases(ME.owner, died=True)
        if pause:
            clock.advance(pause - 0.001)
            assert await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False, poison=True) == []
            clock.advance(0.001)

    await stored(store, 9, lane="bob")
    assert [number(lane) for lane in await claim(store)] == [9]


@pytest.mark.parametrize("survive", ["settled", "postponed", "stopped"])
async def test_a_holder_of_a_lane_that_lives_to_tell_starts_the_count_anew(store: SqlDatabase, survive: str) -> None:
    await stored(store, 1, 2)
    for _ in range(2):
        assert len(await claim(store)) == 1
        await store.release_leases(ME.owner, died=True)
    [lane] = await claim(store)
    assert lane.crash_count == 2
    if survive == "settled":
        left = await store.settle_update(lane, UpdateState.DONE, "", ME)
        assert left is not None
        assert left.lane.crash_count == 0
        return
    if survive == "postponed":
        await store.postpone_update(lane, 0.0, "")
    else:
        await store.release_leases(ME.owner)
    [lane] = await claim(store)
    assert lane.crash_count == (0 if survive == "postponed" else 2), "a clean stop says nothing of it"


async def test_a_lease_of_a_lane_that_ran_out_counts_as_a_death_of_its_holder(
    store: SqlDatabase, clock: HandClock
) -> None:
    await stored(store, 1)
    await claim(store)
    clock.advance(ME.seconds + 1)
    assert [lane.crash_count for lane in await claim(store)] == [0], "our own"
    clock.advance(ME.seconds + 1)
    assert [lane.crash_count for lane in await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)] == [1]


async def test_a_stale_holder_changes_nothing(store: SqlDatabase, clock: HandClock) -> None:
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
    left = await store.settle_update(new, UpdateState.DONE, "", OTHER)
    assert left is not None
    assert number(left.lane) == 2


async def test_what_waits_behind_an_update_is_the_next_of_its_own_lane(store: SqlDatabase) -> None:
    await stored(store, 1, 2, 3)
    await stored(store, 4, lane="bob")
    [ann, bob] = sorted(await claim(store), key=number)
    assert ann.update
    assert bob.update
    behind = await store.update_behind(ann.update.id)
    assert behind
    assert behind.update_id == 2
    assert await store.update_behind(bob.update.id) is None
    left = await store.settle_update(ann, UpdateState.DONE, "", ME)
    assert left
    assert left.lane.update
    behind = await store.update_behind(left.lane.update.id)
    assert behind
    assert behind.update_id == 3


async def test_settling_again_changes_nothing(store: SqlDatabase) -> None:
    """A commit whose answer was lost is made again."""
    await stored(store, 1, 2, 3)
    [lane] = await claim(store)
    assert await store.settle_update(lane, UpdateState.DONE, "", ME)
    assert await store.settle_update(lane, UpdateState.DONE, "", ME) is None
    assert await store.violations(settled=False) == []


async def test_a_renewed_lane_outlives_its_first_lease(store: SqlDatabase, clock: HandClock) -> None:
    await stored(store, 1)
    [lane] = await claim(store)
    clock.advance(ME.seconds - 1)
    assert await store.renew_update_queues([lane], ME) == {lane.id}
    clock.advance(ME.seconds - 1)
    assert await claim(store) == []


async def test_a_dead_instances_lanes_are_due_at_once(store: SqlDatabase) -> None:
    await stored(store, 1)
    await stored(store, 2, lane="bob")
    held = await claim(store)
    await store.release_update_queues("me", [held[0].id])
    [freed] = await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)
    assert freed.id == held[1].id
    await store.release_leases("me")
    [freed] = await store.claim_update_queues(10, OTHER, bots=["bot"], urgent=False)
    assert freed.id == held[0].id


async def test_a_failed_try_comes_back_later_and_holds_up_only_its_own_lane(
    store: SqlDatabase, clock: HandClock
) -> None:
    await stored(store, 1, 2)
    await stored(store, 3, lane="bob")
    first, _ = sorted(await claim(store), key=number)
    assert await store.postpone_update(first, 5.0, "it broke")
    assert not await store.postpone_update(first, 5.0, "again"), "once"
    await stored(store, 4)
    assert await claim(store) == []
    clock.advance(5)
    [lane] = await claim(store)
    assert lane.update is not None
    assert (number(lane), lane.update.attempts, lane.update.note) == (1, 2, "it broke")
    left = await store.settle_update(lane, UpdateState.DEAD, "it broke again", ME)
    assert left is not None
    assert left.lane.update is not None
    assert (number(left.lane), left.lane.update.attempts) == (2, 1)


async def test_a_try_that_ended_with_its_process_counts(store: SqlDatabase) -> None:
    """So that an update that kills whoever handles it is noticed."""
    await stored(store, 1)
    for attempt in (1, 2, 3):
        [lane] = await claim(store)
        assert lane.update is not None
        assert lane.update.attempts == attempt
        await store.release_leases("me")
    [lane] = await claim(store)
    await store.settle_update(lane, UpdateState.DONE, "", ME)
    await stored(store, 2)
    [lane] = await claim(store)
    assert lane.update is not None
    assert lane.update.attempts == 1


async def test_what_was_set_aside_can_be_seen_and_tried_again(store: SqlDatabase) -> None:
    await stored(store, 1)
    [lane] = await claim(store)
    await store.settle_update(lane, UpdateState.DEAD, "why", ME)
    [aside] = await store.updates(UpdateState.DEAD, 10)
    assert (aside.update_id, aside.note) == (1, "why")
    assert await store.retry_update(aside.id)
    assert not await store.retry_update(aside.id)
    assert [number(lane) for lane in await claim(store)] == [1]
    assert await store.violations(settled=False) == []


# presses


async def test_the_same_press_again_is_kept_and_not_worked_off(store: SqlDatabase) -> None:
    await stored(store, 1, dedup_key="5/77/menu")
    assert await store.store_update(update(2, dedup_key="5/77/menu")) is Received.REPEATED
    assert await store.store_update(update(2, dedup_key="5/77/menu")) is Received.KNOWN
    await stored(store, 3, dedup_key="5/77/other")
    await stored(store, 4, dedup_key="5/78/menu")
    await stored(store, 5, lane="bob", dedup_key="5/77/menu")
    [repeated] = await store.updates(UpdateState.REPEATED, 10)
    assert repeated.update_id == 2
    assert await store.violations(settled=False) == []


async def test_two_presses_that_arrive_together_are_one(store: SqlDatabase) -> None:
    arrivals = await asyncio.gather(*(store.store_update(update(n, dedup_key="p")) for n in (1, 2, 3)))
    assert arrivals == [Received.FRESH, Received.REPEATED, Received.REPEATED]


async def test_a_press_may_be_made_again_later(store: SqlDatabase, clock: HandClock) -> None:
    await stored(store, 1, dedup_key="p")
    [lane] = await claim(store)
    await store.settle_update(lane, UpdateState.DONE, "", ME)
    clock.advance(REPEAT_SECONDS - 0.1)
    assert await store.store_update(update(2, dedup_key="p")) is Received.REPEATED
    clock.advance(0.2)
    assert await store.store_update(update(3, dedup_key="p")) is Received.FRESH, "a repeated one does not count"


async def test_a_press_that_is_still_being_worked_on_was_made_once(store: SqlDatabase, clock: HandClock) -> None:
    await stored(store, 1, dedup_key="p")
    clock.advance(60)
    assert await store.store_update(update(2, dedup_key="p")) is Received.REPEATED


# races


async def test_nothing_is_overlooked_when_updates_come_while_others_are_settled(store: SqlDatabase, raw: Raw) -> None:
    """Stores and settles of the same lanes at the same time, from both sides, until all is done."""
    persons, each = 8, 30
    seen: dict[str, list[int]] = {str(person): [] for person in range(persons)}

    async def arrive(person: int) -> None:
        for place in range(each):
            await store.store_update(update(person * 1000 + place, str(person)))

    async def work(owner: str) -> None:
        while sum(map(len, seen.values())) < persons * each:
            for lane in await store.claim_update_queues(3, ME if owner == "me" else OTHER, bots=["bot"], urgent=False):
                held: UpdateQueue | None = lane
                while held is not None:
                    seen[str(number(held) // 1000)].append(number(held) % 1000)
                    left = await store.settle_update(held, UpdateState.DONE, "", ME)
                    assert left is not None
                    held = None
                    if left.waiting:
                        held = left.lane if left.lane.update else await store.next_update(left.lane)
                        assert held is not None
            await asyncio.sleep(0)

    async with asyncio.timeout(60):
        await asyncio.gather(*(arrive(person) for person in range(persons)), work("me"), work("other"))
    assert seen == {str(person): list(range(each)) for person in range(persons)}
    assert await store.violations(settled=True) == []
    assert await raw("SELECT count(*) FROM updates WHERE state <> 'done'") == [(0,)]


@pytest.mark.parametrize("bad", ["a NUL \0 in it"])
async def test_one_bad_update_does_not_keep_the_others_out(store: SqlDatabase, bad: str) -> None:
    answers = await asyncio.gather(
        store.store_update(update(1)),
        store.store_update(update(2, kind=bad)),
        store.store_update(update(3)),
        return_exceptions=True,
    )
    assert (answers[0], answers[2]) == (Received.FRESH, Received.FRESH)
    assert isinstance(answers[1], Exception)
