"""Anomalies: what a provider did and should not have done. Most wait for an operator."""

from datetime import datetime
from enum import StrEnum

from genlock.domain.value import value


class AnomalyKind(StrEnum):
    CONTRADICTION = "contradiction"  #: the provider reported the opposite of its first report
    WRONG_TASK = "wrong_task"  #: a job's callback URL was called for another task
    LOSS = "loss"  #: the provider billed a job that was cancelled


#: operators should know of these, but there is nothing to do about them
INFORMS_ONLY = frozenset({AnomalyKind.LOSS})


@value
class Anomaly:
    """An anomaly of a job; a job has at most one of each kind."""

    id: int
    job_id: int
    kind: AnomalyKind
    at: datetime

    @property
    def informs_only(self) -> bool:
        return self.kind in INFORMS_ONLY
