"""The servers that other tests use behave as those tests expect."""

import asyncio
from collections.abc import Callable

import asyncpg
import pytest

from genlock.sandbox.postgres import Postgres, PostgresServer
from tests.pgbouncer import POOL_SIZE


async def fetch_value(url: str, query: str) -> object:
    connection = await asyncpg.connect(url, statement_cache_size=0)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@pytest.mark.parametrize("end", [PostgresServer.stop, PostgresServer.crash])
async def test_a_server_comes_back_with_its_data(
    own_postgres: PostgresServer, end: Callable[[PostgresServer], None]
) -> None:
    url = own_postgres.create_database()
    await fetch_value(url, "CREATE TABLE stored AS SELECT 42 AS answer")

    end(own_postgres)
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(url)

    own_postgres.start()
    assert await fetch_value(url, "SELECT answer FROM stored") == 42


async def test_a_restart_breaks_open_connections(own_postgres: PostgresServer) -> None:
    connection = await asyncpg.connect(own_postgres.url("postgres"))

    await asyncio.to_thread(own_postgres.restart)

    with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError)):
        await connection.fetchval("SELECT 1")
    assert await fetch_value(own_postgres.url("postgres"), "SELECT 1") == 1


async def test_a_database_can_be_copied(postgres_server: Postgres, postgres_url: str) -> None:
    await fetch_value(postgres_url, "CREATE TABLE copied AS SELECT 42 AS answer")

    copy = postgres_server.create_database(template=postgres_url)

    assert await fetch_value(copy, "SELECT answer FROM copied") == 42
    postgres_server.drop_database(copy)


async def test_more_clients_than_pooled_connections_work_through_pgbouncer(pgbouncer_url: str) -> None:
    """A pooler in session mode would keep the clients beyond its pool waiting."""
    connections = [await asyncpg.connect(pgbouncer_url, statement_cache_size=0) for _ in range(2 * POOL_SIZE)]

    answers = [await connection.fetchval("SELECT 1") for connection in connections]

    assert answers == [1] * len(connections)
    for connection in connections:
        await connection.close()
