"""What the channel says, asked of whoever knows the product: texts in Telegram's HTML and the buttons under them."""

from dataclasses import dataclass
from typing import Protocol

from genlock.channels.telegram.address import Address
from genlock.domain.delivery import Part
from genlock.domain.job import Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Button:
    text: str
    #: what a press brings back, at most 64 bytes
    data: str | None = None
    url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OutgoingMessage:
    #: Telegram's HTML
    text: str
    buttons: tuple[tuple[Button, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FileLabel:
    """What a file is called where it is played and stored: plain characters."""

    title: str
    performer: str


class MessageTexts(Protocol):
    """Pure: the same job gives the same words, so that saying them again changes nothing."""

    def label(self, job: Job) -> FileLabel:
        """What the files of a result are called."""

    def waiting(self, job: Job, address: Address, fraction: float | None) -> OutgoingMessage:
        """On the message that becomes the result, while the person waits. No fraction: it has not begun."""

    def placeholder(self, job: Job, address: Address, index: int) -> OutgoingMessage:
        """On the message that part `index` will be put on. True for ever, for it may be left behind by a crash."""

    def caption(self, job: Job, address: Address, index: int, part: Part) -> OutgoingMessage:
        """Under a part of the result, at most 1,024 characters; the original is one tap away."""

    def link(self, job: Job, address: Address, index: int, part: Part) -> OutgoingMessage:
        """The last way of showing a part: its link."""

    def failed(self, job: Job, address: Address) -> OutgoingMessage:
        """About a job that ended without a result: what happened, the money, what to do."""

    def notice(self, job: Job, address: Address) -> OutgoingMessage:
        """The short message after the end, which makes the sound that edits do not make. Without text: none."""
