"""Counts and ages of open work."""

from datetime import datetime

from genlock.stores.rows import not_null
from genlock.stores.session import Subject

#: error codes that the user causes, not the provider
USER_ERRORS = ("moderation", "bad_input", "file_unreachable", "user_unreachable", "cancelled")
#: how far back the stats look at jobs that ended and callbacks that came
STATS_WINDOW_SECONDS = 600.0


class Statistics(Subject):
    async def read_clock(self) -> datetime:
        return not_null(self.session.time((await self.session.one("read_clock"))[0]["now"]))

    async def live_instances(self, silent_seconds: float) -> list[str]:
        return [row["id"] for row in await self.session.one("live_instances", silent_seconds=silent_seconds)]

    async def counts(self) -> dict[str, int]:
        return {row["name"]: row["count"] for row in await self.session.one("counts")}

    async def stats(self) -> dict[str, float]:
        rows = await self.session.one("stats", window=STATS_WINDOW_SECONDS, user_errors=self.session.array(USER_ERRORS))
        return {row["name"]: float(row["value"] or 0) for row in rows}

    async def last_callback_id(self) -> int:
        return int((await self.session.one("last_callback_id"))[0]["id"])

    async def find_callbacks(self, after: int, mark: bytes) -> list[tuple[int | None, str]]:
        rows = await self.session.one("find_callbacks", after=after, mark=mark)
        return [(row["job_id"], row["state"]) for row in rows]

    async def delete_callbacks(self, after: int, mark: bytes) -> int:
        return len(await self.session.one("delete_callbacks", after=after, mark=mark))
