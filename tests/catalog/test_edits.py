"""Edits of models in the store: validated as the overlay file is, compared, undone, and applied by every instance."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from genlock.app.databases import open_store
from genlock.catalog import editor as editors
from genlock.catalog.editor import NO_SUCH_MODEL, CatalogEditor
from genlock.catalog.edits import differences, edited, undone
from genlock.domain.catalog import Catalog, Status
from genlock.domain.catalog_change import CatalogChange, NewCatalogChange
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import InvalidEdit, ModelNotFound, Refusal, StaleEdit
from genlock.domain.events import Event
from genlock.ports import Database
from tests.stores.conftest import RecordingObserver

MODEL = "kling-2.6/text-to-video"
ROW = "kling 2.6, text-to-video, without audio-5.0s"
OTHER = "z-image"


def change(before: dict[str, Any], after: dict[str, Any]) -> CatalogChange:
    return CatalogChange(id=1, model=MODEL, before=before, after=after, author="", at=datetime(2030, 1, 1, tzinfo=UTC))


# pure functions


def test_an_edit_changes_what_it_names_and_nothing_else(catalog: Catalog) -> None:
    model = catalog.get(MODEL)
    table = {"title": "Films", "price": Decimal("12.5"), "order": 2, "featured": True, "credits": {ROW: 60}}
    now = edited(model, table)
    assert (now.title, now.own_price, now.order, now.featured) == ("Films", 12_500, 2, True)
    assert (now.fields, now.status, now.category) == (model.fields, model.status, model.category)
    assert edited(model, {"status": "hidden"}).status is Status.HIDDEN


def test_every_wrong_value_is_named_with_its_kind(catalog: Catalog) -> None:
    wrong: dict[str, tuple[Any, str]] = {
        "title": ("", "title"),
        "price": (Decimal("NaN"), "amount"),
        "order": (0, "position"),
        "status": ("gone", "choice"),
        "expected_seconds": (Decimal("1.5"), "whole"),
        "free": ("maybe", "invalid"),
        "nonsense": (1, "invalid"),
        "credits": ({ROW: -1}, "amount"),
    }
    with pytest.raises(InvalidEdit) as caught:
        edited(catalog.get(MODEL), {key: value for key, (value, _) in wrong.items()})
    assert {key: problem.code for key, problem in caught.value.problems.items()} == {
        key: code for key, (_, code) in wrong.items()
    }


@pytest.mark.parametrize(
    ("table", "key", "code"),
    [
        ({"expected_seconds": 100_000}, "expected_seconds", "seconds"),
        ({"credits": {"no such row": 1}}, "credits", "unknown_row"),
        ({"title": "a" * 61}, "title", "title"),
        ({"title": "a\u202eb"}, "title", "title"),
        ({"price": Decimal("1E+10")}, "price", "amount"),
        ({"price": Decimal("0.1234567")}, "price", "amount"),
        ({"order": 10_000}, "order", "position"),
    ],
)
def test_a_value_that_does_not_fit_the_model_is_named(catalog: Catalog, table: Any, key: str, code: str) -> None:
    with pytest.raises(InvalidEdit) as caught:
        edited(catalog.get(MODEL), table)
    assert {name: problem.code for name, problem in caught.value.problems.items()} == {key: code}


def test_a_model_without_a_price_cannot_be_offered(catalog: Catalog) -> None:
    dead = next(model for model in catalog.models.values() if not model.prices and model.status is not Status.OFFERED)
    with pytest.raises(InvalidEdit) as caught:
        edited(dead, {"status": "offered"})
    assert caught.value.problems["status"].code == "no_price"
    assert edited(dead, {"status": "offered", "price": 5}).status is Status.OFFERED


def test_differences_name_price_rows_one_by_one() -> None:
    found = differences({"title": "A", "credits": {"x": 1, "y": 2}}, {"free": True, "credits": {"x": 1, "y": 3}})
    assert [(difference.field, difference.row, difference.old, difference.new) for difference in found] == [
        ("title", "", "A", None), ("credits", "y", 2, 3), ("free", "", None, True),
    ]  # fmt: skip
    assert differences({"price": 5}, {"price": Decimal("5.0")}) == []


def test_an_undo_takes_back_one_change_and_keeps_the_later_ones() -> None:
    renamed = change({"order": 1}, {"order": 1, "title": "B", "credits": {"x": 2}})
    now = {"order": 7, "title": "B", "free": True, "credits": {"x": 2, "y": 3}}
    assert undone(now, renamed) == {"order": 7, "free": True, "credits": {"y": 3}}
    assert undone({"title": "B"}, change({"title": "A"}, {"title": "B"})) == {"title": "A"}
    assert undone({}, change({"title": "A"}, {})) == {"title": "A"}


def test_an_undo_of_what_was_changed_again_names_it() -> None:
    with pytest.raises(StaleEdit, match="title, x"):
        undone({"title": "C"}, change({}, {"title": "B", "credits": {"x": 2}}))


# with a store


@asynccontextmanager
async def editing(store: Database, base: Catalog, observer: RecordingObserver) -> AsyncIterator[CatalogEditor]:
    current = CurrentCatalog(base.sold_through({"kie"}))
    editor = CatalogEditor(base=base, current=current, providers={"kie"}, store=store, observer=observer)
    await editor.refresh()
    yield editor


@pytest.fixture
def observer() -> RecordingObserver:
    return RecordingObserver()


@pytest.fixture
async def store(tmp_path: Path, observer: RecordingObserver) -> AsyncIterator[Database]:
    opened = await open_store(f"sqlite:///{tmp_path}/genlock.db", observer=observer)
    yield opened
    await opened.close()


@pytest.fixture
async def editor(store: Database, catalog: Catalog, observer: RecordingObserver) -> AsyncIterator[CatalogEditor]:
    async with editing(store, catalog, observer) as made:
        yield made


async def test_an_edit_is_in_effect_at_once_where_it_was_made_and_elsewhere_after_a_refresh(
    editor: CatalogEditor, store: Database, catalog: Catalog, observer: RecordingObserver
) -> None:
    async with editing(store, catalog, observer) as elsewhere:
        watched: list[str] = []
        elsewhere.current.watch(lambda now: watched.append(now.get(MODEL).title))
        await editor.save(MODEL, {"title": "Films"}, follows=0, author="7", request_key="k1")
        assert editor.current.model(MODEL).title == "Films"
        assert elsewhere.current.model(MODEL).title == catalog.get(MODEL).title
        await elsewhere.refresh()
        await elsewhere.refresh()
        assert (elsewhere.current.model(MODEL).title, watched) == ("Films", ["Films"])
    assert editor.current.model(OTHER) is catalog.get(OTHER), "models without a change stay the same objects"


async def test_a_restarted_instance_reads_all_pages_of_the_history(
    editor: CatalogEditor,
    store: Database,
    catalog: Catalog,
    observer: RecordingObserver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(editors, "PAGE", 2)
    follows = 0
    for number in range(5):
        table = {"title": f"T{number}"}
        follows = (await editor.save(MODEL, table, follows=follows, author="7", request_key=f"k{number}")).id
    async with editing(store, catalog, observer) as restarted:
        assert restarted.current.model(MODEL).title == "T4"


async def test_an_edit_of_an_older_state_is_refused_and_the_same_request_is_not(editor: CatalogEditor) -> None:
    first = await editor.save(MODEL, {"title": "A"}, follows=0, author="7", request_key="k1")
    second = await editor.save(MODEL, {"title": "B"}, follows=first.id, author="7", request_key="k2")
    with pytest.raises(StaleEdit):
        await editor.save(MODEL, {"title": "C"}, follows=first.id, author="8", request_key="k3")
    assert await editor.save(MODEL, {"title": "B"}, follows=first.id, author="7", request_key="k2") == second
    assert editor.current.model(MODEL).title == "B"


async def test_an_invalid_edit_stores_nothing(editor: CatalogEditor, store: Database) -> None:
    with pytest.raises(InvalidEdit):
        await editor.save(MODEL, {"price": -1}, follows=0, author="7", request_key="k1")
    with pytest.raises(ModelNotFound):
        await editor.save("no/such", {"title": "A"}, follows=0, author="7", request_key="k1")
    assert await store.newest_catalog_change() == 0


async def test_an_undo_is_a_change_of_its_own_and_can_be_undone(editor: CatalogEditor, catalog: Catalog) -> None:
    first = await editor.save(MODEL, {"title": "A", "order": 1}, follows=0, author="7", request_key="k1")
    second = await editor.save(
        MODEL, {"title": "A", "order": 1, "free": True}, follows=first.id, author="7", request_key="k2"
    )
    undo = await editor.undo(first.id, author="8", request_key="u1")
    assert (undo.undoes, undo.before, undo.after, undo.author) == (first.id, second.after, {"free": True}, "8")
    assert editor.current.model(MODEL).title == catalog.get(MODEL).title
    assert await editor.undo(first.id, author="8", request_key="u1") == undo, "the same request"
    with pytest.raises(StaleEdit):
        await editor.undo(first.id, author="9", request_key="u2")
    redo = await editor.undo(undo.id, author="8", request_key="u3")
    assert redo.after == second.after
    with pytest.raises(Refusal, match="no change 999"):
        await editor.undo(999, author="8", request_key="u4")


async def test_an_edit_that_no_longer_fits_is_left_out_and_named(
    editor: CatalogEditor, store: Database, catalog: Catalog, observer: RecordingObserver
) -> None:
    await editor.save(MODEL, {"title": "A", "credits": {ROW: 60}}, follows=0, author="7", request_key="k1")
    await editor.save(OTHER, {"title": "B"}, follows=0, author="7", request_key="k2")
    for model, table in (("gone/model", {"title": "C"}), ("taken/back", {})):
        new = NewCatalogChange(model=model, before={}, after=table, author="7", request_key=model, follows=0)
        assert await store.add_catalog_change(new)
    old = catalog.get(MODEL)
    new_model = replace(old, prices=tuple(replace(row, label=None) for row in old.prices))
    async with editing(store, Catalog(models={**catalog.models, MODEL: new_model}), observer) as upgraded:
        assert upgraded.left_out.keys() == {MODEL, "gone/model"}
        assert upgraded.left_out["gone/model"] == NO_SUCH_MODEL
        assert ROW in upgraded.left_out[MODEL]
        assert upgraded.current.model(MODEL).title == catalog.get(MODEL).title
        assert upgraded.current.model(OTHER).title == "B"
        logged = {fields["model"] for event, fields in observer.events if event is Event.CATALOG_EDIT_LEFT_OUT}
        assert logged == {MODEL, "gone/model"}
        follows, _ = await upgraded.newest(MODEL)
        await upgraded.save(MODEL, {"title": "A"}, follows=follows, author="7", request_key="k9")
        assert upgraded.left_out.keys() == {"gone/model"}


async def test_an_edit_that_this_version_does_not_know_takes_the_earlier_one_back(
    editor: CatalogEditor, store: Database, catalog: Catalog
) -> None:
    first = await editor.save(MODEL, {"title": "A"}, follows=0, author="7", request_key="k1")
    later = NewCatalogChange(
        model=MODEL, before={}, after={"colour": "red"}, author="7", request_key="k2", follows=first.id
    )
    assert await store.add_catalog_change(later)
    await editor.refresh()
    assert editor.left_out.keys() == {MODEL}
    assert editor.current.model(MODEL).title == catalog.get(MODEL).title
    assert editor.edited_models == frozenset()


async def test_after_a_restored_backup_the_edits_are_those_of_the_backup(
    editor: CatalogEditor, store: Any, catalog: Catalog, observer: RecordingObserver
) -> None:
    await editor.save(OTHER, {"title": "A"}, follows=0, author="7", request_key="k1")
    await editor.save(MODEL, {"title": "B"}, follows=0, author="7", request_key="k2")
    await store.session.call(lambda connection: connection.execute("DELETE FROM catalog_changes WHERE id = 2"))
    await editor.refresh()
    assert (editor.current.model(OTHER).title, editor.current.model(MODEL)) == ("A", catalog.get(MODEL))
    events = len(observer.events)
    await editor.refresh()
    assert len(observer.events) == events, "nothing is applied twice"


async def test_an_edited_model_of_a_provider_without_a_key_stays_off_sale(
    store: Database, catalog: Catalog, observer: RecordingObserver
) -> None:
    current = CurrentCatalog(catalog.sold_through(()))
    editor = CatalogEditor(base=catalog, current=current, providers=(), store=store, observer=observer)
    await editor.save(MODEL, {"title": "A", "status": "offered"}, follows=0, author="7", request_key="k1")
    assert editor.current.model(MODEL).status is Status.HIDDEN
