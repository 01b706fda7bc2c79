"""Hostile clients, with a key and without one, cannot take the memory of a real `genlock serve` process."""

import asyncio
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from genlock.app.databases import open_store
from genlock.channels.api.address import ApiAddress
from genlock.domain.api_key import ALL_SCOPES
from genlock.domain.money import EntryKind
from genlock.engine.api_keys import create_api_key, ensure_api_account
from genlock.log import Silent
from genlock.sandbox.instance import Instance
from genlock.sandbox.processes import find_free_port
from tests.journeys.serve_setup import running_setup
from tests.stores.builders import PRICE, order

MEGABYTES_MAX = 200
HOLDERS = 300
HEADERS = 4
QUERIES, ROUNDS = 1600, 4
LARGE_JOBS, LISTS = 40, 150
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


async def test_a_client_with_a_key_that_does_not_read_its_answers_cannot_take_the_memory(tmp_path: Path) -> None:
    url, port = f"sqlite:///{tmp_path}/genlock.db", find_free_port()
    secret = await large_jobs(url)
    async for setup in running_setup(url, tmp_path):
        instance = await setup.start(GENLOCK_PORT=str(port), GENLOCK_PUBLIC_URL=f"http://127.0.0.1:{port}")
        await instance.wait_for_event("WEBHOOK_SET")
        lists = [await ask_for_list(port, secret) for _ in range(LISTS)]
        highest = await highest_megabytes(instance, seconds=3.0)
        await setup.telegram.add_user("Ann").say("hello")
        await instance.wait_for_event("UPDATE_DONE")
        for connection in lists:
            connection.close()
        assert highest < MEGABYTES_MAX


async def large_jobs(url: str) -> str:
    """Make an API client with jobs that have the longest prompts; return its secret."""
    store = await open_store(url, observer=Silent())
    try:
        account = await ensure_api_account(store, "client")
        await store.transfer(account, EntryKind.GRANT, LARGE_JOBS * PRICE, "test")
        key, secret = await create_api_key(
            store, account, name="", scopes=ALL_SCOPES, spend_limit=None, request_key="", author="test",
            random_bytes=os.urandom,
        )  # fmt: skip
        prompt = json.dumps({"prompt": "\N{GRINNING FACE}" * 20_000}, ensure_ascii=False)
        for _ in range(LARGE_JOBS):
            address = str(ApiAddress(request_hash="hash"))
            job = order(account, channel="api", address=address, model="nano-banana-2-lite", input=prompt, bot="",
                        api_key_id=key.id, deadline_seconds=3600.0)  # fmt: skip
            await store.accept_job(job, None)
    finally:
        await store.close()
    assert secret is not None
    return secret


async def ask_for_list(port: int, secret: str) -> socket.socket:
    """Ask for as much as there is; the kernel takes little of the answer, because nothing reads it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(0.0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, ("127.0.0.1", port))
    head = f"GET /v1/jobs?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {secret}\r\n\r\n"
    await loop.sock_sendall(connection, head.encode())
    return connection


async def highest_megabytes(instance: Instance, seconds: float) -> float:
    end, highest = asyncio.get_running_loop().time() + seconds, 0.0
    while asyncio.get_running_loop().time() < end:
        highest = max(highest, instance.megabytes)
        await asyncio.sleep(0.02)
    return highest


def close_all(writers: list[asyncio.StreamWriter | BaseException | None]) -> None:
    for writer in writers:
        if isinstance(writer, asyncio.StreamWriter):
            writer.close()
