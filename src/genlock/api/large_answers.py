"""Limits of large answers: they count as several requests, share a bounded memory, and must be read within a minute.

A client that reads slowly, or not at all, has its answers wait here. The connection takes them in pieces, so that
nothing but the piece on its way is copied.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from genlock.api.problems import unavailable
from genlock.web.requests import SMALL_BODY_BYTES, abort

#: bytes of large answers that wait to be read; an account may have a quarter, and half of what others leave
LARGE_ANSWERS_BYTES_MAX = 16_000_000
#: the same with the first answer of each account, which others that read slowly cannot keep from it
FIRST_ANSWERS_BYTES_MAX = 64_000_000
#: an answer takes a permit of its key for each of these, besides that of its request: while it is made, others wait
BYTES_PER_PERMIT = 10_000
PIECE_BYTES = 32_000
#: how long a client may take to read a large answer
READ_SECONDS_MAX = 60.0


def permits_of(response: Response) -> int:
    """Return how many permits an answer takes besides that of its request."""
    return len(getattr(response, "body", b"")) // BYTES_PER_PERMIT


class LargeAnswers:
    def __init__(self) -> None:
        #: bytes that wait, by account
        self._held: Counter[int] = Counter()

    def reserve_memory(self, response: Response, account_id: int) -> Response:
        """Return the answer; a large one keeps memory reserved until it is sent. Raises Problem 503."""
        size = len(response.body)
        if size <= SMALL_BODY_BYTES:
            return response
        own = self._held.get(account_id, 0)
        others = self._held.total() - own
        more_max = min(LARGE_ANSWERS_BYTES_MAX // 4, (LARGE_ANSWERS_BYTES_MAX - others) // 2)
        if own + size > (more_max if own else FIRST_ANSWERS_BYTES_MAX - others):
            raise unavailable(
                "too many large answers wait to be read; read those you have asked for to their end, and try again"
            )
        self._held[account_id] += size
        return _InPieces(response, partial(self._release, account_id, size))

    def _release(self, account_id: int, size: int) -> None:
        self._held[account_id] -= size
        if not self._held[account_id]:
            del self._held[account_id]


class _InPieces(Response):
    def __init__(self, whole: Response, release: Callable[[], None]) -> None:
        super().__init__(status_code=whole.status_code)
        self.raw_headers = whole.raw_headers
        self.body = whole.body
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                await self._send(send)
        except TimeoutError:
            abort(scope)
        finally:
            self._release()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, len(self.body), PIECE_BYTES):
            piece = bytes(self.body[start : start + PIECE_BYTES])
            has_more = start + PIECE_BYTES < len(self.body)
            await send({"type": "http.response.body", "body": piece, "more_body": has_more})
