"""Downloads that this instance serves at the same time, counted by account."""

import asyncio
from collections import Counter
from types import TracebackType
from typing import Any, Self

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from genlock.api.problems import too_many
from genlock.web.requests import abort

#: of one account: each download holds memory and an open file, for as long as its reader takes
DOWNLOADS_PER_ACCOUNT = 100
#: of all accounts: one gets at most half of what others leave, so that many slow readers together hold little memory
DOWNLOADS_MAX = 250
#: of one account, however many the others have
DOWNLOADS_PER_ACCOUNT_MIN = 3
#: how long a client may read nothing of a download
STALLED_SECONDS = 60.0


class DownloadSlots:
    def __init__(self) -> None:
        self._downloads: Counter[int] = Counter()

    def check(self, account_id: int) -> None:
        """Raise Problem 429 if the account has no room for another download."""
        own = self._downloads.get(account_id, 0)
        half_of_the_rest = (DOWNLOADS_MAX - (self._downloads.total() - own)) // 2
        if own >= min(DOWNLOADS_PER_ACCOUNT, max(DOWNLOADS_PER_ACCOUNT_MIN, half_of_the_rest)):
            detail = f"{own} downloads of this account are in progress, and there is no place for another one"
            raise too_many("too_many_downloads", detail, 5.0)

    def take(self, account_id: int) -> "DownloadSlot":
        """Take a slot for a download, before anything is read. Raises Problem 429."""
        self.check(account_id)
        self._downloads[account_id] += 1
        return DownloadSlot(self, account_id)

    def release(self, account_id: int) -> None:
        self._downloads[account_id] -= 1
        if not self._downloads[account_id]:
            del self._downloads[account_id]


class DownloadSlot:
    """The slot of one download. It is released after the answer, or when an error ends the `with` block earlier."""

    def __init__(self, slots: DownloadSlots, account_id: int) -> None:
        self._slots: DownloadSlots | None = slots
        self._account_id = account_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is not None:
            self.close()

    def __del__(self) -> None:
        self.close()  # the answer was never started

    def close(self) -> None:
        slots, self._slots = self._slots, None
        if slots is not None:
            slots.release(self._account_id)

    def answer(self, *arguments: Any, **options: Any) -> StreamingResponse:
        """Return a StreamingResponse with these arguments, which releases the slot when it has been sent."""
        response = _Counted(*arguments, **options)
        response.slot = self
        return response


class _Counted(StreamingResponse):
    slot: DownloadSlot

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            try:
                async with asyncio.timeout(STALLED_SECONDS):
                    await send(message)
            except TimeoutError:
                abort(scope)  # this ends the answer, as if the client had closed the connection

        try:
            await super().__call__(scope, receive, send_in_time)
        finally:
            self.slot.close()
