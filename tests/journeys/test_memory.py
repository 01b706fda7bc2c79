"""Unauthenticated senders cannot take the memory of a real `genlock serve` process."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from genlock.sandbox.processes import find_free_port
from tests.journeys.serve_setup import running_setup

MEGABYTES_MAX = 200
HOLDERS = 300
HEADERS = 4
QUERIES, ROUNDS = 1600, 4
#: every endpoint that takes a body, each with what an attacker can guess
PATHS = (
    b"/callbacks/kie/1." + b"A" * 43,
    b"/callbacks/kie",
    b"/telegram/webhook",
    b"/v1/jobs",
    b"/v1/files",
    b"/v1/videos",
    b"/dashboard/login",
)
BODY = (
    b"POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer glk_" + b"A" * 43 + b"\r\n"
    b"Content-Type: application/json\r\nContent-Length: 999999\r\n\r\n"
)
QUERY = b"GET %s?" + b"a" * 7_000 + b" HTTP/1.1\r\nHost: x\r\nCookie: genlock_session=" + b"A" * 43 + b"\r\n\r\n"


async def send(port: int, beginning: bytes, repeated: bytes, times: int) -> asyncio.StreamWriter | None:
    """Send until the server closes the connection or does not take more; return the connection if it is open."""
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    with suppress(ConnectionError):
        writer.write(beginning)
        for _ in range(times):
            writer.write(repeated)
            async with asyncio.timeout(0.2):
                await writer.drain()
    return writer


@pytest.fixture
def forked() -> None:
    """Start Python anew: a forked process shares memory with its parent."""


async def test_unauthenticated_senders_cannot_take_the_memory_and_a_user_is_answered(tmp_path: Path) -> None:
    port = find_free_port()
    async for setup in running_setup(f"sqlite:///{tmp_path}/genlock.db", tmp_path):
        instance = await setup.start(
            GENLOCK_PORT=str(port), GENLOCK_PUBLIC_URL=f"http://127.0.0.1:{port}", GENLOCK_KIE_WEBHOOK_KEY=""
        )
        await instance.wait_for_event("WEBHOOK_SET")
        attacks = [send(port, BODY % path, b" " * 65_536, 15) for path in PATHS for _ in range(HOLDERS // len(PATHS))]
        attacks += [send(port, b"GET / HTTP/1.1\r\nA: ", b"a" * 65_536, 600) for _ in range(HEADERS)]
        open_ones = asyncio.gather(*attacks, return_exceptions=True)
        await setup.telegram.add_user("Ann").say("hello")
        await instance.wait_for_event("UPDATE_DONE")
        close_all(await open_ones)
        for _ in range(ROUNDS):
            queries = (
                send(port, QUERY % path, b"", 1) for path in (*PATHS, b"/dashboard") for _ in range(QUERIES // 8)
            )
            close_all(await asyncio.gather(*queries, return_exceptions=True))
        assert instance.megabytes < MEGABYTES_MAX
        assert instance.running


def close_all(writers: list[asyncio.StreamWriter | BaseException | None]) -> None:
    for writer in writers:
        if isinstance(writer, asyncio.StreamWriter):
            writer.close()
