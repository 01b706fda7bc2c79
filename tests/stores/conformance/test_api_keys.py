"""Keys of API clients: stored once, found by their secret, limited per day in the commit that accepts an order."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from genlock.channels.api.address import ApiAddress
from genlock.domain.api_key import ApiKey, ApiScope
from genlock.domain.errors import InsufficientBalance, SpendLimitReached
from genlock.domain.job import Delivery, State
from genlock.ports import FinishDelivery, OrderState, Reschedule
from genlock.stores.database import SqlDatabase
from genlock.stores.parking import Parking
from tests.stores.builders import (
    ME,
    PRICE,
    SHOWN,
    ManualClock,
    account_with,
    delivered,
    end,
    ended,
    ensure_profile,
    finish,
    new_key,
    order,
    running,
    see,
)
from tests.stores.conftest import Raw

DAY = 86_400


async def limited_key(store: SqlDatabase, orders: int) -> ApiKey:
    """A key whose limit lets this many orders pass."""
    key, _ = await store.add_api_key(new_key(await account_with(store), spend_limit=PRICE * orders))
    return key


async def spent(store: SqlDatabase, key: ApiKey) -> int:
    found = await store.api_key(key.id)
    assert found is not None
    return found.spent_today


async def test_a_key_is_found_by_its_secret_with_everything_it_was_made_with(
    store: SqlDatabase, clock: ManualClock
) -> None:
    account_id = await account_with(store)
    wanted = new_key(account_id, scopes=frozenset({ApiScope.READ}), spend_limit=500)

    key, fresh = await store.add_api_key(wanted)

    assert fresh
    assert key == ApiKey(
        id=key.id,
        account_id=account_id,
        name="shop",
        scopes=frozenset({ApiScope.READ}),
        shown="glk_abcdef",
        spend_limit=500,
        spent_today=0,
        author="operator",
        created_at=clock.now(),
        last_used_at=None,
        revoked_at=None,
    )
    assert await store.api_key_by_secret("hash-1") == key
    assert await store.api_key_by_secret("hash-2") is None
    assert await store.api_key(key.id) == replace(key, last_used_at=clock.now())
    assert await store.api_key(key.id + 1) is None


async def test_a_request_handled_twice_makes_one_key(store: SqlDatabase) -> None:
    account_id = await account_with(store)

    made = await asyncio.gather(*(store.add_api_key(new_key(account_id, secret_hash=f"hash-{n}")) for n in range(4)))

    assert sorted(fresh for _, fresh in made) == [False, False, False, True]
    assert len({key.id for key, _ in made}) == 1
    assert len(await store.api_keys(account_id, before=None, limit=10)) == 1


async def test_the_last_use_is_written_at_most_once_a_minute(store: SqlDatabase, clock: ManualClock) -> None:
    key, _ = await store.add_api_key(new_key(await account_with(store)))
    first = clock.now()
    alone = partial(store.api_key_by_secret, "hash-1")
    with_job = partial(store.api_key_with_job, "hash-1", 1)
    with_order = partial(store.api_key_with_order, "hash-1", "key")
    uses: list[tuple[int, Callable[[], Awaitable[object]], datetime]] = [
        (0, alone, first),
        (59, with_job, first),
        (1, with_job, first + timedelta(seconds=60)),
        (60, with_order, first + timedelta(seconds=120)),
    ]
    for seconds, read, expected in uses:
        clock.advance(seconds)
        await read()
        found = await store.api_key(key.id)
        assert found is not None
        assert found.last_used_at == expected


async def test_many_secrets_are_looked_up_at_once_and_each_caller_gets_its_own_key(store: SqlDatabase) -> None:
    for number in range(5):
        await store.add_api_key(new_key(await account_with(store), number, name=f"client {number}"))

    found = await asyncio.gather(*(store.api_key_by_secret(f"hash-{n}") for n in (3, 0, 9, 3, 4)))

    assert [key and key.name for key in found] == ["client 3", "client 0", None, "client 3", "client 4"]


async def test_a_revoked_key_is_not_found_by_its_secret_and_stays_in_the_list(store: SqlDatabase) -> None:
    account_id, other = await account_with(store), await account_with(store)
    key, _ = await store.add_api_key(new_key(account_id))

    assert await store.revoke_api_key(key.id, other) is None
    assert await store.api_key_by_secret("hash-1") is not None
    revoked = await store.revoke_api_key(key.id, account_id)
    assert revoked is not None
    assert revoked.revoked_at is not None
    assert await store.revoke_api_key(key.id) is None
    assert await store.api_key_by_secret("hash-1") is None
    assert [listed_key.id for listed_key in await store.api_keys(account_id, before=None, limit=10)] == [key.id]


async def test_a_key_and_a_job_of_its_account_are_read_at_once(store: SqlDatabase) -> None:
    mine, other = [(await store.add_api_key(new_key(await account_with(store), n)))[0] for n in range(2)]
    job = (await store.accept_job(order(mine.account_id, api_key_id=mine.id), ME)).job
    chat = (await store.accept_job(order(mine.account_id), ME)).job
    foreign = (await store.accept_job(order(other.account_id, api_key_id=other.id), ME)).job
    wanted = [("hash-0", job.id), ("hash-0", chat.id), ("hash-0", foreign.id), ("hash-1", foreign.id), ("no", job.id)]

    found = await asyncio.gather(*(store.api_key_with_job(*arguments) for arguments in wanted))

    assert [pair and (pair[0].id, pair[1] and pair[1].id) for pair in found] == [
        (mine.id, job.id),
        (mine.id, None),
        (mine.id, None),
        (other.id, foreign.id),
        None,
    ]
    assert found[0] is not None
    assert found[0][0].last_used_at is None
    assert found[0][1] == await store.api_job(job.id)


async def test_a_key_and_the_state_of_an_order_are_read_at_once(store: SqlDatabase) -> None:
    keys = [(await store.add_api_key(new_key(await account_with(store, 5000), n)))[0] for n in range(2)]
    jobs = [(await store.accept_job(order(keys[0].account_id, api_key_id=keys[0].id), ME)).job for _ in range(3)]
    wanted = [("hash-0", jobs[0].request_key), ("hash-0", "new"), ("hash-1", jobs[0].request_key), ("no", "new")]

    found = await asyncio.gather(*(store.api_key_with_order(*arguments) for arguments in wanted))

    available = (await store.wallet(keys[0].account_id)).available
    assert [pair and (pair[0].id, pair[1]) for pair in found] == [
        (keys[0].id, OrderState(await store.api_job(jobs[0].id), available, 3)),
        (keys[0].id, OrderState(None, available, 3)),
        (keys[1].id, OrderState(None, 5000, 0)),
        None,
    ]


async def test_a_revoked_key_is_read_with_nothing(store: SqlDatabase) -> None:
    key, _ = await store.add_api_key(new_key(await account_with(store)))
    job = (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).job
    await ensure_profile(store, key.account_id, language="en", name="Ann", username="", referred_by=None)
    await store.set_ban(key.account_id, banned=True, reason="spam")
    both = [await store.api_key_with_job("hash-1", job.id), await store.api_key_with_order("hash-1", "new")]
    assert [pair and pair[0].banned for pair in both] == [True, True]

    await store.revoke_api_key(key.id)

    assert await store.api_key_with_job("hash-1", job.id) is None
    assert await store.api_key_with_order("hash-1", "new") is None


async def test_keys_are_listed_newest_first_of_one_account_or_of_all(store: SqlDatabase) -> None:
    accounts = [await account_with(store) for _ in range(2)]
    keys = [(await store.add_api_key(new_key(accounts[n % 2], n)))[0].id for n in range(5)]

    assert [key.id for key in await store.api_keys(None, before=None, limit=3)] == keys[:1:-1]
    assert [key.id for key in await store.api_keys(None, before=keys[2], limit=3)] == [keys[1], keys[0]]
    assert [key.id for key in await store.api_keys(accounts[1], before=None, limit=3)] == [keys[3], keys[1]]


async def test_a_key_of_a_banned_user_says_so(store: SqlDatabase) -> None:
    account_id = await account_with(store)
    await ensure_profile(store, account_id, language="en", name="Ann", username="", referred_by=None)
    await store.set_ban(account_id, banned=True, reason="spam")
    await store.add_api_key(new_key(account_id))

    found = await store.api_key_by_secret("hash-1")

    assert found is not None
    assert found.banned


async def test_orders_beyond_the_limit_of_the_day_are_refused_with_the_figures(store: SqlDatabase) -> None:
    key = await limited_key(store, orders=2)
    for _ in range(2):
        assert (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).created

    with pytest.raises(SpendLimitReached) as refused:
        await store.accept_job(order(key.account_id, api_key_id=key.id), ME)

    assert (refused.value.price, refused.value.spent, refused.value.limit) == (PRICE, 2 * PRICE, 2 * PRICE)
    assert (await store.wallet(key.account_id)).held == 2 * PRICE
    assert (await store.accept_job(order(key.account_id), ME)).created  # in the chat, without the key
    assert (await store.accept_job(order(key.account_id, api_key_id=key.id, price=0), ME)).created


async def test_a_repeated_order_counts_once_also_when_the_limit_is_reached(store: SqlDatabase) -> None:
    key = await limited_key(store, orders=1)
    wanted = order(key.account_id, api_key_id=key.id)

    repeated = [await store.accept_job(wanted, ME) for _ in range(3)]

    assert [accepted.created for accepted in repeated] == [True, False, False]
    assert await spent(store, key) == PRICE


async def test_the_limit_begins_anew_each_day(store: SqlDatabase, clock: ManualClock) -> None:
    key = await limited_key(store, orders=1)
    await store.accept_job(order(key.account_id, api_key_id=key.id), ME)
    assert await spent(store, key) == PRICE
    clock.advance(DAY)

    assert await spent(store, key) == 0
    assert (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).created
    assert await spent(store, key) == PRICE


async def test_an_order_that_is_not_charged_gives_its_price_back_to_the_limit(
    store: SqlDatabase, clock: ManualClock
) -> None:
    key = await limited_key(store, orders=1)
    failed = (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).job
    await end(store, failed, State.FAILED)
    assert await spent(store, key) == 0

    late = (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).job
    clock.advance(DAY)
    await store.accept_job(order(key.account_id, api_key_id=key.id), ME)
    await end(store, late, State.FAILED)  # of yesterday: today's limit does not change
    assert await spent(store, key) == PRICE


async def test_an_undeliverable_order_counts_again_when_it_is_paid_for_later(store: SqlDatabase) -> None:
    key = await limited_key(store, orders=1)
    job = (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).job
    won = await end(store, job, State.SUCCEEDED)
    assert won.job is not None
    finish = FinishDelivery(
        job_id=job.id, token=won.job.lease_token, delivery=Delivery.UNDELIVERABLE, parts=(), attention_reason="gone"
    )
    await store.finish_delivery(finish, ME)
    assert await spent(store, key) == 0

    assert await store.resend_paid_job(job.id, SHOWN, (await see(store, job)).lease_token)
    assert await spent(store, key) == PRICE


async def test_orders_at_the_same_time_do_not_pass_the_limit_together(store: SqlDatabase) -> None:
    key = await limited_key(store, orders=3)

    done = await asyncio.gather(
        *(store.accept_job(order(key.account_id, api_key_id=key.id), ME) for _ in range(8)), return_exceptions=True
    )

    assert sum(isinstance(outcome, SpendLimitReached) for outcome in done) == 5
    assert await spent(store, key) == 3 * PRICE
    assert (await store.wallet(key.account_id)).held == 3 * PRICE


async def test_an_empty_wallet_is_named_before_the_limit_is(store: SqlDatabase) -> None:
    key, _ = await store.add_api_key(new_key(await account_with(store, 10), spend_limit=PRICE * 5))

    with pytest.raises(InsufficientBalance):
        await store.accept_job(order(key.account_id, api_key_id=key.id), ME)


async def test_erasure_removes_the_notes_of_an_api_order_and_keeps_the_hash_of_its_request(store: SqlDatabase) -> None:
    key, _ = await store.add_api_key(new_key(await account_with(store)))
    address = str(ApiAddress(request_hash="hash", metadata={"name": "Ann"}))
    wanted = order(key.account_id, api_key_id=key.id, address=address, notice=False)
    job = (await store.accept_job(wanted, ME)).job
    won = await end(store, job, State.SUCCEEDED)
    assert won.job is not None
    await store.finish_delivery(
        FinishDelivery(job_id=job.id, token=won.job.lease_token, delivery=Delivery.DELIVERED, parts=SHOWN), ME
    )

    await store.erase_jobs(key.account_id, job.id, 100)

    erased = await see(store, job)
    assert erased.parts == ()
    assert ApiAddress.parse(erased.address) == ApiAddress(request_hash="hash")


async def test_jobs_of_api_keys_are_listed_watched_and_counted_without_those_of_the_chat(store: SqlDatabase) -> None:
    keys = [(await store.add_api_key(new_key(await account_with(store), n)))[0] for n in range(2)]
    chat = (await store.accept_job(order(keys[0].account_id), ME)).job
    made = [
        (await store.accept_job(order(key.account_id, api_key_id=key.id), ME)).job for key in (*keys, keys[0], keys[0])
    ]
    mine = [made[0].id, made[2].id, made[3].id]
    account = keys[0].account_id

    assert [job.id for job in await store.api_jobs(account, before=None, limit=2)] == mine[:0:-1]
    assert [job.id for job in await store.api_jobs(account, before=mine[1], limit=2)] == mine[:1]
    found = await store.api_jobs_by_id([chat.id, made[1].id, mine[0], 10**9])
    assert sorted(job.id for job in found) == sorted((made[1].id, mine[0]))
    after = await store.api_jobs_after({account: mine[0], keys[1].account_id: 0}, 10)
    assert sorted(job.id for job in after) == sorted((made[1].id, *mine[1:]))
    one, none, other = await asyncio.gather(*(store.api_job(number) for number in (mine[0], chat.id, made[1].id)))
    assert (one and one.id, none, other and other.id) == (mine[0], None, made[1].id)
    assert one == made[0]
    assert (await store.order_state(account, "key")).open_api_jobs == 3


async def test_a_job_of_an_api_key_is_without_end_until_its_result_is_delivered(store: SqlDatabase) -> None:
    account = await account_with(store)
    key, _ = await store.add_api_key(new_key(account, 0))
    waiting = await running(store, account_id=account, api_key_id=key.id)
    delivering = await ended(store, account_id=account, api_key_id=key.id)
    for state in (State.SUCCEEDED, State.FAILED):
        await delivered(store, state, account_id=account, api_key_id=key.id)
    await ended(store, account_id=account)
    await ended(store)

    found = await store.api_jobs_without_end(account, 10)

    assert list(found) == [delivering.id, waiting.id]
    assert found == await store.api_job_versions([delivering.id, waiting.id])
    assert list(await store.api_jobs_without_end(account, 1)) == [delivering.id]


async def test_a_job_that_waits_for_an_operator_or_is_sent_again_is_without_end(store: SqlDatabase, raw: Raw) -> None:
    account = await account_with(store, 10 * PRICE)
    key, _ = await store.add_api_key(new_key(account, 0))
    jobs = [await ended(store, account_id=account, api_key_id=key.id) for _ in range(5)]
    given_up, later, resent, paid_again, _ = jobs
    reason = Reschedule(job_id=given_up.id, token=given_up.lease_token, after=None, attention_reason="look")
    assert await store.reschedule(reason)
    assert await store.reschedule(replace(reason, job_id=later.id, token=later.lease_token, after=60.0))
    assert await finish(store, resent)
    assert await store.resend_job(resent.id, SHOWN)
    assert await finish(store, paid_again, Delivery.UNDELIVERABLE)
    assert await store.resend_paid_job(paid_again.id, SHOWN, token=(await see(store, paid_again)).lease_token)

    assert set(await store.api_jobs_without_end(account, 10)) == {job.id for job in jobs}
    await Parking(store.session).park("restored")
    assert set(await store.api_jobs_without_end(account, 10)) == {job.id for job in jobs}
    assert await raw("SELECT count(*) FROM jobs WHERE due_at IS NOT NULL") == [(0,)]


async def test_permits_are_taken_in_blocks_as_far_as_they_are_free(store: SqlDatabase, clock: ManualClock) -> None:
    taken = [await store.take_block("api:1", 3, 0.5, 8) for _ in range(4)]

    assert [(permits.granted, permits.remaining) for permits in taken] == [(3, 5), (3, 2), (2, 0), (0, 0)]
    assert taken[-1].wait == pytest.approx(0.5)
    clock.advance(1.0)
    later = await store.take_block("api:1", 3, 0.5, 8)
    assert (later.granted, later.remaining) == (2, 0)
    clock.advance(3600)
    full = await store.take_block("api:1", 3, 0.5, 8)
    assert (full.granted, full.remaining) == (3, 5)


async def test_permits_of_the_next_seconds_are_taken_where_asked_for(store: SqlDatabase, clock: ManualClock) -> None:
    taken = [await store.take_block("api:1", 8, 0.5, 8, ahead=2.0) for _ in range(3)]

    assert [(permits.granted, permits.remaining) for permits in taken] == [(8, 0), (4, 0), (0, 0)]
    assert taken[-1].wait == pytest.approx(2.5)
    assert (await store.take_block("api:1", 1, 0.5, 8)).granted == 0
    clock.advance(2.5)
    assert (await store.take_block("api:1", 1, 0.5, 8)).granted == 1


async def test_the_newest_job_of_numbered_request_keys_is_found_among_others_of_the_account(store: SqlDatabase) -> None:
    keys = [(await store.add_api_key(new_key(await account_with(store), n)))[0] for n in range(2)]
    mine, theirs = keys

    async def ordered(key: ApiKey, request_key: str, **changes: Any) -> int:
        new = replace(order(key.account_id, api_key_id=key.id), request_key=request_key, **changes)
        return (await store.accept_job(new, ME)).job.id

    low, high = "openai:1:00ff:000000000000", "openai:1:00ff:999999999999"
    assert await store.newest_api_job_between(mine.account_id, low, high) is None
    wanted = [await ordered(mine, f"openai:1:00ff:{number:012}") for number in (9, 10, 2)]
    await ordered(mine, "openai:1:00fe:000000000099")
    await ordered(mine, "openai:1:01ff:000000000099")
    await ordered(mine, "api:openai:1:00ff:000000000099")
    await ordered(mine, "openai:1:00ff:000000000098", api_key_id=None)
    await ordered(theirs, "openai:1:00ff:000000000099")

    found = await store.newest_api_job_between(mine.account_id, low, high)
    assert found is not None
    assert (found.id, found.request_key) == (wanted[1], "openai:1:00ff:000000000010")


async def test_orders_of_two_keys_at_the_same_time_keep_the_limit_of_each(store: SqlDatabase) -> None:
    account_id = await account_with(store, PRICE * 100)
    limited, _ = await store.add_api_key(new_key(account_id, 1, spend_limit=PRICE * 3))
    free, _ = await store.add_api_key(new_key(account_id, 2))
    wanted = [order(account_id, api_key_id=key.id) for key in (limited, free) for _ in range(6)]

    answers = await asyncio.gather(*(store.accept_job(new_order, ME) for new_order in wanted), return_exceptions=True)

    assert [isinstance(answer, SpendLimitReached) for answer in answers[:6]].count(True) == 3
    assert not any(isinstance(answer, Exception) for answer in answers[6:])
    spent = [key.spent_today for number in (limited.id, free.id) if (key := await store.api_key(number))]
    assert spent == [PRICE * 3, PRICE * 6]
    assert (await store.wallet(account_id)).held == PRICE * 9
