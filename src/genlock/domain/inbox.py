"""Callbacks as they came in: stored first, understood later."""

from datetime import datetime
from enum import StrEnum

from genlock.domain.value import value


class InboxState(StrEnum):
    NEW = "new"  #: stored and acknowledged → done, orphan or unreadable by the collect stage
    DONE = "done"  #: its effect, or that it had none, is committed
    ORPHAN = "orphan"  #: its job is not known → matched by the submit stage or the sweep, → expired after an hour
    MATCHED = "matched"  #: an orphan whose job turned up; the job was made due for a status query
    EXPIRED = "expired"  #: an orphan nobody claimed, or of a provider nobody has; kept for the operator
    UNREADABLE = "unreadable"  #: could not be parsed; kept for the operator


@value
class Callback:
    """One stored callback."""

    id: int
    provider: str
    #: the job whose secret address it was sent to; None on the open door or with a wrong secret
    job_id: int | None
    #: the task it speaks of, once read
    task_id: str | None
    body: bytes
    state: InboxState
    note: str
    received_at: datetime
    #: the job's, where it is known
    correlation_id: str = ""
