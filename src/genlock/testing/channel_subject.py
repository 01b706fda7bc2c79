"""The subject of the channel suite: a channel, and the place where its users see messages."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from genlock.ports import Channel
from genlock.testing.running import NotShown


class ChannelSituation(StrEnum):
    """What a subject brings about when it is asked to, for the next call."""

    BUSY = "busy"  #: the channel asks to wait; nothing is shown
    ANSWER_LOST = "answer_lost"  #: the call takes effect; the connection breaks before the answer
    UNREACHABLE_USER = "unreachable_user"  #: the user cannot be reached any more, from now on


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One message as its user sees it."""

    message: str
    text: str
    has_file: bool = False


class ChannelSubject(ABC):
    """A channel under test, and one user of it. What the subject cannot show raises NotShown."""

    #: where the user is reached, as an order names it
    address: str
    #: whether `shown` tells the texts of messages; a channel may only keep files
    shows_texts: bool = True
    #: the longest text that is put; longer ones are split first
    long_text: str = "A fox in the snow, and another line.\n" * 400

    @abstractmethod
    def make(self) -> Channel:
        """Return the channel as a new process makes it."""

    @abstractmethod
    async def shown(self) -> Sequence[Shown]:
        """Return the messages that the user sees now, oldest first."""

    async def arrange(self, situation: ChannelSituation) -> None:
        raise NotShown(f"the subject does not show: {situation}")

    async def delete(self, message: str) -> None:
        """Let the user delete a message."""
        raise NotShown("messages of this channel cannot be deleted")

    def picture_url(self) -> str:
        """Return the URL of a picture that the channel can show."""
        raise NotShown("the subject has no picture")

    def page_url(self) -> str:
        """Return the URL of a web page, which is no result."""
        raise NotShown("the channel does not look into files")
