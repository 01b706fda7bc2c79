"""A button that is pressed again is handled once."""

import asyncio

import pytest

from genlock.domain.update import Received, UpdateState
from genlock.stores.database import SqlDatabase
from genlock.stores.updates import REPEAT_SECONDS
from tests.stores.builders import ME, ManualClock, update
from tests.stores.conformance.update_queues import claim, stored


async def test_a_repeated_press_is_stored_and_not_handled(store: SqlDatabase) -> None:
    await stored(store, 1, dedup_key="5/77/menu")
    assert await store.store_update(update(2, dedup_key="5/77/menu")) is Received.REPEATED
    assert await store.store_update(update(2, dedup_key="5/77/menu")) is Received.KNOWN
    await stored(store, 3, dedup_key="5/77/other")
    await stored(store, 4, dedup_key="5/78/menu")
    await stored(store, 5, queue="bob", dedup_key="5/77/menu")
    [repeated] = await store.updates(UpdateState.REPEATED, 10)
    assert repeated.update_id == 2
    assert await store.violations(settled=False) == []


async def test_two_presses_that_arrive_together_are_handled_once(store: SqlDatabase) -> None:
    arrivals = await asyncio.gather(*(store.store_update(update(n, dedup_key="p")) for n in (1, 2, 3)))
    assert arrivals == [Received.FRESH, Received.REPEATED, Received.REPEATED]


async def test_a_button_may_be_pressed_again_later(store: SqlDatabase, clock: ManualClock) -> None:
    await stored(store, 1, dedup_key="p")
    [queue] = await claim(store)
    await store.settle_update(queue, UpdateState.DONE, "", ME)
    clock.advance(REPEAT_SECONDS - 0.1)
    assert await store.store_update(update(2, dedup_key="p")) is Received.REPEATED
    clock.advance(0.2)
    assert await store.store_update(update(3, dedup_key="p")) is Received.FRESH, "a repeated one does not count"


@pytest.mark.parametrize("between", ["q", None], ids=["another button", "a message"])
@pytest.mark.parametrize("settled", [True, False])
async def test_a_press_after_another_update_of_the_user_is_no_repeat(
    store: SqlDatabase, between: str | None, *, settled: bool
) -> None:
    for number_, key in enumerate(("p", between, "p"), start=1):
        await stored(store, number_, dedup_key=key)
        if settled:
            [queue] = await claim(store)
            await store.settle_update(queue, UpdateState.DONE, "", ME)
    await stored(store, 4, queue="bob", dedup_key="q")
    assert await store.store_update(update(5, dedup_key="p")) is Received.REPEATED, "others do not count"
    assert await store.violations(settled=False) == []


async def test_presses_that_arrive_together_repeat_only_the_one_before(store: SqlDatabase) -> None:
    await stored(store, 1, dedup_key="p")
    keys = ("p", "q", "p", "p", None, "p", "q")
    arrivals = await asyncio.gather(
        *(store.store_update(update(n, dedup_key=key)) for n, key in enumerate(keys, start=2))
    )
    fresh, repeated = Received.FRESH, Received.REPEATED
    assert arrivals == [repeated, fresh, fresh, repeated, fresh, fresh, fresh]


async def test_a_second_press_is_repeated_while_the_first_is_still_handled(
    store: SqlDatabase, clock: ManualClock
) -> None:
    await stored(store, 1, dedup_key="p")
    clock.advance(60)
    assert await store.store_update(update(2, dedup_key="p")) is Received.REPEATED
