"""Bodies of refused requests: a client that is still sending sees the answer, and other requests are not held up."""

import asyncio

from starlette.requests import Request
from starlette.types import Message

from genlock.api.reading import DISCARDED_AT_ONCE, DISCARDED_BEGINNING_BYTES, RefusedBodies

CHUNK, CHUNKS = 100_000, 20
WHOLE = CHUNK * CHUNKS


class SendingClient:
    """Sends a body of twenty chunks, each when it is asked for and allowed to."""

    def __init__(self) -> None:
        self.sent = 0
        self.allowed = asyncio.Event()

    async def receive(self) -> Message:
        await self.allowed.wait()
        self.sent += CHUNK
        return {"type": "http.request", "body": bytes(CHUNK), "more_body": self.sent < WHOLE}

    def request(self) -> Request:
        return Request({"type": "http", "headers": [(b"content-length", b"%d" % WHOLE)]}, self.receive)


async def test_a_refused_body_is_read_to_its_end_if_its_sender_has_a_key_else_its_beginning() -> None:
    bodies, known, unknown = RefusedBodies(), SendingClient(), SendingClient()
    for client in (known, unknown):
        client.allowed.set()
        await bodies.discard(client.request(), is_known=client is known)

    assert known.sent == WHOLE
    assert unknown.sent <= DISCARDED_BEGINNING_BYTES + CHUNK


async def test_of_many_refused_bodies_at_once_only_a_few_are_read_to_their_end() -> None:
    bodies, clients = RefusedBodies(), [SendingClient() for _ in range(DISCARDED_AT_ONCE + 5)]
    reading = [asyncio.create_task(bodies.discard(client.request(), is_known=True)) for client in clients]
    await asyncio.sleep(0)  # all of them have begun
    for client in clients:
        client.allowed.set()
    await asyncio.gather(*reading)

    assert [client.sent == WHOLE for client in clients] == [True] * DISCARDED_AT_ONCE + [False] * 5

    late = SendingClient()
    late.allowed.set()
    await bodies.discard(late.request(), is_known=True)
    assert late.sent == WHOLE, "the others have ended"
