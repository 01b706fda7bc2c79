"""A simulator that ends closes every connection."""

import asyncio
import socket

import pytest
from aiohttp import web

from genlock.sandbox.serving import serving
from tests.changes import PATIENCE_SECONDS


@pytest.mark.parametrize("turns", range(6))
async def test_a_connection_that_arrives_while_the_server_closes_is_closed(turns: int) -> None:
    async with serving(web.Application(), "127.0.0.1", 0) as url:
        client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
        for _ in range(turns):  # the server is between accepting the connection and registering it
            await asyncio.sleep(0)
    client.settimeout(PATIENCE_SECONDS)
    try:
        assert await asyncio.to_thread(client.recv, 1) == b""
    except ConnectionResetError:
        pass  # it was never accepted
    finally:
        client.close()
