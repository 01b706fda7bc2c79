"""The limit of an API key's day, around midnight."""

import pytest

from genlock.domain.errors import SpendLimitReached
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, PRICE, ManualClock, account_with, new_key, order


async def test_an_order_that_waited_over_midnight_counts_for_the_new_day(
    store: SqlDatabase, clock: ManualClock
) -> None:
    """A statement has the time at which it began; meanwhile, orders of the new day may be written before it."""
    key, _ = await store.add_api_key(new_key(await account_with(store), spend_limit=2 * PRICE))
    assert (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).created

    clock.advance(-1.0)
    assert (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).created
    with pytest.raises(SpendLimitReached):
        await store.accept_job(order(key.account_id, api_key_id=key.id), ME)

    clock.advance(2.0)
    with pytest.raises(SpendLimitReached):
        await store.accept_job(order(key.account_id, api_key_id=key.id), ME)
    found = await store.api_key(key.id)
    assert found is not None
    assert found.spent_today == 2 * PRICE
