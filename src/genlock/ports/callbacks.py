"""The inbox: callbacks of providers, stored before they are parsed."""

from typing import Protocol

from genlock.domain.inbox import Callback, InboxState
from genlock.ports.instances import Role


class CallbackStore(Protocol):
    async def store_callback(self, provider: str, job_id: int | None, secret_hash: str, body: bytes) -> Callback:
        """Store a raw callback, with its job if the secret is that of the job."""

    async def is_callback_secret(self, job_id: int, provider: str, secret_hash: str) -> bool:
        """Whether this is the secret of a job's callback URL."""

    async def count_unauthenticated_callbacks(self, seconds: float, limit: int) -> int:
        """Count the callbacks of the last `seconds` that carried no job's secret, up to a limit."""

    async def claim_callbacks(self, limit: int, hold_seconds: float) -> list[Callback]:
        """Take stored callbacks that no instance settled in time, and hide them for `hold_seconds`."""

    async def settle_callback(
        self, callback_id: int, state: InboxState, task_id: str | None = None, note: str = ""
    ) -> None:
        """Set the final state of a callback that changes no job."""

    async def expire_callback(self, callback_id: int, older_than: float, note: str) -> bool:
        """Set a callback that could not be applied to expired, if it has waited `older_than` seconds."""

    async def note_untrusted_callback(self, callback_id: int, provider: str, task_id: str) -> int | None:
        """Make the running job of an unauthenticated callback due for a status query, or store it as an orphan.

        A repeated callback about the same task has the same effect, but its body is not kept. Returns the job.
        """

    async def match_orphans(self, limit: int) -> list[tuple[int, int]]:
        """Match orphans with jobs that know their task by now, and make these jobs due. Returns (callback, job)."""

    async def expire_orphans(self, older_than: float, role: Role) -> list[int]:
        """Set old orphans to expired. Only the holder of the role may."""

    async def callbacks(self, state: InboxState, limit: int) -> list[Callback]:
        """Return the newest callbacks in a state."""
