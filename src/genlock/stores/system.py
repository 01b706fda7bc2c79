"""What an operator may know of the installation itself: roles, migrations, the database."""

from collections.abc import Sequence
from datetime import UTC, datetime

from genlock.ports import AppliedMigration, DatabaseFacts, RoleHolder
from genlock.stores.rows import not_null
from genlock.stores.session import Subject


class System(Subject):
    async def roles(self) -> Sequence[RoleHolder]:
        return [
            RoleHolder(
                name=row["name"],
                holder=row["holder"],
                epoch=row["epoch"],
                until=not_null(self.session.time(row["until"])),
                held=bool(row["held"]),
            )
            for row in await self.session.one("roles")
        ]

    async def applied_migrations(self) -> Sequence[AppliedMigration]:
        return [
            AppliedMigration(label=f"{row['number']:04d}_{row['name']}", applied_at=_read_time(row["applied_at"]))
            for row in await self.session.one("applied_migrations")
        ]

    async def database_facts(self) -> DatabaseFacts:
        [row] = await self.session.one("database_facts")
        return DatabaseFacts(version=row["version"], bytes=row["bytes"])


def _read_time(text: str) -> datetime:
    """Read the time of a migration, which both databases keep as text."""
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
