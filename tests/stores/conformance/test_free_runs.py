"""Free runs, promo codes and rewards for invitations, on both databases, also under concurrent calls."""

import asyncio
from datetime import timedelta

from genlock.domain.job import Actor, State, Verdict
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo, PromoVerdict
from genlock.stores.database import SqlDatabase
from genlock.stores.migrate import shipped
from genlock.stores.sqlite import SqliteStore
from tests.stores.builders import (
    ManualClock,
    account_with,
    delivered,
    end,
    ensure_profile,
    order,
    profiled,
    queued,
    running,
    submitting,
)
from tests.stores.conftest import Raw

# free runs


async def test_a_free_run_is_taken_once_per_key_and_is_new_each_day(store: SqlDatabase, clock: ManualClock) -> None:
    account = await profiled(store, "1")

    assert [await store.take_free_run(account, key, 2) for key in ("a", "a", "b", "c")] == [True, True, True, False]
    assert (await store.free_runs(account, 2)).left == 0
    assert (await store.free_runs(account, 2, ignore_key="a")).left == 1
    clock.advance(timedelta(days=1).total_seconds())
    assert (await store.free_runs(account, 2)).today == 2
    assert await store.take_free_run(account, "d", 2)


async def test_the_free_run_of_an_order_that_was_not_accepted_is_returned(store: SqlDatabase) -> None:
    account = await profiled(store, "1")
    await store.create_promo(promo(code="RUNS", amount=0, runs=1), lasting=None, author="op")
    await store.use_promo("RUNS", account, "u")
    assert [await store.take_free_run(account, key, 1) for key in ("day", "gift", "none")] == [True, True, False]

    for _ in range(2):  # the second one returns nothing
        for key in ("day", "gift", "none"):
            await store.return_free_run(account, key)

    left = await store.free_runs(account, 1)
    assert (left.today, left.gifts) == (1, 1)
    await store.take_free_run(account, "day", 1)
    await store.accept_job(order(account, request_key="day", price=0), None)
    await store.return_free_run(account, "day")
    assert (await store.free_runs(account, 1)).today == 0, "an order has it"


async def test_a_free_run_whose_job_failed_does_not_count(store: SqlDatabase) -> None:
    account = await account_with(store, 0)
    await ensure_profile(store, account, language="en", name="A", username="", referred_by=None)
    assert await store.take_free_run(account, "a", 1)
    job = (await store.accept_job(order(account, request_key="a", price=0), None)).job
    assert await store.job_by_request_key(account, "b") is None
    assert (found := await store.job_by_request_key(account, "a")) is not None
    assert found.id == job.id
    assert not await store.take_free_run(account, "b", 1)
    await end(store, job, State.FAILED)

    assert (await store.free_runs(account, 1)).left == 1
    assert await store.take_free_run(account, "b", 1)


async def test_a_free_run_cancelled_after_its_submit_counts(store: SqlDatabase, clock: ManualClock) -> None:
    account = await account_with(store, 0)
    await ensure_profile(store, account, language="en", name="A", username="", referred_by=None)
    await store.create_promo(promo(code="RUNS", amount=0, runs=1), lasting=None, author="op")
    await store.use_promo("RUNS", account, "u")
    assert await store.take_free_run(account, "early", 1)
    early = await queued(store, account_id=account, request_key="early", price=0)
    await end(store, early, State.CANCELLED, cancelled_by=Actor.USER)
    assert (await store.free_runs(account, 1)).left == 2
    assert await store.late_cancels(account) == 0
    for number in (0, 1):
        assert await store.take_free_run(account, f"k{number}", 1)
        job = await submitting(store, account_id=account, request_key=f"k{number}", price=0)
        if number:
            assert await store.mark_submitted(job.id, job.lease_token, "task", 5.0)
        await end(store, job, State.CANCELLED, cancelled_by=Actor.USER)
        assert (await store.free_runs(account, 1)).left == 1 - number
        assert await store.late_cancels(account) == 1 + number

    assert not await store.take_free_run(account, "c", 1)
    clock.advance(timedelta(days=1).total_seconds() + 1)
    assert await store.late_cancels(account) == 0
    assert (await store.free_runs(account, 1)).left == 1


