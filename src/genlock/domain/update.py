"""Updates as the chat sent them: kept first, worked off later, in one lane per person."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Received(StrEnum):
    """What became of an update at the door."""

    FRESH = "fresh"  #: kept; somebody works it off
    KNOWN = "known"  #: kept before, under the same id
    REPEATED = "repeated"  #: the same press again, under a new id; kept, not worked off


class UpdateState(StrEnum):
    NEW = "new"  #: kept and acknowledged → done by the handler, or → aside when it fails too often
    DONE = "done"  #: its handler came to an end
    REPEATED = "repeated"  #: a press that the person's client sent twice; nothing to do
    DEAD = "dead"  #: its handler failed every time; kept for the operator


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUpdate:
    """An update on the doorstep."""

    bot: str
    update_id: int
    #: whose it is: updates of one lane are worked off one at a time, in order
    ordering_key: str
    kind: str
    #: its lane goes before all others
    urgent: bool
    #: tells what was pressed from all else, if it is a press
    dedup_key: str | None
    #: as it was sent, JSON
    body: str

    @property
    def correlation_id(self) -> str:
        return correlation_id(self.update_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """A kept update."""

    id: int
    bot: str
    update_id: int
    kind: str
    body: str
    state: UpdateState
    note: str
    received_at: datetime
    #: tries that were begun, this one too; more than one if somebody failed or died with it
    attempts: int

    @property
    def correlation_id(self) -> str:
        return correlation_id(self.update_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateQueue:
    """A person's lane, leased, with the first update in it (None: it was not to be seen yet)."""

    id: int
    token: int
    update: Update | None
    #: so many instances died with this update in hand, one after the other
    crash_count: int = 0


def correlation_id(update_id: int) -> str:
    """Ties an update's log lines to those of the job it orders."""
    return f"u{update_id}"
