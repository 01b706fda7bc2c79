"""Erasure of personal data."""

from collections.abc import Sequence

from genlock.domain.account import Account
from genlock.stores.session import Subject


class Erasures(Subject):
    async def open_jobs_until(self, account_id: int, until: int) -> int:
        return int((await self.session.one("open_jobs_until", account_id=account_id, until=until))[0]["count"])

    async def waits_for_handling(self, account: Account, older_than: float) -> bool:
        owner = {"bot": account.bot, "user": account.external_id}
        return bool(await self.session.one("waits_for_handling", older_than=older_than, **owner))

    async def erase_jobs(self, account_id: int, until: int, limit: int) -> int:
        after = erased = 0
        owner = {"account_id": account_id, "until": until}
        while (last := await self._window("account_job_window", after, limit, **owner)) is not None:
            page = {"account_id": account_id, "after": after, "until": last}
            erased += len(await self.session.one("erase_jobs", **page, limit=limit))
            await self.session.one("erase_job_events", **page)
            await self.session.one("erase_attempts", **page)
            after = last
        return erased

    async def erase_messages(self, account: Account, limit: int) -> None:
        owner = {"bot": account.bot, "user": account.external_id}
        after = 0
        while (until := await self._window("update_window", after, limit)) is not None:
            await self.session.one("erase_updates", after=after, until=until, **owner)
            after = until
        after = 0
        while (until := await self._window("callback_window", after, limit)) is not None:
            await self.session.one("erase_callbacks", account_id=account.id, after=after, until=until)
            after = until

    async def erase_account(self, account_id: int, limit: int) -> None:
        page = {"account_id": account_id, "limit": limit}
        await self.session.one("erase_upload_copies", **page)
        while await self.session.one("erase_uploads", **page):
            await self.session.one("erase_upload_copies", **page)
        await self.session.one("erase_account", account_id=account_id)

    async def scrub(self) -> bool:
        return await self.session.scrub()

    async def old_jobs(self, after: int, older_than: float, limit: int) -> Sequence[int]:
        rows = await self.session.one("old_jobs", after=after, older_than=older_than, limit=limit)
        return [row["id"] for row in rows]

    async def erase_inputs(self, job_ids: Sequence[int]) -> Sequence[int]:
        rows = await self.session.one("erase_inputs", job_ids=self.session.array(job_ids)) if job_ids else []
        return [row["id"] for row in rows]

    async def _window(self, name: str, after: int, limit: int, **more: float) -> int | None:
        """Return the last id of the next rows after an id; None if there are none."""
        found: int | None = (await self.session.one(name, after=after, limit=limit, **more))[0]["id"]
        return found
