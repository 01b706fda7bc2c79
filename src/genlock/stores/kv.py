"""Key-value entries that all instances share."""

from genlock.domain.errors import StoreError
from genlock.domain.queued_message import QueuedMessage
from genlock.ports import KvEntry
from genlock.stores.rows import message_params, read_kv_entry
from genlock.stores.session import Subject


class KeyValues(Subject):
    async def kv_get(self, key: str, bot: str = "") -> KvEntry | None:
        rows = await self.session.one("kv_get", key=key, bot=bot)
        return read_kv_entry(rows[0], self.session.time) if rows else None

    async def kv_list(self, beginning: str, bot: str = "") -> list[KvEntry]:
        rows = await self.session.one("kv_list", beginning=beginning, bot=bot)
        return [read_kv_entry(row, self.session.time) for row in rows]

    async def kv_put_if_absent(self, key: str, value: str, bot: str = "") -> str:
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            if rows := await self.session.one("kv_put_if_absent", key=key, value=value, bot=bot):
                return str(rows[0]["value"])
        raise StoreError(f"could not write or read the entry {key}")

    async def kv_put(self, key: str, value: str, bot: str = "") -> None:
        await self.session.one("kv_put", key=key, value=value, bot=bot)

    async def kv_delete(self, key: str, bot: str = "", *, value: str | None = None) -> bool:
        return bool(await self.session.one("kv_delete", key=key, bot=bot, value=value))

    async def kv_replace_by_message(
        self, key: str, message: QueuedMessage, bot: str = "", *, value: str | None = None
    ) -> bool:
        queued = message_params(message)
        return bool(await self.session.one("kv_replace_by_message", key=key, bot=bot, value=value, **queued))
