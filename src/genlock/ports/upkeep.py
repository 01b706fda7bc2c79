"""Facts, figures, and what is forgotten in the end."""

from datetime import datetime
from typing import Protocol

from genlock.domain.value import value
from genlock.ports.store import Role, Violation


@value
class KvEntry:
    key: str
    value: str
    #: seconds since it was set
    age: float
    #: "" for entries of the whole installation
    bot: str = ""


class UpkeepStore(Protocol):
    """Facts that all instances share, how things go, and what is forgotten in the end."""

    async def kv_get(self, key: str, bot: str = "") -> KvEntry | None: ...

    async def kv_list(self, beginning: str, bot: str = "") -> list[KvEntry]: ...

    async def kv_put_if_absent(self, key: str, value: str, bot: str = "") -> str:
        """Know something, unless something is known already; says what is."""

    async def kv_put(self, key: str, value: str, bot: str = "") -> None: ...

    async def kv_delete(self, key: str, bot: str = "") -> None: ...

    async def clock(self) -> datetime: ...

    async def live_instances(self, silent_seconds: float) -> list[str]:
        """The instances that were heard of lately."""

    async def stats(self) -> dict[str, float]:
        """Counts and ages of what is open, and how the newest jobs ended."""

    async def money_violations(self) -> list[Violation]:
        """Look for money that does not add up."""

    async def prune(self, what: str, older_than: float, limit: int, role: Role) -> int:
        """Remove some old `updates`, `callbacks`, callbacks of `strangers` or unused `uploads`; says how many."""

    async def last_callback(self) -> int:
        """The newest callback there is."""

    async def marked_callbacks(self, after: int, mark: bytes) -> list[tuple[int | None, str]]:
        """Job and state of the callbacks after this one that have a mark in their body."""

    async def drop_callbacks(self, after: int, mark: bytes) -> int:
        """Remove them; says how many."""
