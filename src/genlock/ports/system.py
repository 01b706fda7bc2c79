"""What an operator may know of the installation itself: roles, migrations, the database."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from genlock.domain.value import value


@value
class RoleHolder:
    """Who has a role that one instance has at a time, and until when without a renewal."""

    name: str
    holder: str
    epoch: int
    until: datetime
    #: whether the role is held now
    held: bool


@value
class AppliedMigration:
    label: str
    applied_at: datetime


@value
class DatabaseFacts:
    #: the program and its version, such as "PostgreSQL 17.2"
    version: str
    bytes: int


class SystemStore(Protocol):
    async def roles(self) -> Sequence[RoleHolder]:
        """Return every role that an instance has ever had."""

    async def applied_migrations(self) -> Sequence[AppliedMigration]:
        """Return the applied migrations, the newest first."""

    async def database_facts(self) -> DatabaseFacts: ...
