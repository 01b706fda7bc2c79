"""Bulk actions: one thing that an operator has done to many jobs, in steps that survive a crash."""

import json
from datetime import datetime
from enum import StrEnum

from genlock.domain.job_search import JobCount, JobFilter
from genlock.domain.value import value

#: how many jobs can be named one by one
SELECTED_MAX = 500
#: failures that are stored with their reason; the others are only counted
FAILURES_KEPT = 1000


class BulkKind(StrEnum):
    RETRY = "retry"
    RESEND = "resend"
    CANCEL = "cancel"
    REFUND = "refund"


class BulkState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"  #: by an operator; the step that had begun is finished
    DONE = "done"


class BulkReason(StrEnum):
    """Why a job was left out."""

    MISSING = "missing"  #: there is no such job
    LEASED = "leased"  #: a worker is processing it at this moment
    PARKED = "parked"  #: the provider may have accepted it: submitting it again is decided for each job alone
    ENDED = "ended"  #: it has ended, so that there is nothing to retry or to cancel
    NO_RESULT = "no_result"  #: it has no result that was delivered or given up
    ERASED = "erased"  #: its result was erased at the user's wish
    NOT_PAID = "not_paid"  #: its price was not captured
    REFUNDED = "refunded"  #: it was refunded before
    ALLOWANCE = "allowance"  #: its author may not refund more today
    CHANGED = "changed"  #: it changed between being chosen and being acted on
    ERROR = "error"  #: an unexpected error; the detail names it


@value
class BulkFailure:
    job_id: int
    reason: BulkReason
    detail: str = ""


@value
class BulkTarget:
    """A job that a step is about to act on, with the fencing token that its row had."""

    job_id: int
    token: int


@value
class BulkSelection:
    """The jobs that match filters, or jobs that were named one by one."""

    filters: JobFilter | None = None
    job_ids: tuple[int, ...] = ()

    def dump(self) -> str:
        if self.filters is None:
            return json.dumps({"jobs": sorted(set(self.job_ids), reverse=True)})
        return json.dumps({"filters": self.filters.dump()}, ensure_ascii=False)

    @classmethod
    def load(cls, text: str) -> "BulkSelection":
        """Return the selection that `dump` returned."""
        stored = json.loads(text)
        if "jobs" in stored:
            return cls(job_ids=tuple(stored["jobs"]))
        return cls(filters=JobFilter.load(stored["filters"]))


@value
class BulkAction:
    id: int
    kind: BulkKind
    selection: BulkSelection
    #: who began it
    author: str
    state: BulkState
    #: the jobs below this id are still to be looked at
    below: int
    #: the jobs of the step that has begun: each was acted on, or will be; empty between steps
    step: tuple[BulkTarget, ...]
    #: grows with every write, so that only one instance continues
    version: int
    #: how many jobs matched when it began
    expected: JobCount
    done: int
    failed: int
    created_at: datetime
    #: None while a worker must look at it
    ended_at: datetime | None

    @property
    def share(self) -> float:
        """How much of it is over, from 0 to 1, as far as is known."""
        if self.ended_at is not None:
            return 1.0
        return min((self.done + self.failed) / max(self.expected.number, 1), 0.99)
