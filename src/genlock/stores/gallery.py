"""The gallery of a user's results."""

from collections.abc import Sequence

from genlock.domain.job import Job
from genlock.stores.rows import read_job
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject


class Gallery(Subject):
    async def result_before(self, account_id: int, models: Sequence[str], before: int | None = None) -> Job | None:
        upper = NEWEST if before is None else min(before, NEWEST)
        rows = await self.session.one(
            "result_before", account_id=account_id, models=self.session.array(models), before=upper
        )
        return read_job(rows[0], self.session.time) if rows else None

    async def result_after(self, account_id: int, models: Sequence[str], after: int) -> Job | None:
        rows = await self.session.one(
            "result_after", account_id=account_id, models=self.session.array(models), after=min(after, NEWEST)
        )
        return read_job(rows[0], self.session.time) if rows else None

    async def set_result_hidden(self, account_id: int, job_id: int, *, hidden: bool) -> bool:
        return bool(await self.session.one("set_result_hidden", account_id=account_id, job_id=job_id, hidden=hidden))
