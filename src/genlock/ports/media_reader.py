"""What reads files that users and providers sent."""

from typing import IO, Protocol

from genlock.domain.media_format import Format


class MediaReader(Protocol):
    """Reads files whose content may be hostile."""

    async def measure(self, file: IO[bytes]) -> float | None:
        """Return how long a file plays; None if that cannot be determined.

        Raises TooComplex, and ChannelBusy if the instance stops meanwhile.
        """

    async def fit_photo(self, file: IO[bytes], size: int, format_: Format) -> IO[bytes] | None:
        """Convert an image that the channel would refuse as a photo; return None if it can stay as it is.

        Raises NotUsableAsPhoto and TooComplex, and ChannelBusy if the instance stops meanwhile.
        """

    async def close(self) -> None: ...
