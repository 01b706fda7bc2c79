"""The Channel port: shows results to users and sends them messages."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.delivery import Part
from genlock.domain.errors import RecipientUnreachable
from genlock.domain.job import Job
from genlock.domain.value import value


@value
class Placed:
    """The channel's ids of a part it has shown: of the message, and of the file if it can be shown again by its id."""

    #: None if the channel accepted the message but has not numbered it yet
    message: str | None
    file: str | None = None


class Channel(Protocol):
    """Shows results. `put` sets a message to a content and may be repeated.

    `create_placeholder`, `send`, `notify` and `tell` create a new message and must not be repeated when the outcome
    is unknown.

    Raises LevelRefused, PlaceholderGone, ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable, AddressChanged and
    InvalidResult.
    """

    name: str

    def split(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Return the parts as this channel can show them: a text too long for one message becomes several. Pure."""
        return parts

    def progress_points(self, job: Job) -> Sequence[float]:
        """Return the fractions of the expected time at which progress is shown. Pure."""
        return ()

    async def create_placeholder(self, job: Job, index: int) -> str:
        """Send the message that part `index` will be put on later, and return its id."""

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        """Edit `part.message` so that it shows the part at its level. Idempotent."""

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        """Send the part as a new message, because the message to edit is gone."""

    async def notify(self, job: Job) -> None:
        """Send the short message after the end of the job, which makes the sound that edits do not make."""

    async def tell(self, address: str, text: str) -> None:
        """Send one message that no job depends on; `text` is in the channel's own markup.

        Raises RecipientUnreachable or another ChannelError when the message did not arrive or may not have arrived.
        A channel that cannot send such messages keeps this implementation.
        """
        raise RecipientUnreachable(f"the channel {self.name} sends no messages outside jobs")

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        """Show on the placeholder how far a running job is. Give up at the event loop's time `until`."""