async def test_concurrent_orders_get_the_last_free_run_once(store: SqlDatabase) -> None:
    account = await profiled(store, "1")
    taken = await asyncio.gather(*(store.take_free_run(account, f"k{n}", 3) for n in range(20)))

    assert sum(taken) == 3


# promo codes


def promo(**more: object) -> Promo:
    return Promo(**{"code": "CAT", "amount": 5000, "runs": 0, "uses_max": None, "per_account": 1, "until": None} | more)  # type: ignore[arg-type]


async def test_a_code_is_used_within_its_limits(store: SqlDatabase) -> None:
    assert await store.create_promo(promo(uses_max=2), lasting=60.0, author="op")
    assert not await store.create_promo(promo(), lasting=None, author="op")

    assert (await store.use_promo("DOG", 1, "k")).verdict is PromoVerdict.UNKNOWN
    first = await store.use_promo("CAT", 1, "k1")
    assert (first.verdict, first.number, first.amount) == (PromoVerdict.GIVEN, 1, 5000)
    assert await store.use_promo("CAT", 1, "k1") == first
    assert [await store.is_promo_used(*use) for use in ((1, "k1"), (1, "k"), (2, "k1"))] == [True, False, False]
    assert (await store.use_promo("CAT", 1, "k2")).verdict is PromoVerdict.USED
    assert (await store.use_promo("CAT", 2, "k3")).verdict is PromoVerdict.GIVEN
    assert (await store.use_promo("CAT", 3, "k4")).verdict is PromoVerdict.OVER
    [listed] = await store.promos(10)
    assert (listed.uses, listed.closed) == (2, False)


async def test_a_code_ends_at_its_date_or_when_an_operator_closes_it(store: SqlDatabase, clock: ManualClock) -> None:
    await store.create_promo(promo(code="SHORT"), lasting=60.0, author="op")
    await store.create_promo(promo(code="SHUT"), lasting=None, author="op")
    assert await store.close_promo("SHUT")
    assert not await store.close_promo("SHUT")
    clock.advance(61)

    assert (await store.use_promo("SHORT", 1, "a")).verdict is PromoVerdict.OVER
    assert (await store.use_promo("SHUT", 1, "b")).verdict is PromoVerdict.OVER


async def test_free_runs_of_a_code_add_to_those_of_the_day(store: SqlDatabase) -> None:
    account = await profiled(store, "1")
    await store.create_promo(promo(code="RUNS", amount=0, runs=2), lasting=None, author="op")
    assert (await store.use_promo("RUNS", account, "u")).runs == 2

    runs = await store.free_runs(account, 1)
    assert (runs.today, runs.gifts, runs.left) == (1, 2, 3)
    assert [await store.take_free_run(account, f"k{n}", 1) for n in range(4)] == [True, True, True, False]
    assert (await store.free_runs(account, 1)).left == 0


async def gifted(store: SqlDatabase, runs: int) -> int:
    """An account with free runs from a code, and none of the day."""
    account = await profiled(store, "gifted")
    await store.create_promo(promo(code="RUNS", amount=0, runs=runs), lasting=None, author="op")
    await store.use_promo("RUNS", account, "u")
    return account


async def test_a_run_of_a_code_comes_back_when_its_job_fails(store: SqlDatabase) -> None:
    account = await gifted(store, 3)
    for key, state in (("a", State.FAILED), ("b", State.EXPIRED), ("c", State.SUCCEEDED)):
        assert await store.take_free_run(account, key, 0)
        assert (await store.free_runs(account, 0)).gifts == 2
        assert (await store.free_runs(account, 0, ignore_key=key)).gifts == 3
        job = await submitting(store, account_id=account, request_key=key, price=0)
        await end(store, job, state, lease=None)
        left = 2 if state is State.SUCCEEDED else 3
        assert (await store.free_runs(account, 0)).gifts == left
        assert (await store.free_runs(account, 0, ignore_key=key)).gifts == 3
        assert await store.violations(settled=False) == []

    expired = await store.job_by_request_key(account, "b")
    assert expired is not None
    assert (await end(store, expired, State.SUCCEEDED)).verdict is Verdict.LATE
    assert (await store.free_runs(account, 0)).gifts == 2, "a late result is free"
    assert await store.violations(settled=False) == []


