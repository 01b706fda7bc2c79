"""What shows results."""

from collections.abc import Sequence
from typing import Protocol

from genlock.domain.delivery import Part
from genlock.domain.job import Job
from genlock.domain.value import value


@value
class Placed:
    """What the channel says of a part it has shown."""

    message: str
    file: str | None = None


class Channel(Protocol):
    """Shows results. `put` sets a message to a content and may be repeated; `place`, `send` and `notify` may not.

    Raises LevelRefused, PlaceholderGone, ChannelBusy, ChannelOutcomeUnknown, RecipientUnreachable, AddressChanged and InvalidResult.
    """

    name: str

    def split(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The parts as this channel can show them: what is too long for a message becomes several. Pure."""
        return parts

    def progress_points(self, job: Job) -> Sequence[float]:
        """At which fractions of the expected time progress is shown. Pure."""
        return ()

    async def create_placeholder(self, job: Job, index: int) -> str:
        """Send an empty message that part `index` will be put on."""

    async def put(self, job: Job, index: int, part: Part) -> Placed:
        """Make `part.message` show the part at its level. Doing it again changes nothing."""

    async def send(self, job: Job, index: int, part: Part) -> Placed:
        """Show the part on a new message, because its own is gone."""

    async def notify(self, job: Job) -> None:
        """Send the short final notice."""

    async def progress(self, job: Job, fraction: float, until: float) -> None:
        """Show on the placeholder how far a running job is, or drop it: at the loop's time `until` it is over."""
