"""Facts, the pulse, and what is forgotten in the end, in both databases alike."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from genlock.domain.errors import StoreError
from genlock.ports import KvEntry, Role, Violation
from genlock.stores.queries import Query
from genlock.stores.rows import Row, Time

#: ends that are the person's doing, not the provider's
BLAMELESS = ("moderation", "bad_input", "file_unreachable", "cancelled")
#: how far back the pulse looks at what came and ended
STATS_WINDOW_SECONDS = 600.0
_MONEY = ("check_wallets", "check_zero_sum", "check_hold_states")


class UpkeepRows(ABC):
    """The UpkeepStore port over named statements."""

    queries: dict[str, Query]
    time: Time

    @abstractmethod
    async def one(self, name: str, /, **params: Any) -> list[Row]: ...

    @abstractmethod
    def array(self, values: Sequence[Any]) -> Any: ...

    async def kv_get(self, key: str, bot: str = "") -> KvEntry | None:
        rows = await self.one("kv_get", key=key, bot=bot)
        return self._kv_entry(rows[0]) if rows else None

    async def kv_list(self, beginning: str, bot: str = "") -> list[KvEntry]:
        return [self._kv_entry(row) for row in await self.one("kv_list", beginning=beginning, bot=bot)]

    async def kv_put_if_absent(self, key: str, value: str, bot: str = "") -> str:
        for _ in range(2):  # PostgreSQL may overlook a row that was added while it looked; it is there the second time
            if rows := await self.one("kv_put_if_absent", key=key, value=value, bot=bot):
                return str(rows[0]["value"])
        raise StoreError(f"could not keep or read the fact {key}")

    async def kv_put(self, key: str, value: str, bot: str = "") -> None:
        await self.one("kv_put", key=key, value=value, bot=bot)

    async def kv_delete(self, key: str, bot: str = "") -> None:
        await self.one("kv_delete", key=key, bot=bot)

    def _kv_entry(self, row: Row) -> KvEntry:
        at, read_at = self.time(row["at"]), self.time(row["read_at"])
        assert at is not None
        assert read_at is not None
        return KvEntry(key=row["key"], value=row["value"], age=(read_at - at).total_seconds(), bot=row["bot"])

    async def clock(self) -> datetime:
        now = self.time((await self.one("clock"))[0]["now"])
        assert now is not None
        return now

    async def live_instances(self, silent_seconds: float) -> list[str]:
        return [row["id"] for row in await self.one("live_instances", silent_seconds=silent_seconds)]

    async def stats(self) -> dict[str, float]:
        rows = await self.one("stats", window=STATS_WINDOW_SECONDS, blameless=self.array(BLAMELESS))
        return {row["name"]: float(row["value"] or 0) for row in rows}

    async def money_violations(self) -> list[Violation]:
        return [
            Violation(rule=self.queries[name].description, subject=row["subject"], detail=row["detail"])
            for name in _MONEY
            for row in await self.one(name)
        ]

    async def prune(self, what: str, older_than: float, limit: int, role: Role) -> int:
        rows = await self.one(f"prune_{what}", older_than=older_than, limit=limit, holder=role.holder, epoch=role.epoch)
        return len(rows)

    async def last_callback(self) -> int:
        return int((await self.one("last_callback"))[0]["id"])

    async def marked_callbacks(self, after: int, mark: bytes) -> list[tuple[int | None, str]]:
        rows = await self.one("marked_callbacks", after=after, mark=mark)
        return [(row["job_id"], row["state"]) for row in rows]

    async def drop_callbacks(self, after: int, mark: bytes) -> int:
        return len(await self.one("drop_callbacks", after=after, mark=mark))
