"""Edits of models by operators, with their history."""

from genlock.domain.catalog_change import CatalogChange, NewCatalogChange, dump_table, load_table
from genlock.domain.errors import StoreError
from genlock.stores.rows import Row, Time, not_null
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject

#: how often an insert is repeated because another change took its id
ATTEMPTS_MAX = 50


class CatalogChanges(Subject):
    async def add_catalog_change(self, change: NewCatalogChange) -> CatalogChange | None:
        for _ in range(ATTEMPTS_MAX):
            rows = await self.session.one(
                "add_catalog_change",
                model=change.model,
                before=dump_table(change.before),
                after=dump_table(change.after),
                author=change.author,
                request_key=change.request_key,
                follows=change.follows,
                undoes=change.undoes,
            )
            if rows:
                return _read_catalog_change(rows[0], self.session.time)
            newest = await self.catalog_changes(1, model=change.model)
            if (newest[0].id if newest else 0) != change.follows:
                return None
        raise StoreError(f"add_catalog_change: other changes took the next id in each of {ATTEMPTS_MAX} attempts")

    async def newest_catalog_change(self) -> int:
        return int((await self.session.one("newest_catalog_change"))[0]["id"])

    async def catalog_changes_after(self, change_id: int, limit: int) -> list[CatalogChange]:
        rows = await self.session.one("catalog_changes_after", change_id=change_id, limit=limit)
        return [_read_catalog_change(row, self.session.time) for row in rows]

    async def catalog_changes(
        self, limit: int, *, model: str | None = None, before: int | None = None
    ) -> list[CatalogChange]:
        older_than = NEWEST if before is None else before
        if model is None:
            rows = await self.session.one("newest_catalog_changes", before_id=older_than, limit=limit)
        else:
            rows = await self.session.one("catalog_changes_of", model=model, before_id=older_than, limit=limit)
        return [_read_catalog_change(row, self.session.time) for row in rows]

    async def catalog_change(self, change_id: int) -> CatalogChange | None:
        rows = await self.session.one("catalog_change", change_id=change_id)
        return _read_catalog_change(rows[0], self.session.time) if rows else None

    async def catalog_change_of_request(self, request_key: str) -> CatalogChange | None:
        rows = await self.session.one("catalog_change_of_request", request_key=request_key)
        return _read_catalog_change(rows[0], self.session.time) if rows else None


def _read_catalog_change(row: Row, time: Time) -> CatalogChange:
    return CatalogChange(
        id=row["id"],
        model=row["model"],
        before=load_table(row["before"]),
        after=load_table(row["after"]),
        author=row["author"],
        at=not_null(time(row["at"])),
        undoes=row["undoes"],
    )
