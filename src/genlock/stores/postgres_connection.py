"""What is done to every new connection to PostgreSQL: lost ones are noticed, and statements are planned before use."""

import socket
from contextlib import suppress
from typing import Any

import asyncpg

from genlock.stores.queries import load, positional

#: Statements that a user waits for. A new connection runs them once over no items, which changes nothing: the first run
#: on a connection reads the catalog and plans, and takes tens of milliseconds.
WARMED = (
    "api_keys_with_orders",
    "api_keys_with_jobs",
    "accept_job",
    "begin_submit",
    "mark_submitted",
    "reschedule",
    "end_job",
    "save_parts",
    "finish_delivery",
    "store_updates",
    "settle_updates",
)
#: After 30 s without traffic the system asks the server whether it is still there, and gives up after three questions.
#: So a firewall keeps an idle connection, and one that it has dropped does not wait for the next order.
KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


async def set_up(connection: Any) -> None:
    """Let the system notice when the connection is lost."""
    keep_alive(connection._transport.get_extra_info("socket"))  # noqa: SLF001 - asyncpg gives no other way to it


async def set_up_warm(connection: Any) -> None:
    """As `set_up`, and run the statements that users wait for once, over no items."""
    await set_up(connection)
    queries = load("postgres")
    for name in WARMED:
        text, names = positional(queries[name].text)
        # A newer version may have changed the schema while this instance still runs: the other statements are used.
        with suppress(asyncpg.PostgresError):
            await connection.fetch(text, *[None] * len(names))


def keep_alive(connected: socket.socket) -> None:
    """Set the options that the platform has. A Unix socket needs none."""
    if connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE.items():
        if hasattr(socket, name):
            connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
