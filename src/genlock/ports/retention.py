"""Deleting what is old."""

from typing import Protocol

from genlock.ports.instances import Role


class RetentionStore(Protocol):
    """Only the current holder of the role may delete."""

    async def prune_limits(self, idle_seconds: float, role: Role) -> int:
        """Delete limits that were not used for `idle_seconds`; a new row behaves the same. Returns their number.

        Each call looks at the next few thousand of them, and begins again after the last.
        """

    async def prune(self, what: str, older_than: float, limit: int, role: Role) -> int:
        """Delete up to `limit` old rows. Returns how many there were.

        `what`: updates, callbacks, unauthenticated_callbacks, ordered_uploads, upload_copies (since their provider
        deleted them), audit, job_events, anomalies or promo_uses (of codes for credits that have ended).
        """

    async def prune_next(self, what: str, older_than: float, limit: int, role: Role) -> int:
        """Delete up to `limit` old rows among the next ones, and continue there in the next call. Returns how many.

        `what`: uploads (those that no order or draft uses), free_runs (daily ones), drafts or update_queues (empty
        ones, of any age).
        """
