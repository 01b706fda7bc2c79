"""Bulk actions: what an operator has done to many jobs."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.bulk import BulkAction, BulkFailure, BulkKind, BulkSelection, BulkState, BulkTarget
from genlock.domain.job_search import JobCount


class BulkStore(Protocol):
    async def begin_bulk_action(
        self, kind: BulkKind, selection: BulkSelection, *, author: str, request_key: str, expected: JobCount
    ) -> BulkAction:
        """Start a bulk action on jobs that exist now. The same request key again gives the same bulk action."""

    async def bulk_action(self, bulk_id: int) -> BulkAction | None: ...

    async def bulk_actions(self, limit: int, before: int | None = None) -> list[BulkAction]:
        """Return bulk actions, newest first; `before` is an id, for paging."""

    async def open_bulk_actions(self, limit: int) -> list[BulkAction]:
        """Return the bulk actions that a worker must look at, oldest first."""

    async def bulk_failures(self, bulk_id: int, limit: int, after: int = 0) -> list[BulkFailure]:
        """Return the jobs that were left out, by job id; `after` is a job id, for paging."""

    async def begin_bulk_step(
        self, action: BulkAction, step: Sequence[BulkTarget], below: int, failures: Sequence[BulkFailure]
    ) -> BulkAction | None:
        """Record which jobs are acted on next, before it is done. None if it was stopped or another instance did it."""

    async def finish_bulk_step(
        self, action: BulkAction, *, done: int, failures: Sequence[BulkFailure]
    ) -> BulkAction | None:
        """Record that every job of the step was acted on. None if another instance has recorded it."""

    async def stop_bulk_action(self, bulk_id: int) -> bool:
        """Begin no further step. Returns False if it was not running."""

    async def end_bulk_action(self, action: BulkAction, state: BulkState) -> bool:
        """End a bulk action between two steps. Returns False if it has changed meanwhile."""
