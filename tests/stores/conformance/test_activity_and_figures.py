"""What the bot counts for limits and for its operators, on both databases."""

from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with, delivered, order, profiled


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


async def test_a_payment_that_is_not_in_the_ledger_is_noticed(store: SqlDatabase) -> None:
    await store.add_payment("c1", 1, 100, 120_000)

    assert [found.subject for found in await store.violations(settled=False)] == ["c1"]


async def test_figures_count_only_the_given_period(store: SqlDatabase, clock: ManualClock) -> None:
    await delivered(store)
    clock.advance(100_000)
    job = await delivered(store)
    await profiled(store, "1")
    await store.add_payment("c", job.account_id, 50, 60_000)
    today = await store.figures("bot", 86_400)

    assert (today.orders, today.delivered, today.failed, today.users) == (1, 1, 0, 1)
    assert (today.revenue, today.newcomers, today.stars, today.topups) == (job.price, 1, 50, 60_000)
    assert (await store.figures("bot", 10**6)).orders == 2
