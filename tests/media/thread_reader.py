"""Reads files in threads of the test process: for tests that are not about the process that does it in the service."""

import asyncio
from typing import IO

from genlock.domain.media_format import Format
from genlock.media.duration import file_duration
from genlock.media.photo import fit_photo


class ThreadReader:
    async def measure(self, file: IO[bytes]) -> float | None:
        return await asyncio.to_thread(file_duration, file)

    async def fit_photo(self, file: IO[bytes], size: int, format_: Format) -> IO[bytes] | None:
        return await asyncio.to_thread(fit_photo, file, size, format_)

    async def close(self) -> None:
        """Do nothing: threads end with their work."""
