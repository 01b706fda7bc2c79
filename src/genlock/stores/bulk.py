"""Bulk actions: what an operator has done to many jobs."""

import json
from collections.abc import Sequence
from typing import Any

from genlock.domain.bulk import (
    FAILURES_KEPT,
    BulkAction,
    BulkFailure,
    BulkKind,
    BulkReason,
    BulkSelection,
    BulkState,
    BulkTarget,
)
from genlock.domain.errors import StoreError
from genlock.domain.job_search import CountKind, JobCount
from genlock.stores.rows import Row, Time, not_null
from genlock.stores.scan import NEWEST
from genlock.stores.session import Subject


class BulkActions(Subject):
    async def begin_bulk_action(
        self, kind: BulkKind, selection: BulkSelection, *, author: str, request_key: str, expected: JobCount
    ) -> BulkAction:
        below = max(selection.job_ids) + 1 if selection.filters is None else None
        # PostgreSQL does not see a row that another transaction adds during the statement; the second attempt does.
        for _ in range(2):
            rows = await self.session.one(
                "begin_bulk_action",
                kind=kind.value,
                selection=selection.dump(),
                author=author,
                request_key=request_key,
                below=below,
                expected=expected.number,
                expected_kind=expected.kind.value,
            )
            if rows:
                return _read_action(rows[0], self.session.time)
        raise StoreError(f"could not find or create the bulk action {request_key}")

    async def bulk_action(self, bulk_id: int) -> BulkAction | None:
        return self._bulk_or_none(await self.session.one("bulk_action", bulk_id=bulk_id))

    async def bulk_actions(self, limit: int, before: int | None = None) -> list[BulkAction]:
        rows = await self.session.one("bulk_actions", before=NEWEST if before is None else before, limit=limit)
        return [_read_action(row, self.session.time) for row in rows]

    async def open_bulk_actions(self, limit: int) -> list[BulkAction]:
        return [
            _read_action(row, self.session.time) for row in await self.session.one("open_bulk_actions", limit=limit)
        ]

    async def bulk_failures(self, bulk_id: int, limit: int, after: int = 0) -> list[BulkFailure]:
        rows = await self.session.one("bulk_failures", bulk_id=bulk_id, after=after, limit=limit)
        return list(map(_read_failure, rows))

    async def begin_bulk_step(
        self, action: BulkAction, step: Sequence[BulkTarget], below: int, failures: Sequence[BulkFailure]
    ) -> BulkAction | None:
        return self._bulk_or_none(
            await self.session.one(
                "begin_bulk_step",
                bulk_id=action.id,
                version=action.version,
                step=json.dumps([[lease.job_id, lease.token] for lease in step], separators=(",", ":")),
                below=below,
                **self._bulk_failure_params(action, failures),
            )
        )

    async def finish_bulk_step(
        self, action: BulkAction, *, done: int, failures: Sequence[BulkFailure]
    ) -> BulkAction | None:
        return self._bulk_or_none(
            await self.session.one(
                "finish_bulk_step",
                bulk_id=action.id,
                version=action.version,
                done=done,
                **self._bulk_failure_params(action, failures),
            )
        )

    async def stop_bulk_action(self, bulk_id: int) -> bool:
        return bool(await self.session.one("stop_bulk_action", bulk_id=bulk_id))

    async def end_bulk_action(self, action: BulkAction, state: BulkState) -> bool:
        return bool(
            await self.session.one("end_bulk_action", bulk_id=action.id, version=action.version, state=state.value)
        )

    def _bulk_failure_params(self, action: BulkAction, failures: Sequence[BulkFailure]) -> dict[str, Any]:
        kept = failures[: max(FAILURES_KEPT - action.failed, 0)]
        return {
            "failed": len(failures),
            "job_ids": self.session.array([failure.job_id for failure in kept]),
            "reasons": self.session.array([failure.reason.value for failure in kept]),
            "details": self.session.array([failure.detail for failure in kept]),
        }

    def _bulk_or_none(self, rows: Sequence[Row]) -> BulkAction | None:
        return _read_action(rows[0], self.session.time) if rows else None


def _read_action(row: Row, time: Time) -> BulkAction:
    return BulkAction(
        id=row["id"],
        kind=BulkKind(row["kind"]),
        selection=BulkSelection.load(row["selection"]),
        author=row["author"],
        state=BulkState(row["state"]),
        below=row["below"],
        step=tuple(BulkTarget(job_id=job_id, token=token) for job_id, token in json.loads(row["step"])),
        version=row["version"],
        expected=JobCount(number=row["expected"], kind=CountKind(row["expected_kind"])),
        done=row["done"],
        failed=row["failed"],
        created_at=not_null(time(row["created_at"])),
        ended_at=time(row["ended_at"]),
    )


def _read_failure(row: Row) -> BulkFailure:
    return BulkFailure(job_id=row["job_id"], reason=BulkReason(row["reason"]), detail=row["detail"])
