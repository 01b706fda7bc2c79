"""The MessageTexts port: the texts and buttons that a channel shows about a job."""

from dataclasses import dataclass
from typing import Protocol

from genlock.domain.delivery import Part
from genlock.domain.job import Job


@dataclass(frozen=True, kw_only=True, slots=True)
class Button:
    """A button below a message: it opens a URL, or reports its data when it is pressed."""

    text: str
    #: what the channel reports when the button is pressed, at most 64 bytes
    data: str | None = None
    url: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OutgoingMessage:
    """A message to a user."""

    #: in the channel's own markup
    text: str
    #: rows of buttons
    buttons: tuple[tuple[Button, ...], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FileLabel:
    """The title and the performer of a result file, in plain text."""

    title: str
    performer: str
    #: an image must arrive unchanged
    exact: bool = False


class MessageTexts(Protocol):
    """Pure: the same job gives the same text, so that a repeated edit changes nothing."""

    def label(self, job: Job) -> FileLabel:
        """Return the label of the result's files."""

    def waiting(self, job: Job, language: str, fraction: float | None) -> OutgoingMessage:
        """Return the text of the placeholder while the job runs. `fraction` is None before the provider has begun."""

    def placeholder(self, job: Job, language: str, index: int) -> OutgoingMessage:
        """Return the text of the message that part `index` will be put on.

        It must stay true: after a crash the message may remain in the chat.
        """

    def caption(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        """Return the caption of a part, at most 1,024 characters, with buttons for what can be done with it."""

    def link(self, job: Job, language: str, index: int, part: Part) -> OutgoingMessage:
        """Return the text with the link to a part that cannot be shown in any other way."""

    def failed(self, job: Job, language: str) -> OutgoingMessage:
        """Return the text about a job that ended without a result: what happened, the money, what to do."""

    def notice(self, job: Job, language: str) -> OutgoingMessage:
        """Return the short message after the end of the job. An empty text means: send none."""
