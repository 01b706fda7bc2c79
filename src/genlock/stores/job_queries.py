"""Reading jobs."""

from collections.abc import Sequence

from genlock.domain.activity import Activity
from genlock.domain.attempt import Attempt
from genlock.domain.errors import AccountNotFound
from genlock.domain.job import OPEN, Job, State
from genlock.ports import OrderState
from genlock.stores.rows import Row, read_activity, read_attempt, read_job, read_order_state
from genlock.stores.scan import NEWEST, newest_between
from genlock.stores.session import Subject

#: how many jobs of an account are read to find out whether a message shows one of them
MESSAGE_WINDOW = 200
#: how many are read to find the one that a user replies to, and how many are returned: ids repeat between chats
REPLY_WINDOW, REPLY_JOBS = 500, 20
#: how many jobs of an account one statement reads to find those in a state
ACCOUNT_STEP = 2000


class JobLookups(Subject):
    async def job(self, job_id: int) -> Job | None:
        rows = await self.session.one("job", job_id=job_id)
        return read_job(rows[0], self.session.time) if rows else None

    async def attempts(self, job_id: int) -> list[Attempt]:
        return [read_attempt(row, self.session.time) for row in await self.session.one("attempts", job_id=job_id)]

    async def known_tasks(self, provider: str, task_ids: Sequence[str]) -> set[str]:
        rows = await self.session.one("known_tasks", provider=provider, task_ids=self.session.array(task_ids))
        return {row["task_id"] for row in rows}

    async def job_by_request_key(self, account_id: int, request_key: str) -> Job | None:
        rows = await self._accept_lookup(account_id, request_key)
        return read_order_state(rows[0], self.session.time).job if rows else None

    async def order_state(self, account_id: int, request_key: str, *, with_activity: bool = False) -> OrderState:
        if with_activity:
            rows = await self.session.one("order_lookup", account_id=account_id, request_key=request_key)
        else:
            rows = await self._accept_lookup(account_id, request_key)
        if not rows or rows[0]["available"] is None:
            raise AccountNotFound
        state = read_order_state(rows[0], self.session.time)
        return state._replace(activity=read_activity(rows[0])) if with_activity else state

    async def _accept_lookup(self, account_id: int, request_key: str) -> list[Row]:
        return await self.session.one("accept_lookup", account_id=account_id, request_key=request_key)

    async def jobs(
        self, *, state: State | None = None, account_id: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Job]:
        """Each kind of list has a statement of its own: one with optional filters would scan all jobs."""
        session, upper = self.session, NEWEST if before is None else min(before, NEWEST)
        if state is None and account_id is None:
            rows = await session.one("newest_jobs", before=upper, limit=limit)
        elif state is None:
            rows = await session.one("account_jobs", account_id=account_id, before=upper, limit=limit)
        elif state in OPEN:
            rows = await session.one("open_jobs", state=state.value, account_id=account_id, before=upper, limit=limit)
        elif account_id is None:
            rows = await newest_between(
                session, "jobs_between", "job_id_range", limit=limit, before=upper, state=state.value
            )
        else:
            rows = await self._account_jobs_in(state, account_id, upper, limit)
        return [read_job(row, session.time) for row in rows]

    async def _account_jobs_in(self, state: State, account_id: int, upper: int, limit: int) -> list[Row]:
        """Read the account's own jobs in steps: those of all accounts are very many more."""
        found: list[Row] = []
        account, jobs = {"account_id": account_id}, ACCOUNT_STEP
        while jobs == ACCOUNT_STEP and len(found) < limit:
            [step] = await self.session.one("account_job_floor", before=upper, size=ACCOUNT_STEP, **account)
            floor, jobs = step["floor"] or 0, step["jobs"]
            found += await self.session.one(
                "account_jobs_between",
                floor=floor, before=upper, state=state.value, limit=limit - len(found), **account,
            )  # fmt: skip
            upper = floor
        return found

    async def open_jobs(self, account_id: int, limit: int) -> list[Job]:
        rows = await self.session.one("account_open_jobs", account_id=account_id, limit=limit)
        return [read_job(row, self.session.time) for row in rows]

    async def jobs_needing_attention(self, limit: int) -> list[Job]:
        rows = await self.session.one("jobs_needing_attention", limit=limit)
        return [read_job(row, self.session.time) for row in rows]

    async def is_job_message(self, account_id: int, message: str) -> bool:
        return bool(
            await self.session.one("is_job_message", account_id=account_id, message=message, window=MESSAGE_WINDOW)
        )

    async def jobs_shown_by(self, account_id: int, message: str) -> list[Job]:
        rows = await self.session.one(
            "jobs_shown_by", account_id=account_id, message=message, window=REPLY_WINDOW, limit=REPLY_JOBS
        )
        return [read_job(row, self.session.time) for row in rows]

    async def activity(self, account_id: int) -> Activity:
        return read_activity((await self.session.one("order_lookup", account_id=account_id, request_key=""))[0])

    async def late_cancels(self, account_id: int) -> int:
        return int((await self.session.one("late_cancels", account_id=account_id))[0]["cancels"])
