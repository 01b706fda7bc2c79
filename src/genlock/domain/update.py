"""Updates: events from a channel, stored before they are acknowledged, then handled in order, one queue per user."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from genlock.domain.correlation_ids import update_correlation_id


class Received(StrEnum):
    """What the store did with an incoming update."""

    FRESH = "fresh"  #: stored; a worker will handle it
    KNOWN = "known"  #: already stored under the same update id
    REPEATED = "repeated"  #: the same button at once again, under a new update id; stored, but not handled


class UpdateState(StrEnum):
    NEW = "new"  #: stored and acknowledged → done by its handler, → dead after too many failures
    DONE = "done"  #: its handler finished
    REPEATED = "repeated"  #: a button that the user's client sent twice; there is nothing to do
    DEAD = "dead"  #: its handler failed on every try; kept for the operator


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUpdate:
    """An incoming update that has not been stored yet."""

    bot: str
    update_id: int
    #: updates with the same key are handled one at a time, in order; usually the user's id
    ordering_key: str
    kind: str
    #: its queue is claimed before all others
    urgent: bool
    #: identifies the button and its message, so that a double press is stored once; None for other updates
    dedup_key: str | None
    #: the JSON text as received
    body: str

    @property
    def correlation_id(self) -> str:
        return update_correlation_id(self.update_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """A stored update."""

    id: int
    bot: str
    update_id: int
    kind: str
    body: str
    state: UpdateState
    note: str
    received_at: datetime
    #: tries begun, including the current one; above 1 when a handler failed or an instance crashed
    attempts: int

    @property
    def correlation_id(self) -> str:
        return update_correlation_id(self.update_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateQueue:
    """The leased queue of one ordering key, with its first update (None: not read yet)."""

    id: int
    token: int
    update: Update | None
    #: consecutive instance crashes while this update was being handled
    crash_count: int = 0
