"""Jobs as API clients list and watch them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState
from genlock.ports import JobVersion
from genlock.stores.batch import Item
from genlock.stores.rows import read_job
from genlock.stores.scan import NEWEST
from genlock.stores.session import Session, Subject


class ApiJobs(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._job = session.reads("api_jobs_by_id", self._run_jobs)

    async def api_job(self, job_id: int) -> Job | None:
        return await self._job(Item(job_id, {}, {"job_id": job_id}, None))

    async def _run_jobs(self, items: list[Item[None]]) -> list[Job | None]:
        found = {row["id"]: row for row in await self.session.rows("api_jobs_by_id", items)}
        time = self.session.time
        return [read_job(found[item.key], time) if item.key in found else None for item in items]

    async def api_jobs(self, account_id: int, *, before: int | None, limit: int) -> list[Job]:
        upper = NEWEST if before is None else min(before, NEWEST)
        rows = await self.session.one("account_api_jobs", account_id=account_id, before=upper, limit=limit)
        return [read_job(row, self.session.time) for row in rows]

    async def api_jobs_by_id(self, job_ids: Sequence[int]) -> list[Job]:
        if not job_ids:
            return []
        rows = await self.session.many("api_jobs_by_id", {}, [{"job_id": job_id} for job_id in sorted(set(job_ids))])
        return [read_job(row, self.session.time) for row in rows]

    async def api_job_versions(self, job_ids: Sequence[int]) -> dict[int, JobVersion]:
        if not job_ids:
            return {}
        rows = await self.session.many("api_job_versions", {}, [{"job_id": job_id} for job_id in job_ids])
        return _read_versions(rows)

    async def api_jobs_after(self, positions: Mapping[int, int], limit: int) -> list[Job]:
        if not positions:
            return []
        pairs = enumerate(sorted(positions.items()))
        items = [{"ord": number, "account_id": account, "after": after} for number, (account, after) in pairs]
        rows = await self.session.many("api_jobs_after", {"limit": limit}, items)
        return [read_job(row, self.session.time) for row in rows]

    async def newest_api_job_between(self, account_id: int, first: str, last: str) -> Job | None:
        rows = await self.session.one("newest_api_job_between", account_id=account_id, first=first, last=last)
        return read_job(rows[0], self.session.time) if rows else None

    async def api_jobs_without_end(self, account_id: int, limit: int) -> dict[int, JobVersion]:
        rows = await self.session.one("account_api_jobs_without_end", account_id=account_id, limit=limit)
        return _read_versions(rows)


def _read_versions(rows: Iterable[Mapping[str, Any]]) -> dict[int, JobVersion]:
    return {
        row["id"]: JobVersion(
            State(row["state"]), Delivery(row["delivery"]), HoldState(row["hold_state"]), bool(row["late"])
        )
        for row in rows
    }
