"""Lists of users for operators."""

from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo
from genlock.domain.user import UserFilter
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with, ensure_profile


async def user(store: SqlDatabase, name: str, *, invited_by: int | None = None) -> int:
    account_id = await account_with(store, 0)
    await ensure_profile(store, account_id, language="ru", name=name, username=name.lower(), referred_by=invited_by)
    return account_id


async def ids(store: SqlDatabase, which: UserFilter, before: int | None = None, limit: int = 10) -> list[int]:
    return [listed_user.account_id for listed_user in await store.users(which, before=before, limit=limit)]


async def test_users_are_listed_newest_first_in_pages(store: SqlDatabase) -> None:
    one, two, three = [await user(store, name) for name in ("One", "Two", "Three")]

    assert await ids(store, UserFilter.ALL, limit=2) == [three, two]
    assert await ids(store, UserFilter.ALL, before=two) == [one]
    assert await ids(store, UserFilter.ALL, before=2**70) == [three, two, one]


async def test_each_filter_selects_its_users(store: SqlDatabase) -> None:
    _, banned, owing, paying = [await user(store, name) for name in ("Plain", "Banned", "Owing", "Paying")]
    await store.set_ban(banned, banned=True, reason="spam")
    for account_id, charge in ((owing, "c1"), (paying, "c2"), (paying, "c3")):
        await store.transfer(account_id, EntryKind.TOPUP, 500, f"stars:{charge}")
        await store.add_payment(charge, account_id, 5, 500)
    await store.transfer(owing, EntryKind.DEBIT, 500, "spent")
    await store.book_external_refund("c1", "outside")

    assert await ids(store, UserFilter.BANNED) == [banned]
    assert await ids(store, UserFilter.OWING) == [owing]
    assert await ids(store, UserFilter.PAYING) == [paying, owing]
    assert await ids(store, UserFilter.PAYING, limit=1) == [paying]
    assert await ids(store, UserFilter.PAYING, before=paying) == [owing]
    assert await ids(store, UserFilter.PAYING, before=owing) == []


async def test_a_user_has_balances_and_profile(store: SqlDatabase, clock: ManualClock) -> None:
    inviter = await user(store, "Inviter")
    account_id = await user(store, "Ann", invited_by=inviter)
    await store.transfer(account_id, EntryKind.GRANT, 700, "gift")
    await store.set_account_address(account_id, "there")
    await store.set_ban(account_id, banned=True, reason="spam")
    await store.set_blocked(account_id, blocked=True)

    [found] = await store.users_by_id([account_id])

    assert (found.name, found.username, found.language, found.referred_by) == ("Ann", "ann", "ru", inviter)
    assert (found.available, found.held, found.debt, found.has_address) == (700, 0, 0, True)
    assert found.ban_reason == "spam"
    assert found.banned_at == found.blocked_at == found.seen_at == found.since == clock.now()
    assert found.has_profile


async def test_an_account_without_a_profile_is_a_user_too(store: SqlDatabase) -> None:
    account_id = await account_with(store, 0)

    [found] = await store.users(UserFilter.ALL, before=None, limit=5)

    assert (found.account_id, found.name, found.has_profile, found.has_address) == (account_id, "", False, False)
    assert await store.users_by_id([10**9, account_id]) == [found]
    assert await store.users_by_id([]) == []


async def test_invited_users_are_listed_newest_first(store: SqlDatabase) -> None:
    inviter = await user(store, "Inviter")
    first, second = [await user(store, name, invited_by=inviter) for name in ("First", "Second")]
    await user(store, "Other")

    found = await store.invited_users(inviter, before=None, limit=5)
    assert [listed_user.account_id for listed_user in found] == [second, first]
    assert [listed_user.account_id for listed_user in await store.invited_users(inviter, before=second, limit=5)] == [
        first
    ]


async def test_the_promo_codes_that_a_user_has_used(store: SqlDatabase, clock: ManualClock) -> None:
    account_id = await user(store, "Ann")
    for code, amount, runs in (("OLD", 100, 0), ("NEW", 0, 3)):
        promo = Promo(code=code, amount=amount, runs=runs, uses_max=None, per_account=1, until=None)
        await store.create_promo(promo, lasting=None, author="op")
        await store.use_promo(code, account_id, f"key-{code}")
        clock.advance(1)

    found = await store.used_promos(account_id, 5)
    assert [(used_promo.code, used_promo.amount, used_promo.runs, used_promo.author) for used_promo in found] == [
        ("NEW", 0, 3, "op"),
        ("OLD", 100, 0, "op"),
    ]
    assert [used_promo.code for used_promo in await store.used_promos(account_id, 1)] == ["NEW"]
