"""Searching jobs, in steps of a bounded number of rows."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from genlock.domain.attempt import AttemptCost
from genlock.domain.job import Job
from genlock.domain.job_search import FoundJobs, JobCount, JobFilter


class JobSearchStore(Protocol):
    async def search_jobs(
        self, filters: JobFilter, *, before: int | None = None, limit: int = 50, seconds: float = 0.06
    ) -> FoundJobs:
        """Return matching jobs below an id, newest first.

        The search begins no new step when `seconds` are over, so that the page may have fewer jobs than `limit` and
        yet not be the last.
        """

    async def count_jobs(self, filters: JobFilter) -> JobCount:
        """Return how many jobs match: exactly where that is cheap, otherwise estimated from a sample of the ids."""

    async def jobs_by_id(self, job_ids: Collection[int]) -> list[Job]:
        """Return those of the jobs that exist, newest first."""

    async def refunded_jobs(self, job_ids: Collection[int]) -> frozenset[int]:
        """Return those of the jobs whose price an operator has refunded."""

    async def attempt_costs(self, job_ids: Collection[int]) -> list[AttemptCost]:
        """Return what providers billed for attempts of the jobs, without the cost that is in the row of the job."""

    async def account_names(self, account_ids: Collection[int]) -> Mapping[int, str]:
        """Return the names of the users of accounts; a user without a name has the id of the channel."""

    async def job_providers(self) -> Sequence[str]:
        """Return the providers that have ever accepted a task."""
