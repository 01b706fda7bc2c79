"""The gallery: the results that a user keeps, one at a time."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.job import Job


class GalleryStore(Protocol):
    async def result_before(self, account_id: int, models: Sequence[str], before: int | None = None) -> Job | None:
        """Return the account's newest delivered result of these models below a job id; of all if there is none."""

    async def result_after(self, account_id: int, models: Sequence[str], after: int) -> Job | None:
        """Return the account's oldest delivered result of these models above a job id."""

    async def set_result_hidden(self, account_id: int, job_id: int, *, hidden: bool) -> bool:
        """Remove a job from the account's gallery and history, or take it back. False if the job is not its own.

        The job, its money and its result stay.
        """
