"""Sends the head of an answer and the beginning of its body in one packet."""

import asyncio
from typing import Any

#: a longer piece is sent at once
HELD_BYTES_MAX = 4096
#: what is held is copied in front of a piece up to this size
JOINED_BYTES_MAX = 65_536


class JoinedWrites:
    """A transport that holds a short piece until the next one, at most until the end of this turn of the event loop.

    The server writes head and body one after the other; each write is a system call here and a wake-up of the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self.is_closing():  # uvloop raises an error for a connection that was reset meanwhile
            self._held = b""
            return
        held, self._held = self._held, b""
        if not held and 0 < len(data) <= HELD_BYTES_MAX:
            self._held = data
            self._loop.call_soon(self._flush)
        elif len(data) <= JOINED_BYTES_MAX:
            self._transport.write(held + data)
        else:
            self._transport.write(held)
            self._transport.write(data)

    def _flush(self) -> None:
        held, self._held = self._held, b""
        if held and not self.is_closing():
            self._transport.write(held)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._held = b""
        self._transport.abort()
