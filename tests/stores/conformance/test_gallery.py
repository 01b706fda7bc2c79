"""The gallery of results, favourites and last settings, on both databases."""

import asyncio
from typing import Any

import pytest

from genlock.domain.errors import AccountNotFound
from genlock.domain.job import Delivery, State
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with, delivered, ended, finish, see


async def result(store: SqlDatabase, account: int, model: str = "painter", **changes: Any) -> int:
    return (await delivered(store, account_id=account, model=model, **changes)).id


async def test_the_gallery_is_walked_in_both_directions_and_by_model(store: SqlDatabase) -> None:
    account, other = await account_with(store, 10_000), await account_with(store, 10_000)
    first = await result(store, account)
    song = await result(store, account, "singer")
    await result(store, other)
    last = await result(store, account)

    async def before(models: list[str], job: int | None = None) -> int | None:
        found = await store.result_before(account, models, job)
        return found.id if found else None

    async def after(models: list[str], job: int) -> int | None:
        found = await store.result_after(account, models, job)
        return found.id if found else None

    both = ["painter", "singer"]
    assert [await before(both), await before(both, last), await before(both, song)] == [last, song, first]
    assert await before(both, first) is None
    assert [await after(both, first), await after(both, song)] == [song, last]
    assert await after(both, last) is None
    assert [await before(["painter"], last), await after(["painter"], first)] == [first, last]
    assert [await before(["singer"]), await before([]), await before(["nothing"])] == [song, None, None]
    assert await before(both, 10**20) == last, "a number that a client made up"


async def test_only_delivered_results_are_in_the_gallery(store: SqlDatabase) -> None:
    account = await account_with(store, 10_000)
    failed = await ended(store, State.FAILED, account_id=account, model="painter")
    assert await finish(store, failed)
    free = await ended(store, State.FAILED, account_id=account, model="painter", price=0)
    assert await finish(store, free)
    lost = await ended(store, account_id=account, model="painter")
    assert await finish(store, lost, Delivery.UNDELIVERABLE)
    await ended(store, account_id=account, model="painter")
    assert await store.result_before(account, ["painter"]) is None
    shown = await result(store, account, price=0)
    found = await store.result_before(account, ["painter"])
    assert found is not None
    assert found.id == shown


async def test_a_removed_result_leaves_the_gallery_and_comes_back(store: SqlDatabase) -> None:
    account, other = await account_with(store, 10_000), await account_with(store)
    first, second = await result(store, account), await result(store, account)
    money = await store.wallet(account)
    for _ in range(2):
        assert await store.set_result_hidden(account, second, hidden=True)
        found = await store.result_before(account, ["painter"])
        assert found is not None
        assert found.id == first
        assert (await see(store, second)).hidden
    assert not await store.set_result_hidden(other, first, hidden=True), "another user's result"
    assert not await store.set_result_hidden(account, 10**9, hidden=True)
    for _ in range(2):
        assert await store.set_result_hidden(account, second, hidden=False)
    found = await store.result_before(account, ["painter"])
    assert found is not None
    assert (found.id, found.hidden) == (second, False)
    assert (await store.wallet(account), await store.violations(settled=False)) == (money, [])


async def test_erased_results_are_not_in_the_gallery(store: SqlDatabase) -> None:
    account = await account_with(store, 10_000)
    job = await result(store, account, notice=False)
    await store.erase_jobs(account, job, 10)
    assert await store.result_before(account, ["painter"]) is None


async def test_favourites_are_bounded_and_added_once(store: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genlock.stores.preferences.FAVOURITES_MAX", 3)
    account = await account_with(store)
    assert all(await asyncio.gather(*(store.add_favourite(account, "a") for _ in range(4))))
    assert await store.favourites(account) == ["a"]
    assert [await store.add_favourite(account, name) for name in ("b", "c", "d", "a")] == [True, True, False, True]
    await store.remove_favourite(account, "a")
    await store.remove_favourite(account, "a")
    assert sorted(await store.favourites(account)) == ["b", "c"]
    wallet, favourites = await store.wallet_and_favourites(account)
    assert (wallet, list(favourites)) == (await store.wallet(account), await store.favourites(account))
    assert await store.favourites(await account_with(store)) == []
    assert (await store.wallet_and_favourites(await account_with(store)))[1] == ()
    with pytest.raises(AccountNotFound):
        await store.wallet_and_favourites(10**9)


async def test_settings_are_kept_for_the_models_used_last(
    store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.preferences.SETTINGS_MAX", 3)
    account = await account_with(store)
    for name in ("a", "b", "c", "a", "d"):
        clock.advance(1)
        await store.save_model_settings(account, name, f'{{"of":"{name}"}}')
    kept = {name for name in "abcd" if await store.model_settings(account, name) is not None}
    assert kept == {"a", "c", "d"}
    assert await store.model_settings(account, "a") == '{"of":"a"}'
    await store.delete_model_settings(account, "a")
    assert await store.model_settings(account, "a") is None


async def test_an_erased_account_keeps_neither_favourites_nor_settings(store: SqlDatabase) -> None:
    account, other = await account_with(store), await account_with(store)
    for account_id in (account, other):
        await store.add_favourite(account_id, "a")
        await store.save_model_settings(account_id, "a", "{}")
    await store.erase_account(account, 10)
    assert (await store.favourites(account), await store.model_settings(account, "a")) == ([], None)
    assert (await store.favourites(other), await store.model_settings(other, "a")) == (["a"], "{}")
