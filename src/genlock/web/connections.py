"""Limits of one HTTP connection: its head, its body, its time, and what it holds of the pool of all connections.

Requests of unauthenticated senders begin a few at a time; those with a secret that was accepted lately begin at once.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from genlock.web.admission import Handling
from genlock.web.connection_pool import ConnectionPool
from genlock.web.joined_writes import JoinedWrites

#: Bytes of a URL. Proxies pass on none that is longer, and decoding one of 40 kB takes milliseconds.
URL_BYTES_MAX = 8000
#: bytes of a request that are not its body: request line, headers, chunk sizes, trailers
HEAD_BYTES_MAX = 16_000
#: the same for a sender with a secret, who may send a file in thousands of chunks
AUTHENTICATED_HEAD_BYTES_MAX = 200_000
HEADERS_MAX = 100
HEAD_SECONDS = 15.0
#: longer than any endpoint waits for a body
BODY_SECONDS = 30.0
#: the same for a sender with a secret, who may send a file
AUTHENTICATED_BODY_SECONDS = 150.0
#: Further requests that a client may send on one connection before the first of them is answered. Clients wait for the
#: answer, as a rule, and each request takes memory before it is its turn.
PIPELINED_MAX = 2
#: how long a client may take to read the last answer when the service stops
LAST_ANSWER_SECONDS = 1.0
#: One read takes at most this much, so that no more of a body is in memory before the endpoint has checked the sender.
READ_BYTES = 8192
#: pieces in which a body may arrive before its sender is authenticated: one of one-byte chunks takes the parser long
PIECES_MAX = 200
#: The ASGI extension through which an endpoint tells that the sender of a request is authenticated, and which API
#: client it is. Returns whether that sender may have one more connection.
AUTHENTICATED = "genlock.authenticated"

#: The ASGI extension through which an endpoint that waits asks to be called once when its client is gone. A task that
#: receives the disconnection would cost more than the wait.
WHEN_GONE = "genlock.when_gone"

#: The ASGI extension through which an endpoint closes a connection whose client does not read its answer.
ABORT = "genlock.abort"

HEALTH_PATH = "/health"

# Every read fills this buffer, and is copied from it before the next read of any connection.
_buffer = bytearray(READ_BYTES)
#: replaces the head of a request that was answered
_NO_SCOPE: Any = {}


class HttpProtocol(HttpToolsProtocol):
    """Refuses requests with too large a head, and closes connections that do not send a whole request in time."""

    def __init__(self, pool: ConnectionPool, config: Config, server_state: ServerState, **more: Any) -> None:
        super().__init__(config, server_state, **more)
        self._pool = pool
        self._timer: asyncio.TimerHandle | None = None
        self._authenticated = False
        #: whether a request has begun that is not complete yet
        self._receiving = False
        #: bytes of requests that are not answered yet
        self._held_bytes = 0
        self._head_bytes = 0
        self._header_count = 0
        #: pieces of a body
        self._pieces = 0
        #: of the secret that the request carries which is being answered
        self._fingerprint: int | None = None
        #: of the last answer
        self._status = 0
        #: how that request is handled if its sender is unknown
        self._handling: Handling | None = None
        #: called when the client of that request is gone
        self._when_gone: Callable[[], None] | None = None
        #: the request that an endpoint is answering or that waits; `cycle` may already be a pipelined one after it
        self._running: RequestResponseCycle | None = None

    # the transport's events

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's signature
        self._writes = JoinedWrites(transport, self.loop)
        super().connection_made(cast(asyncio.Transport, self._writes))
        self._hold(0)
        self._expect(HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        if self._writes.is_ending():  # it would be handled, but not answered
            return
        self._head_bytes += len(data)
        self._hold(self._held_bytes + len(data))
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._writes.is_ending():  # the parser refused it
            self._abandon()
            self._look_again()
        elif self._head_bytes > self._head_bytes_max or self._header_count > HEADERS_MAX:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        elif self._timer is None and self._is_idle and self.timeout_keep_alive_task is None:
            self._expect(HEAD_SECONDS)  # empty lines between requests end uvicorn's own timer

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        self._pool.remove(self)
        self._abandon()  # uvicorn tells only the last of several pipelined requests that its client is gone
        super().connection_lost(exc)
        self._unset_keepalive_if_required()  # uvicorn does not after an error
        self._free()
        self._running = self.cycle = self._handling = None  # type: ignore[assignment]

    # the parser's events

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= PIPELINED_MAX:
            raise ValueError("too many pipelined requests")
        self._unset_keepalive_if_required()
        super().on_message_begin()
        own: Any = {  # ASGI types them as JSON
            AUTHENTICATED: self._authenticate,
            WHEN_GONE: self._call_when_gone,
            ABORT: self.discard,
        }
        self.scope["extensions"] = own
        self._receiving = True
        self._head_bytes = self._header_count = self._pieces = 0
        if self._timer is None:  # a further request on the same connection
            self._expect(HEAD_SECONDS)

    def on_url(self, url: bytes) -> None:
        if len(self.url) + len(url) > URL_BYTES_MAX:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG)
            raise ValueError("the URL is too long")  # ends the parsing
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count <= HEADERS_MAX:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._expect(BODY_SECONDS)
        is_upgrade = self.parser.should_upgrade()
        if is_upgrade and _has_body(self.headers):  # the parser would take its body for the next request
            raise ValueError("a request to change the protocol has a body")
        super().on_headers_complete()
        if is_upgrade:  # the parser has dropped what it read behind the head
            self.cycle.keep_alive = False
        self.url, self.headers = b"", []  # the parsed head has them; what follows a body does not become a part of it
        self.flow.pause_reading()  # until the endpoint asks for the body, or has answered

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        self._pieces += not self._authenticated
        if self._pieces > PIECES_MAX:
            raise ValueError("too many pieces of a body")
        super().on_body(body)
        if not self.cycle.response_complete:  # then nothing would ask for the rest
            self.flow.pause_reading()  # one read at a time, so that connections take turns

    def on_message_complete(self) -> None:
        self._receiving = False
        self._expect(None)
        super().on_message_complete()
        if self._is_idle:  # the answer came before the rest of the body
            self._free()
            self._held_bytes = 0
            self._look_again()
        self._hold(self._held_bytes)  # with an answer to come, it does not count as idle any more

    # the endpoint's events

    def on_response_complete(self) -> None:
        refused = self._status < HTTPStatus.INTERNAL_SERVER_ERROR  # an error of ours says nothing about the secret
        if self._fingerprint is not None and not self._authenticated and refused:  # such as a key that was revoked
            self._pool.secrets.discard(self._fingerprint)
        self._authenticated = False  # the next request on the connection may be another sender's, behind a proxy
        if self._running is not None:
            self._running.scope = _NO_SCOPE  # the connection may stay open, and its head is not counted any more
        if self._writes.is_ending():
            self.pipeline.clear()
        if not self._receiving and not self.pipeline:
            self._free()
        self._hold(self._head_bytes if self._receiving else 0)
        super().on_response_complete()

    def _authenticate(self, sender: str | None = None) -> bool:
        if self.transport.is_closing():  # nothing would end its count: the client left while its secret was checked
            return True
        if not self._pool.authenticate(self, sender):
            return False
        self._authenticated = True
        if self._fingerprint is not None:
            self._pool.secrets.add(self._fingerprint, sender or "")
        if self._handling is not None:
            self._handling.exempt()
        if self._receiving:
            self._expect(AUTHENTICATED_BODY_SECONDS)
        return True

    def _call_when_gone(self, call: Callable[[], None]) -> None:
        if self.transport.is_closing():
            call()
            return
        self._when_gone = call
        self._notice_end()

    def _notice_end(self) -> None:
        """Go on reading once the whole request has arrived: only a read shows that the client closed the connection."""
        if not self._receiving:
            self.flow.resume_reading()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        self._handling = self._when_gone = None
        self._fingerprint = self._pool.secrets.find(cycle.scope["headers"])
        handle = app if self._fingerprint in self._pool.secrets else partial(self._handle_unknown, app, cycle)

        async def noting_status(send: Any, message: Any) -> None:
            self._status = message.get("status", self._status)
            await send(message)

        async def serve(scope: Any, receive: Any, send: Any) -> None:
            try:
                await handle(scope, receive, partial(noting_status, send))
            except asyncio.CancelledError:  # only a stop does this, when its time for open requests is over
                self.discard()

        super()._start_asgi_task(cycle, serve)

    async def _handle_unknown(self, app: Any, cycle: RequestResponseCycle, scope: Any, receive: Any, send: Any) -> None:
        senders = self._pool.probes if scope["path"] == HEALTH_PATH else self._pool.unknown
        self._handling = handling = Handling(senders)
        if cycle.disconnected:
            handling.abandon()
        self._notice_end()

        async def receive_outside() -> Any:
            return await (receive() if cycle.message_event.is_set() else handling.outside(receive()))

        async def send_outside(message: Any) -> None:
            await (handling.outside(send(message)) if self.flow.write_paused else send(message))

        await handling.run(partial(app, scope, receive_outside, send_outside))

    def shutdown(self) -> None:
        """Close the connection, as the service stops; a client has a moment to read the last answer to its end."""
        super().shutdown()
        if self._is_idle:
            self.loop.call_later(LAST_ANSWER_SECONDS, self._writes.leave)

    def discard(self) -> None:
        """Close the connection at once and free what it holds."""
        self._abandon()
        self._free()
        self.transport.abort()

    def _abandon(self) -> None:
        """Keep endpoints from writing to a connection that is closed, and drop the body that they have not read."""
        self.pipeline.clear()
        for cycle in filter(None, (self._running, self.cycle)):
            cycle.disconnected = True
            cycle.body = bytearray()
            cycle.message_event.set()
        if self._handling is not None:
            self._handling.abandon()
        leaving, self._when_gone = self._when_gone, None
        if leaving is not None:
            leaving()

    def _free(self) -> None:
        """Drop the parsed head now: it refers to this object, so that only the garbage collector would free it."""
        self.scope = self.headers = None  # type: ignore[assignment]
        self.url = b""

    @property
    def is_answering(self) -> bool:
        """Whether a whole request waits for its answer."""
        return not self._receiving and self._running is not None and not self._running.response_complete

    @property
    def _is_idle(self) -> bool:
        return not self._receiving and (self._running is None or self._running.response_complete)

    @property
    def _head_bytes_max(self) -> int:
        return AUTHENTICATED_HEAD_BYTES_MAX if self._authenticated else HEAD_BYTES_MAX

    def _hold(self, held: int) -> None:
        self._held_bytes = held
        if not self._authenticated and not self.transport.is_closing():
            self._pool.update(self, held)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer a request before it has arrived completely, and close the connection."""
        if not self.transport.is_closing():
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            self.transport.write(head.encode())
            self._end()

    def _end(self) -> None:
        """Close the connection; a client that has not read earlier answers may do so."""
        self._abandon()
        self.transport.close()
        self._look_again()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._look_again()

    def _look_again(self) -> None:
        """Close the connection after a while. If it is ending, the client has not read its last answer yet."""
        self._unset_keepalive_if_required()
        if not self.transport.is_closing():
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _expect(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._end)


def _has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)


class BoundedReader(asyncio.BufferedProtocol):
    """Hands the connection's bytes to the HTTP protocol in pieces of at most READ_BYTES.

    Without it the event loop reads up to 256 kB from each connection before any endpoint runs.
    """

    def __init__(self, http: HttpProtocol) -> None:
        self._http = http
        self.connection_made = http.connection_made  # type: ignore[assignment,method-assign]
        self.connection_lost = http.connection_lost  # type: ignore[method-assign]
        self.eof_received = http.eof_received  # type: ignore[method-assign]
        self.pause_writing = http.pause_writing  # type: ignore[method-assign]
        self.resume_writing = http.resume_writing  # type: ignore[method-assign]

    def get_buffer(self, sizehint: int) -> bytearray:
        return _buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._http.data_received(bytes(memoryview(_buffer)[:nbytes]))
