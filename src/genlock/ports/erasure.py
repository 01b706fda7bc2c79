"""Erasure of personal data, in bounded steps. Each may be repeated."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.account import Account


class ErasureStore(Protocol):
    async def open_jobs_until(self, account_id: int, until: int) -> int:
        """Count the account's jobs up to the id `until` that have not ended or still need work."""

    async def waits_for_handling(self, account: Account, older_than: float) -> bool:
        """Whether an update of the user that came more than some seconds ago is not handled yet."""

    async def erase_jobs(self, account_id: int, until: int, limit: int) -> int:
        """Erase inputs, results and error texts of the account's ended jobs, in pages of `limit`. Returns how many."""

    async def erase_messages(self, account: Account, limit: int) -> None:
        """Erase the bodies of the user's updates and of the callbacks for the account's jobs, in pages of `limit`."""

    async def erase_account(self, account_id: int, limit: int) -> None:
        """Erase the user's name, drafts and files, and what operators wrote about the user.

        The account stays with the id by which the channel knows the user, its balance, its ban and its ledger.
        """

    async def scrub(self) -> bool:
        """Remove what the database's files still hold of erased rows. False while others use them: repeat it then."""

    async def old_jobs(self, after: int, older_than: float, limit: int) -> Sequence[int]:
        """Return, in order, the ids of the next `limit` jobs after an id that are older than some seconds."""

    async def erase_inputs(self, job_ids: Sequence[int]) -> Sequence[int]:
        """Erase the inputs of those of the jobs that have ended. Returns the ids of those that have not."""
