"""Callbacks: stored as received, processed afterwards."""

from datetime import datetime
from enum import StrEnum

from genlock.domain.value import value


class InboxState(StrEnum):
    NEW = "new"  #: stored and acknowledged → done, orphan or unreadable by the collect stage
    DONE = "done"  #: processed; its effect, if any, is committed
    ORPHAN = "orphan"  #: its job is not known → matched by the submit stage or the sweeper, → expired after an hour
    MATCHED = "matched"  #: an orphan whose job is known now; the job was made due for a status query
    EXPIRED = "expired"  #: no job, or no instance with its provider, was found in time; kept for the operator
    UNREADABLE = "unreadable"  #: could not be parsed; kept for the operator


@value
class Callback:
    """One stored callback."""

    id: int
    provider: str
    #: the job whose secret its URL carried; None without a secret or with a wrong one. In lists for the operator also
    #: the job whose task a matched callback names.
    job_id: int | None
    #: the task it names, once parsed
    task_id: str | None
    body: bytes
    state: InboxState
    note: str
    received_at: datetime
    #: that of the job, where the job is known
    correlation_id: str = ""
    #: the attempt whose secret its URL carried; None: not known
    attempt: int | None = None
