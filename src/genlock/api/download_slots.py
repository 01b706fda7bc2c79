"""Downloads that this instance serves at the same time, counted by account."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from genlock.api.problems import too_many

#: of one account: each download holds memory and an open file, for as long as its reader takes
DOWNLOADS_PER_ACCOUNT = 100


class DownloadSlots:
    def __init__(self) -> None:
        self._downloads: Counter[int] = Counter()

    def check(self, account_id: int) -> None:
        """Raise Problem 429 if the account has no room for another download."""
        if self._downloads[account_id] >= DOWNLOADS_PER_ACCOUNT:
            detail = f"{DOWNLOADS_PER_ACCOUNT} results of this account are being read at the moment"
            raise too_many("too_many_downloads", detail, 5.0)

    async def counted(self, account_id: int, content: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
        """Yield the content, and count the download until it ends."""
        self._downloads[account_id] += 1
        try:
            async with aclosing(content):
                async for chunk in content:
                    yield chunk
        finally:
            self._downloads[account_id] -= 1
            self._downloads += Counter()  # drops accounts without a download
