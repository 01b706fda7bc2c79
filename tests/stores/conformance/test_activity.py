"""What the bot counts for limits, on both databases."""

import pytest

from genlock.domain.errors import AccountNotFound
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with, order


async def test_recent_activity_of_an_account_is_counted(store: SqlDatabase, clock: ManualClock) -> None:
    account = await account_with(store, 10_000)
    clock.advance(10)
    await store.accept_job(order(account, request_key="a", price=0), None)
    clock.advance(50)
    await store.accept_job(order(account, request_key="b", price=0), None)
    done = await store.activity(account)

    assert (done.running, done.minute, done.hour) == (2, 2, 2)
    assert (done.minute_wait, done.hour_wait) == (10.0, 3550.0)
    clock.advance(30)
    later = await store.activity(account)
    assert (later.minute, later.minute_wait) == (1, 30.0)
    clock.advance(7200)
    assert (await store.activity(account)).running == 2
    unknown = await store.activity(9999)
    assert (unknown.running, unknown.hour, unknown.hour_wait) == (0, 0, 0.0)


async def test_the_state_of_an_order_is_read_together_with_the_activity(store: SqlDatabase) -> None:
    account = await account_with(store, 10_000)
    job = (await store.accept_job(order(account, request_key="a", price=0), None)).job

    for key, found in (("a", job.id), ("b", None)):
        state = await store.order_state(account, key, with_activity=True)
        assert state._replace(activity=None) == await store.order_state(account, key)
        assert state.activity == await store.activity(account)
        assert (state.job.id if state.job else None) == found
    with pytest.raises(AccountNotFound):
        await store.order_state(9999, "a", with_activity=True)


async def test_a_payment_that_is_not_in_the_ledger_is_noticed(store: SqlDatabase) -> None:
    await store.add_payment("c1", 1, 100, 120_000)

    assert [found.subject for found in await store.violations(settled=False)] == ["c1"]
