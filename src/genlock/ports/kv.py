"""Key-value entries that all instances share: markers and small settings."""

from typing import Protocol

from genlock.domain.queued_message import QueuedMessage
from genlock.domain.value import value


@value
class KvEntry:
    key: str
    value: str
    #: seconds since it was written
    age: float
    #: "" for entries of the whole installation
    bot: str = ""


class KvStore(Protocol):
    """Entries by key and bot; the bot "" stands for the whole installation."""

    async def kv_get(self, key: str, bot: str = "") -> KvEntry | None: ...

    async def kv_list(self, beginning: str, bot: str = "") -> list[KvEntry]:
        """Return the entries whose key starts with `beginning`, in the order of their keys."""

    async def kv_put_if_absent(self, key: str, value: str, bot: str = "") -> str:
        """Write an entry unless there is one. Returns the value that is stored."""

    async def kv_put(self, key: str, value: str, bot: str = "") -> None: ...

    async def kv_delete(self, key: str, bot: str = "", *, value: str | None = None) -> bool:
        """Delete an entry, or only if it has this value. Returns whether it was there."""

    async def kv_replace_by_message(
        self, key: str, message: QueuedMessage, bot: str = "", *, value: str | None = None
    ) -> bool:
        """Delete an entry and queue a message, in one commit, or only if it has this value.

        Returns False if the entry was not there.
        """
