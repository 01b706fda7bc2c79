"""The groups of the attention page: what waits for an operator, by reason, in the order of urgency."""

from dataclasses import dataclass
from enum import StrEnum

from genlock.dashboard.job_actions import JobAction
from genlock.domain.anomaly import INFORMS_ONLY, AnomalyKind
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode


class Source(StrEnum):
    """What the rows of a group are."""

    JOB = "job"
    ANOMALY = "anomaly"
    CALLBACK = "callback"
    UPDATE = "update"
    REFUND = "refund"
    COST = "cost"


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    #: its name in the counts, in the address and in the keys of its texts
    name: str
    source: Source
    #: the buttons of a group of jobs; the first is what usually helps
    actions: tuple[JobAction, ...] = ()

    @property
    def informs_only(self) -> bool:
        """Whether there is nothing to do: the group has a page, but is not listed among those that need attention."""
        return self.name in INFORMS_ONLY


_RETRY = (JobAction.RETRY, JobAction.RESEND, JobAction.CANCEL, JobAction.HANDLED)
_RESEND = (JobAction.RESEND, JobAction.REFUND, JobAction.HANDLED)


def _jobs(code: AttentionCode, actions: tuple[JobAction, ...]) -> Group:
    return Group(name=code.value, source=Source.JOB, actions=actions)


GROUPS: tuple[Group, ...] = (
    _jobs(AttentionCode.PARKED, _RETRY),
    _jobs(AttentionCode.POISON, _RETRY),
    _jobs(AttentionCode.STAGE_ERROR, _RETRY),
    _jobs(AttentionCode.UNKNOWN_DELIVERY, _RESEND),
    _jobs(AttentionCode.RETRIES_EXHAUSTED, _RESEND),
    _jobs(AttentionCode.UNDELIVERABLE, _RESEND),
    _jobs(AttentionCode.OTHER, _RETRY),
    Group(name="open_refund", source=Source.REFUND),
    Group(name="dead_update", source=Source.UPDATE),
    Group(name=AnomalyKind.CONTRADICTION.value, source=Source.ANOMALY),
    Group(name=AnomalyKind.WRONG_TASK.value, source=Source.ANOMALY),
    Group(name="cost_above_price", source=Source.COST),
    Group(name=AnomalyKind.LOSS.value, source=Source.ANOMALY),
    Group(name=InboxState.UNREADABLE.value, source=Source.CALLBACK),
    Group(name=InboxState.EXPIRED.value, source=Source.CALLBACK),
)
BY_NAME = {group.name: group for group in GROUPS}
