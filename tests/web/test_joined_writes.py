"""The head and the beginning of the body of an answer are sent together."""

import asyncio
from typing import Any

from genlock.web.joined_writes import HELD_BYTES_MAX, JOINED_BYTES_MAX, JoinedWrites


class Sent(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.pieces: list[bytes] = []

    def write(self, data: Any) -> None:
        self.pieces.append(data)

    def close(self) -> None:
        self.pieces.append(b"CLOSE")

    def abort(self) -> None:
        self.pieces.append(b"ABORT")

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def made() -> tuple[Sent, JoinedWrites]:
    sent = Sent()
    return sent, JoinedWrites(sent, asyncio.get_running_loop())


async def test_head_and_body_are_one_piece() -> None:
    sent, transport = await made()
    transport.write(b"head ")
    assert sent.pieces == []
    transport.write(b"body")
    assert sent.pieces == [b"head body"]
    await asyncio.sleep(0)
    assert sent.pieces == [b"head body"]
    assert transport.get_extra_info("peername") == ("127.0.0.1", 1)


async def test_a_head_without_a_body_is_sent_in_the_next_turn_of_the_event_loop() -> None:
    sent, transport = await made()
    transport.write(b"head")
    await asyncio.sleep(0)
    assert sent.pieces == [b"head"]


async def test_pieces_keep_their_order_whatever_their_sizes() -> None:
    sizes = [10, HELD_BYTES_MAX + 1, 0, 5, JOINED_BYTES_MAX + 1, 7, 0, HELD_BYTES_MAX, JOINED_BYTES_MAX, 3]
    sent, transport = await made()
    pieces = [bytes([number]) * size for number, size in enumerate(sizes)]
    for piece in pieces:
        transport.write(piece)
    await asyncio.sleep(0)
    assert b"".join(sent.pieces) == b"".join(pieces)


async def test_what_is_held_is_sent_before_a_close_and_dropped_by_an_abort() -> None:
    sent, transport = await made()
    transport.write(b"head")
    transport.close()
    assert sent.pieces == [b"head", b"CLOSE"]
    sent, transport = await made()
    transport.write(b"head")
    transport.abort()
    await asyncio.sleep(0)
    assert sent.pieces == [b"ABORT"]
