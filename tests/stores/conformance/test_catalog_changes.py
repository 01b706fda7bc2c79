"""Edits of models and the lists of campaigns, on both databases, also under concurrent calls."""

import asyncio
from decimal import Decimal
from typing import Any

from genlock.domain.broadcast import BroadcastState
from genlock.domain.catalog_change import CatalogChange, NewCatalogChange
from genlock.domain.promo import Promo
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock

MODEL = "maker/painter"


def edit(key: str, follows: int = 0, **changes: Any) -> NewCatalogChange:
    new: dict[str, Any] = {"model": MODEL, "before": {}, "after": {"title": key}, "author": "7", "undoes": None}
    return NewCatalogChange(request_key=key, follows=follows, **{**new, **changes})


async def added(store: SqlDatabase, change: NewCatalogChange) -> CatalogChange:
    found = await store.add_catalog_change(change)
    assert found is not None
    return found


async def test_a_change_is_stored_with_its_tables_exactly(store: SqlDatabase, clock: ManualClock) -> None:
    after = {"price": Decimal("0.1"), "credits": {"Fast, 5s": Decimal("12.345")}, "free": True, "title": "Тест 🎨"}
    change = await added(store, edit("a", after=after, before={"order": 3}, undoes=9))
    assert change == await store.catalog_change(change.id)
    assert (change.model, change.before, change.after, change.author) == (MODEL, {"order": 3}, after, "7")
    assert (change.undoes, change.at) == (9, clock.now())
    assert await store.catalog_change(change.id + 1) is None


async def test_the_same_request_key_gives_the_same_change(store: SqlDatabase) -> None:
    first = await added(store, edit("a"))
    assert await store.add_catalog_change(edit("a")) == first
    assert len(await store.catalog_changes(10)) == 1


async def test_an_edit_of_an_older_state_is_refused(store: SqlDatabase) -> None:
    first = await added(store, edit("a"))
    assert await store.add_catalog_change(edit("b")) is None
    assert await store.add_catalog_change(edit("b", follows=first.id + 7)) is None
    second = await added(store, edit("b", follows=first.id))
    assert await store.add_catalog_change(edit("c", follows=first.id)) is None
    other = await added(store, edit("d", model="maker/other"))
    assert [change.id for change in await store.catalog_changes(10)] == [other.id, second.id, first.id]


async def test_of_edits_of_one_state_at_the_same_time_one_is_stored(store: SqlDatabase) -> None:
    results = await asyncio.gather(*(store.add_catalog_change(edit(f"k{n}")) for n in range(8)))
    assert sum(result is not None for result in results) == 1
    assert len(await store.catalog_changes(10)) == 1


async def test_edits_of_different_models_at_the_same_time_are_all_stored_without_gaps(store: SqlDatabase) -> None:
    models = [f"maker/{n}" for n in range(8)]
    results = await asyncio.gather(*(store.add_catalog_change(edit(model, model=model)) for model in models))
    ids = sorted(change.id for change in results if change is not None)
    assert ids == list(range(1, 9))
    assert await store.newest_catalog_change() == 8


async def test_changes_are_read_forwards_and_backwards_in_pages(store: SqlDatabase) -> None:
    assert await store.newest_catalog_change() == 0
    follows = 0
    for number in range(5):
        follows = (await added(store, edit(f"k{number}", follows=follows))).id
        await added(store, edit(f"o{number}", model=f"maker/o{number}"))
    everything = [change.id for change in await store.catalog_changes_after(0, 100)]
    assert everything == list(range(1, 11))
    assert [change.id for change in await store.catalog_changes_after(4, 3)] == [5, 6, 7]
    assert [change.id for change in await store.catalog_changes(3)] == [10, 9, 8]
    assert [change.id for change in await store.catalog_changes(3, before=8)] == [7, 6, 5]
    assert [change.id for change in await store.catalog_changes(3, model=MODEL)] == [9, 7, 5]
    assert [change.id for change in await store.catalog_changes(3, model=MODEL, before=5)] == [3, 1]


async def test_promo_codes_are_listed_newest_first_by_cursor(store: SqlDatabase, clock: ManualClock) -> None:
    for code, bot in (("AAA111", "bot"), ("BBB222", ""), ("CCC333", "other"), ("DDD444", "bot")):
        promo = Promo(code=code, amount=1000, runs=0, uses_max=None, per_account=1, until=None, bot=bot)
        assert await store.create_promo(promo, lasting=None, author="7")
        if code != "BBB222":  # two codes of the same moment
            clock.advance(1)
    assert [listed_promo.code for listed_promo in await store.promos(2, "bot")] == ["DDD444", "BBB222"]
    assert [listed_promo.code for listed_promo in await store.promos(2, "bot", before="BBB222")] == ["AAA111"]
    assert [listed_promo.code for listed_promo in await store.promos(9, before="DDD444")] == [
        "CCC333",
        "BBB222",
        "AAA111",
    ]
    assert await store.promos(9, before="NOTHING") == []
    found = await store.promo("AAA111")
    assert found is not None
    assert (found.author, found.created_at, found.bot) == ("7", clock.after(-3), "bot")
    assert await store.promo("NOTHING") is None


async def test_broadcasts_are_listed_newest_first_by_cursor(store: SqlDatabase) -> None:
    ids = []
    for number in range(4):
        made = await store.begin_broadcast(
            "text", bot="other" if number == 2 else "bot", author="7", request_key=f"k{number}"
        )
        ids.append(made.id)
        await store.end_broadcast(made.id, BroadcastState.DONE)
    assert [broadcast.id for broadcast in await store.broadcasts(2, "bot")] == [ids[3], ids[1]]
    assert [broadcast.id for broadcast in await store.broadcasts(2, "bot", before=ids[1])] == [ids[0]]
    assert [broadcast.id for broadcast in await store.broadcasts(9)] == ids[::-1]
