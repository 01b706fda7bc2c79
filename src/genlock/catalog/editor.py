"""Keeps an instance's catalog up to date with the operators' edits, and stores new edits."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace

from genlock.catalog.edits import edited, undone
from genlock.domain.catalog import Catalog, Model
from genlock.domain.catalog_change import CatalogChange, NewCatalogChange, Table
from genlock.domain.current_catalog import CurrentCatalog
from genlock.domain.errors import InvalidEdit, Refusal, StaleEdit
from genlock.domain.events import Event
from genlock.ports import CatalogChangeStore, Observer

#: how often an instance asks for the newest change
PERIOD_SECONDS = 2.0
#: changes that one statement reads
PAGE = 500
NO_SUCH_MODEL = "there is no such model any more"


class CatalogEditor:
    """Applies the store's edits to the catalog of the package and the overlay file, and adds new ones.

    An edit that does not fit its model any more, as after an upgrade, is left out and named; everything else is sold.
    """

    def __init__(
        self,
        *,
        base: Catalog,
        current: CurrentCatalog,
        providers: Collection[str],
        store: CatalogChangeStore,
        observer: Observer,
        without_files: Collection[str] = (),
    ) -> None:
        #: the catalog without the store's edits
        self.base = base
        self.current = current
        self._providers = providers
        #: the providers that cannot read users' files
        self._without_files = without_files
        self._store = store
        self._observer = observer
        self._models = dict(base.models)
        self._left_out: dict[str, str] = {}
        self._seen = 0
        self._refreshing = asyncio.Lock()

    @property
    def edited_catalog(self) -> Catalog:
        """Return the catalog with the edits, with the models of providers that are not configured as they are."""
        return replace(self.base, models=dict(self._models))

    @property
    def edited_models(self) -> frozenset[str]:
        """Return the models that an edit is applied to."""
        base = self.base.models
        return frozenset(model_id for model_id, model in self._models.items() if model is not base[model_id])

    @property
    def left_out(self) -> Mapping[str, str]:
        """Return the models whose edit is left out, each with the reason."""
        return self._left_out

    async def refresh(self) -> None:
        """Apply the changes since the last call. One cheap statement if there are none."""
        async with self._refreshing:
            newest = await self._store.newest_catalog_change()
            if newest == self._seen:
                return
            if newest < self._seen:  # a backup was restored: begin again
                self._seen, self._models, self._left_out = 0, dict(self.base.models), {}
            tables: dict[str, Table] = {}
            while changes := await self._store.catalog_changes_after(self._seen, PAGE):
                tables |= {change.model: change.after for change in changes}
                self._seen = changes[-1].id
            for model_id, table in tables.items():
                self._apply(model_id, table)
            self.current.replace(self.edited_catalog.sold_through(self._providers, self._without_files))
            self._observer.event(Event.CATALOG_CHANGED, change=self._seen, models=",".join(sorted(tables)))

    def _apply(self, model_id: str, table: Table) -> None:
        self._left_out.pop(model_id, None)
        if model_id not in self.base.models:
            if table:
                self._leave_out(model_id, NO_SUCH_MODEL)
            return
        try:
            self._models[model_id] = self.edited(model_id, table)
        except InvalidEdit as error:
            self._models[model_id] = self.base.models[model_id]
            self._leave_out(model_id, str(error))

    def _leave_out(self, model_id: str, why: str) -> None:
        self._left_out[model_id] = why
        self._observer.event(Event.CATALOG_EDIT_LEFT_OUT, model=model_id, error=why)

    def edited(self, model_id: str, table: Table) -> Model:
        """Return a model of the package and the overlay file with an edit. Raises ModelNotFound and InvalidEdit."""
        model = self.base.get(model_id)
        return edited(model, table) if table else model

    async def newest(self, model_id: str) -> tuple[int, Table]:
        """Return the newest change of a model and the table that it left; 0 and an empty one if there is none."""
        changes = await self._store.catalog_changes(1, model=model_id)
        return (changes[0].id, changes[0].after) if changes else (0, {})

    async def save(
        self, model_id: str, table: Table, *, follows: int, author: str, request_key: str, undoes: int | None = None
    ) -> CatalogChange:
        """Store an edit made from the state after the change `follows`, and apply it here.

        The other instances apply it within seconds. The same request key again gives the same change.
        Raises ModelNotFound, InvalidEdit and StaleEdit.
        """
        if table:  # an edit of a model that is gone can still be removed
            self.edited(model_id, table)
        _, before = await self.newest(model_id)
        change = await self._store.add_catalog_change(
            NewCatalogChange(
                model=model_id,
                before=before,
                after=table,
                author=author,
                request_key=request_key,
                follows=follows,
                undoes=undoes,
            )
        )
        if change is None:
            raise StaleEdit
        await self.refresh()
        return change

    async def undo(self, change_id: int, *, author: str, request_key: str) -> CatalogChange:
        """Take one change back, as a new change; the same request key again gives the same one.

        Raises Refusal, InvalidEdit and StaleEdit.
        """
        if done := await self._store.catalog_change_of_request(request_key):
            return done
        change = await self._store.catalog_change(change_id)
        if change is None:
            raise Refusal(f"There is no change {change_id}.")
        follows, table = await self.newest(change.model)
        return await self.save(
            change.model,
            undone(table, change),
            follows=follows,
            author=author,
            request_key=request_key,
            undoes=change.id,
        )
