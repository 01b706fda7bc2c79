"""Sends the head of an answer and the beginning of its body in one packet, and closes connections for good."""

import asyncio
import fcntl
import socket
import struct
import termios
from contextlib import suppress
from typing import Any

#: a longer piece is sent at once
HELD_BYTES_MAX = 4096
#: what is held is copied in front of a piece up to this size
JOINED_BYTES_MAX = 65_536
#: a connection with fewer bytes that the client has not read is closed at once
UNREAD_BYTES_MAX = 4096
_NO_LINGERING = struct.pack("ii", 1, 0)


class JoinedWrites:
    """A transport that holds a short piece until the next one, at most until the end of this turn of the event loop.

    The server writes head and body one after the other; each write is a system call here and a wake-up of the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held = b""
        #: how much the client had not read when it was last looked at, since it was told that nothing more comes
        self._unread: int | None = None
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if self.is_ending():  # uvloop raises an error for a connection that was reset meanwhile
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

    def is_ending(self) -> bool:
        """Whether the connection is closed, or only sends what was written before."""
        return self._unread is not None or bool(self.is_closing())

    def close(self) -> None:
        """Close the connection, or only our direction if the client has not read a long answer yet.

        The kernel would keep the answer for minutes, without a limit of ours. So the client closes the connection when
        it has read everything; otherwise a further call drops what is left, unless the client has read since the one
        before. So does the limit of connections.
        """
        self._flush()
        unread, before = self._unread_bytes(), self._unread
        if self.is_closing() or unread <= UNREAD_BYTES_MAX:
            self._transport.close()
        elif before is not None and unread >= before:
            self.abort()
        else:
            self._unread = unread
            if before is None:
                self._transport.write_eof()

    def leave(self) -> None:
        """Close the connection now. What the kernel has of an answer is sent also after the process has ended."""
        self._flush()
        if self._transport.get_write_buffer_size():
            self.abort()
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close the connection at once, and drop what the client has not read."""
        self._held = b""
        if self._unread_bytes():
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self._transport.abort()

    def _unread_bytes(self) -> int:
        """Return how many bytes wait here and in the kernel; those in the kernel are known on Linux only."""
        waiting = self._transport.get_write_buffer_size()
        with suppress(OSError, ValueError, AttributeError):  # a closed connection, or none with a descriptor
            descriptor = self._transport.get_extra_info("socket").fileno()
            waiting += struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)))[0]
        return waiting
