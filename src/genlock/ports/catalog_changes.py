"""Edits of models by operators, with their history."""

from typing import Protocol

from genlock.domain.catalog_change import CatalogChange, NewCatalogChange


class CatalogChangeStore(Protocol):
    async def add_catalog_change(self, change: NewCatalogChange) -> CatalogChange | None:
        """Store an edit. None if the model was changed since the change that the edit follows.

        The same request key again gives the same change. Changes become visible in the order of their ids.
        """

    async def newest_catalog_change(self) -> int:
        """Return the id of the newest change of any model; 0 if there is none."""

    async def catalog_changes_after(self, change_id: int, limit: int) -> list[CatalogChange]:
        """Return the next changes after one, oldest first."""

    async def catalog_changes(
        self, limit: int, *, model: str | None = None, before: int | None = None
    ) -> list[CatalogChange]:
        """Return changes newest first: of one model or of all, older than `before`."""

    async def catalog_change(self, change_id: int) -> CatalogChange | None: ...

    async def catalog_change_of_request(self, request_key: str) -> CatalogChange | None:
        """Return the change that was stored under a request key."""
