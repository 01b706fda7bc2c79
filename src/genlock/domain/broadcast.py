"""Messages that an operator sends to the users of a bot."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class BroadcastState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    DONE = "done"


class BroadcastOutcome(StrEnum):
    """What became of the message to one recipient."""

    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"  #: the answer was lost, or the sender crashed during the call: it may have arrived


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """Which of the users that can be reached a broadcast goes to."""

    #: "" for every language
    language: str = ""
    #: True: users who have paid; False: users who never have; None: both
    paid: bool | None = None
    #: users who were not seen for this number of days; 0 for all users
    silent_days: int = 0


EVERYONE = Segment()
SILENT_DAYS_MAX = 3650


@dataclass(frozen=True, kw_only=True, slots=True)
class Broadcast:
    id: int
    bot: str
    #: the text alone; without `content` it is in the channel's markup
    text: str
    #: formatted text and file, in the bot's own format; "" for a plain text
    content: str
    author: str
    state: BroadcastState
    #: the account it was sent to last
    reached: int
    sent: int
    failed: int
    total: int
    created_at: datetime
    unknown: int = 0
    segment: Segment = EVERYONE


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipient:
    """A user to whom a broadcast is sent next."""

    account_id: int
    language: str
    #: where the channel reaches the user; empty if unknown
    address: str
    #: grows each time the recipient is taken
    token: int
