"""Reading jobs."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from genlock.domain.activity import Activity
from genlock.domain.attempt import Attempt
from genlock.domain.job import Job, State


class OrderState(NamedTuple):
    """What the decision about an order needs of its account."""

    #: the job that the idempotency key was used for
    job: Job | None
    #: thousandths of a credit
    available: int
    #: jobs of API keys that have not ended
    open_api_jobs: int
    #: what the account has ordered recently, if it was asked for
    activity: Activity | None = None


class JobQueries(Protocol):
    async def job(self, job_id: int) -> Job | None: ...

    async def attempts(self, job_id: int) -> list[Attempt]:
        """Return the attempts of a job, in their order. None for a job of a version that did not record them."""

    async def known_tasks(self, provider: str, task_ids: Sequence[str]) -> set[str]:
        """Return those of the task ids that belong to a job, or to an attempt of one."""

    async def job_by_request_key(self, account_id: int, request_key: str) -> Job | None:
        """Return the job that an idempotency key of this account was used for."""

    async def order_state(self, account_id: int, request_key: str, *, with_activity: bool = False) -> OrderState:
        """Return what the decision about an order needs. Raises AccountNotFound."""

    async def jobs(
        self, *, state: State | None = None, account_id: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Job]:
        """Jobs, newest first, filtered by state and account; `before` is a job id, for paging."""

    async def open_jobs(self, account_id: int, limit: int) -> list[Job]:
        """Return the jobs of an account that have not ended, newest first."""

    async def jobs_needing_attention(self, limit: int) -> list[Job]:
        """Return the operator's list, oldest first."""

    async def is_job_message(self, account_id: int, message: str) -> bool:
        """Whether a message shows one of the account's jobs, and so must not be overwritten.

        For an account with hundreds of jobs the answer is always yes.
        """

    async def jobs_shown_by(self, account_id: int, message: str) -> list[Job]:
        """Return the newest jobs of an account that have a part on a message with this id, in any of its chats.

        Only the newest thousand jobs of the account are searched.
        """

    async def activity(self, account_id: int) -> Activity:
        """Return how many jobs the account has running and has ordered lately."""

    async def late_cancels(self, account_id: int) -> int:
        """Return how many jobs of the account were cancelled after their submit in the last 24 hours."""
