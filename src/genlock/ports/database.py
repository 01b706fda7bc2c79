"""Everything a store does, and a store as the doctor looks at it."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from genlock.ports.chat import ChatStore
from genlock.ports.clock import Clock
from genlock.ports.limits import LimitStore
from genlock.ports.store import Store
from genlock.ports.updates import UpdateStore
from genlock.ports.upkeep import UpkeepStore


class Database(Store, LimitStore, ChatStore, UpdateStore, UpkeepStore, Protocol):
    """Everything a store does."""


class DatabaseCheck(Protocol):
    """A store as the doctor looks at it: compared with what it should be, tried out, and left as it was."""

    dialect: str

    @property
    def store(self) -> Database: ...

    async def missing(self) -> list[str]:
        """The migrations that are not applied. Raises SchemaMismatch if its past is not ours."""

    async def differences(self) -> list[str]:
        """What a fresh schema has and this one has not."""

    def rehearsal(self, clock: Clock) -> AbstractAsyncContextManager[Database]:
        """A store whose every statement really runs, and is undone at the end of the block."""

    def description(self) -> str: ...

    async def close(self) -> None: ...
