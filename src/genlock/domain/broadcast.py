"""Messages that an operator sends to all users."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class BroadcastState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    DONE = "done"


@dataclass(frozen=True, kw_only=True, slots=True)
class Broadcast:
    id: int
    #: the words alone; with no content they are Telegram's HTML
    text: str
    #: the words with their looks and the file, as the bot writes it
    content: str
    author: str
    state: BroadcastState
    #: the last person it was given to
    reached: int
    sent: int
    failed: int
    total: int
    created_at: datetime