async def test_a_run_that_is_taken_for_an_order_which_has_failed_does_not_count(store: SqlDatabase) -> None:
    """A repeated press may take the run after the first one's order was accepted as a paid one and has failed."""
    account = await gifted(store, 1)
    await end(store, await submitting(store, account_id=account, request_key="k", price=0), State.FAILED)

    assert await store.take_free_run(account, "k", 0)

    assert (await store.free_runs(account, 0)).gifts == 1
    assert await store.violations(settled=False) == []


async def test_the_migration_counts_the_runs_of_codes_that_were_used_before(store: SqlDatabase, raw: Raw) -> None:
    account = await gifted(store, 9)
    for number, state in enumerate((State.FAILED, State.SUCCEEDED, State.CANCELLED, State.EXPIRED)):
        assert await store.take_free_run(account, f"k{number}", 0)
        job = await submitting(store, account_id=account, request_key=f"k{number}", price=0)
        await end(store, job, state)
    assert await store.take_free_run(account, "not ordered yet", 0)
    assert (await store.free_runs(account, 0)).gifts == 6
    await raw("UPDATE accounts SET gift_runs_used = 0")
    assert len(await store.violations(settled=False)) == 1

    dialect = "sqlite" if isinstance(store, SqliteStore) else "postgres"
    [migration] = [candidate.text for candidate in shipped(dialect) if candidate.name == "used_gifts_and_quarters"]
    begin = migration.rindex("UPDATE accounts SET gift_runs_used = g.used")
    await raw(migration[begin : migration.index(";", begin)])

    assert (await store.free_runs(account, 0)).gifts == 6
    assert await store.violations(settled=False) == []


async def test_concurrent_users_cannot_exceed_the_uses_of_a_code(store: SqlDatabase) -> None:
    await store.create_promo(promo(uses_max=7), lasting=None, author="op")
    uses = await asyncio.gather(*(store.use_promo("CAT", account, "k") for account in range(1, 41)))

    assert [use.verdict for use in uses].count(PromoVerdict.GIVEN) == 7
    assert (await store.promos(1))[0].uses == 7


async def test_one_account_cannot_exceed_its_uses_of_a_code(store: SqlDatabase) -> None:
    await store.create_promo(promo(per_account=2), lasting=None, author="op")
    uses = await asyncio.gather(*(store.use_promo("CAT", 1, f"k{n}") for n in range(20)))

    assert sorted(use.number for use in uses if use.verdict is PromoVerdict.GIVEN) == [1, 2]


# invitations


async def test_an_invitation_is_due_after_the_first_result_bought_with_money(store: SqlDatabase) -> None:
    host = await profiled(store, "1")
    job = await delivered(store)
    guest = job.account_id
    await ensure_profile(store, guest, language="en", name="G", username="g", referred_by=host)
    waiting = await running(store, "task")
    await ensure_profile(store, waiting.account_id, language="en", name="W", username="w", referred_by=host)

    assert await store.rewards_due("bot", 0, 10) == ([], 0)  # all of it may have been gifts
    for charge, account in (("c1", guest), ("c2", waiting.account_id)):
        assert await store.add_payment(charge, account, 1, 1000)
    assert await store.rewards_due("bot", 0, 10) == ([(guest, host)], 0)
    assert await store.rewards_due("bot", 0, 1) == ([(guest, host)], guest)  # continues after the guest
    assert await store.rewards_due("bot", guest, 1) == ([], waiting.account_id)
    assert await store.transfer(guest, EntryKind.GRANT, 1000, "enough for a refund")
    assert await store.begin_refund("c1", "op")
    assert await store.rewards_due("bot", 0, 10) == ([], 0)
    assert await store.undo_refund("c1", 1, "refused")
    assert await store.mark_rewarded(guest)
    assert not await store.mark_rewarded(guest)
    assert await store.rewards_due("bot", 0, 10) == ([], 0)
