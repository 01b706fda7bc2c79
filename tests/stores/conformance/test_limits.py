"""Rate limits: a permit now or not at all, shared blocks, and pruning of unused rows."""

import asyncio

import pytest

from genlock.ports import Role, SharedLimit
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock


async def take(
    store: SqlDatabase, *keys: str, interval: float = 1.0, burst: int = 2, spare: float = 0.0
) -> list[float]:
    return await store.take_permits(keys, interval, burst, spare)


async def test_a_burst_is_free_at_once_and_later_permits_have_a_wait(store: SqlDatabase, clock: ManualClock) -> None:
    assert [await take(store, "a") for _ in range(2)] == [[0.0], [0.0]]
    assert await take(store, "a") == pytest.approx([1.0])
    clock.advance(0.4)
    assert await take(store, "a") == pytest.approx([0.6])
    clock.advance(0.6)
    assert await take(store, "a") == [0.0]


async def test_many_keys_are_taken_in_one_statement_each_for_itself(store: SqlDatabase) -> None:
    await take(store, "b", burst=1)
    assert await take(store, "a", "b", "c", burst=1) == pytest.approx([0.0, 1.0, 0.0])


async def test_a_denied_permit_costs_nothing(store: SqlDatabase, clock: ManualClock) -> None:
    await take(store, "a", burst=1)
    for _ in range(5):
        assert await take(store, "a", burst=1) == pytest.approx([1.0])
    clock.advance(1.0)
    assert await take(store, "a", burst=1) == [0.0]


async def test_spare_permits_are_left_to_other_callers(store: SqlDatabase, clock: ManualClock) -> None:
    assert await take(store, "a", spare=0.9) == [0.0]
    assert await take(store, "a", spare=0.9) == pytest.approx([0.9])
    assert await take(store, "a") == [0.0]
    clock.advance(1.9)
    assert await take(store, "a", spare=0.9) == [0.0]


async def test_a_long_pause_earns_no_more_than_the_burst(store: SqlDatabase, clock: ManualClock) -> None:
    await take(store, "a", burst=3)
    clock.advance(100_000)
    assert [await take(store, "a", burst=3) for _ in range(4)] == [[0.0], [0.0], [0.0], pytest.approx([1.0])]


async def test_a_blocked_limit_gives_no_permit_until_the_block_ends(store: SqlDatabase, clock: ManualClock) -> None:
    await store.block_limit("a", 30.0)
    await store.block_limit("a", 5.0)
    assert await take(store, "a") == pytest.approx([30.0])
    assert await store.reserve_permits("a", 1, 1.0, 1, 2.0) == []
    clock.advance(30)
    assert await take(store, "a") == [0.0]
    assert await take(store, "a") == pytest.approx([1.0]), "after a block there is no burst"


async def test_concurrent_callers_get_only_as_many_permits_as_there_are(store: SqlDatabase) -> None:
    given = await asyncio.gather(*(take(store, "a", "b", burst=3) for _ in range(20)))
    assert [sum(waits[place] == 0.0 for waits in given) for place in (0, 1)] == [3, 3]


async def test_unused_limits_are_pruned_by_the_active_instance(store: SqlDatabase, clock: ManualClock) -> None:
    role = await store.take_role("active", "me", 3.0)
    await take(store, "old")
    await store.reserve_permits("create", 1, 1.0, 1, 1.0)
    clock.advance(3600)
    await take(store, "new")
    await store.block_limit("blocked", 100.0)

    assert await store.prune_limits(600.0, Role(holder="me", epoch=role.epoch + 1)) == 0
    assert await store.prune_limits(600.0, role) == 2
    assert await store.prune_limits(600.0, role) == 0
    assert await take(store, "blocked") == pytest.approx([100.0])
    assert await store.reserve_permits("create", 2, 1.0, 1, 1.0) == pytest.approx([0.0, 1.0]), (
        "a pruned limit starts again"
    )


SHARED = SharedLimit(key="bot", interval=0.1, burst=1, horizon=0.25)


async def take_calls(store: SqlDatabase, *keys: str) -> tuple[list[float | None], list[float]]:
    waits, bot_waits = await store.take_call_permits(keys, 1.0, 1, shared=SHARED)
    return [wait if wait is None else round(wait, 3) for wait in waits], [round(wait, 3) for wait in bot_waits]


async def test_a_call_takes_a_permit_of_its_chat_and_of_its_bot(store: SqlDatabase, clock: ManualClock) -> None:
    assert await take_calls(store, "a", "b") == ([0.0, 0.0], [0.0, 0.1])
    assert await take_calls(store, "a", "c") == ([1.0, 0.0], [0.2])
    clock.advance(1.0)
    assert await take_calls(store, "a") == ([0.0], [0.0])


async def test_a_chat_keeps_its_permit_while_the_bot_has_none(store: SqlDatabase, clock: ManualClock) -> None:
    assert await take_calls(store, "a", "b", "c", "d") == ([0.0, 0.0, 0.0, None], [0.0, 0.1, 0.2])
    assert await take_calls(store, "d") == ([None], [])
    clock.advance(0.1)
    assert await take_calls(store, "d") == ([0.0], [0.2])
