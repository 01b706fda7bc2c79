"""Read request bodies within limits of size, time and memory, and answer with a code and a text."""

import asyncio
from collections import Counter
from types import TracebackType
from typing import Self

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from genlock.web.connections import ABORT, AUTHENTICATED

BODY_SECONDS_MAX = 15
#: a body up to this size is read before its sender is authenticated; larger ones share `BodyMemory`
SMALL_BODY_BYTES = 64_000
#: an API client's body counts from this size on, because one client may send hundreds of requests at a time
CLIENT_BODY_BYTES = 4_000
#: bytes of large bodies that are in memory at the same time; parsing one takes a multiple of its size
LARGE_BODIES_BYTES_MAX = 8_000_000
#: bytes of all bodies of API clients. What is above `LARGE_BODIES_BYTES_MAX` is for a client's only body, so that
#: clients who send slowly cannot keep it out.
FIRST_BODIES_BYTES_MAX = 32_000_000


class RequestRefused(Exception):
    """The request is answered with an error status and nothing is stored."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def body_too_large() -> RequestRefused:
    return RequestRefused(413, "the body is too large")


class BodyMemory:
    """Bounds the memory of large bodies: one bound for API clients, whose senders are named, and one for all others.

    Of the other bodies, unauthenticated ones may take half. A client may always have one body; with further ones it may
    take a quarter of the memory, and at most half of what other clients leave.
    """

    def __init__(self, bytes_max: int = LARGE_BODIES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        #: without those of API clients
        self._held = 0
        self._held_by: Counter[str] = Counter()

    def reserve(self, number: int, *, authenticated: bool, sender: str = "", reserved: int = 0) -> None:
        """Reserve bytes for a body that has reserved some before. Raises RequestRefused."""
        if sender:
            is_over = self._exceeds_share(sender, number, reserved)
        else:
            is_over = self._held + number > (self._bytes_max if authenticated else self._bytes_max // 2)
        if is_over:
            raise RequestRefused(503, "too many large bodies at the same time; try again later")
        self._add(number, sender)

    def _exceeds_share(self, sender: str, number: int, reserved: int) -> bool:
        own = self._held_by[sender]
        others = self._held_by.total() - own
        if own == reserved:  # it is the only body of this client
            return others + own + number > FIRST_BODIES_BYTES_MAX
        return own + number > min(self._bytes_max // 4, (self._bytes_max - others) // 2)

    def release(self, number: int, sender: str = "") -> None:
        self._add(-number, sender)

    def _add(self, number: int, sender: str) -> None:
        if not sender:
            self._held += number
            return
        self._held_by[sender] += number
        if not self._held_by[sender]:
            del self._held_by[sender]


class Reservation:
    """What one body has reserved: nothing as long as it is small, then its whole size."""

    def __init__(self, memory: BodyMemory, sender: str = "") -> None:
        self._memory = memory
        self._sender = sender
        self._reserved = 0

    def hold(self, size: int, *, authenticated: bool) -> None:
        """Reserve what a body of this size needs. Raises RequestRefused."""
        small = CLIENT_BODY_BYTES if self._sender else SMALL_BODY_BYTES
        if size > small and size > self._reserved:
            self._memory.reserve(
                size - self._reserved, authenticated=authenticated, sender=self._sender, reserved=self._reserved
            )
            self._reserved = size

    def release(self) -> None:
        self._memory.release(self._reserved, self._sender)


class IncomingBody:
    """The body of one request, read in steps. Its memory is reserved until the `with` block ends."""

    def __init__(self, request: Request, memory: BodyMemory, sender: str = "") -> None:
        self._request = request
        self._reservation = Reservation(memory, sender)
        self._chunks = request.stream()
        self._body = bytearray()
        self._deadline = asyncio.get_running_loop().time() + BODY_SECONDS_MAX
        self.authenticated = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._reservation.release()

    def authenticate(self) -> None:
        """Record that the sender has proved to know a secret: its connection is not closed to make room."""
        self.authenticated = True
        mark = self._request.scope.get("extensions", {}).get(AUTHENTICATED)
        if mark is not None:
            mark()

    async def read(self, bytes_max: int) -> bytes | None:
        """Return the body; None as soon as it is known to have more than `bytes_max` bytes. Raises RequestRefused.

        After None, the rest can be read with a higher limit.
        """
        declared = self._request.headers.get("content-length", "")
        if declared.isascii() and declared.isdigit() and int(declared[:18]) > bytes_max:
            return None
        try:
            async with asyncio.timeout_at(self._deadline):
                while len(self._body) <= bytes_max:
                    chunk = await anext(self._chunks, None)
                    if chunk is None:
                        return bytes(self._body)
                    self._body += chunk
                    self._reservation.hold(len(self._body), authenticated=self.authenticated)
        except ClientDisconnect:
            raise RequestRefused(400, "the body is incomplete") from None
        except TimeoutError:
            raise RequestRefused(408, "the body took too long") from None
        return None


def answer(status: int, text: str) -> Response:
    """Answer with a code and a text, as JSON."""
    return JSONResponse({"code": status, "msg": text}, status)


def refusal(refused: RequestRefused) -> Response:
    """Answer a refused request, and close the connection instead of receiving the rest of the body."""
    response = answer(refused.status, refused.reason)
    response.headers["Connection"] = "close"
    return response


def abort(scope: Scope) -> None:
    """Close the connection of a request at once, where the server can: its client does not read the answer."""
    close = scope.get("extensions", {}).get(ABORT)
    if close is not None:
        close()
