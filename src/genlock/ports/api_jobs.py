"""Jobs as API clients list and watch them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import HoldState


class JobVersion(NamedTuple):
    """What a client sees change of a job."""

    state: State
    delivery: Delivery
    hold_state: HoldState
    late: bool


class ApiJobStore(Protocol):
    async def api_job(self, job_id: int) -> Job | None:
        """Return a job that was ordered with an API key. Calls at the same time share one statement."""

    async def api_jobs(self, account_id: int, *, before: int | None, limit: int) -> list[Job]:
        """Return the jobs that an account ordered with its API keys, newest first, before a job id."""

    async def api_jobs_by_id(self, job_ids: Sequence[int]) -> list[Job]: ...

    async def api_job_versions(self, job_ids: Sequence[int]) -> dict[int, JobVersion]:
        """Return what clients see change of jobs, by id."""

    async def api_jobs_after(self, positions: Mapping[int, int], limit: int) -> list[Job]:
        """Return jobs of API keys of several accounts, oldest first, each account's after the job id given for it."""

    async def newest_api_job_between(self, account_id: int, first: str, last: str) -> Job | None:
        """Return the job of an API key of the account with the greatest request key between two, both excluded.

        The database's collation decides the order, so the keys should differ only in digits.
        """

    async def api_jobs_without_end(self, account_id: int, limit: int) -> dict[int, JobVersion]:
        """Return the account's jobs of API keys that have not ended or are not delivered yet by id, newest first."""
