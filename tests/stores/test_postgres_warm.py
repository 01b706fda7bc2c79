"""The connections of a service are open and warm before an order needs them, and again after they were lost."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from genlock.domain.events import Event
from genlock.stores import postgres
from genlock.stores.postgres import PostgresStore
from genlock.stores.postgres_connection import KEEP_ALIVE, WARMED, keep_alive
from genlock.stores.queries import Query
from tests.changes import PATIENCE_SECONDS
from tests.stores.builders import account_with
from tests.stores.conftest import RecordingObserver
from tests.stores.open_postgres import complete_job, opened

CONNECTIONS = 4


async def until_all_are_open(store: PostgresStore) -> None:
    async with asyncio.timeout(30):
        while store.session.pool.get_size() < CONNECTIONS:  # noqa: ASYNC110 - asyncpg has no event for it
            await asyncio.sleep(0.01)


async def warmed(store: PostgresStore) -> list[int]:
    """How many statements each connection has planned."""
    pool = store.session.pool
    await store.session._connections.give_back_all()
    held = [await pool.acquire() for _ in range(CONNECTIONS)]
    found = [
        await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE generic_plans > 0")
        for connection in held
    ]
    for connection in held:
        await pool.release(connection)
    return found


async def test_every_connection_has_planned_the_statements_that_users_wait_for(
    postgres_url: str, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "REOPEN_SECONDS", 0.05)
    async with opened(postgres_url, observer, connections=CONNECTIONS, keep_open=True) as store:
        await until_all_are_open(store)
        assert min(await warmed(store)) >= len(WARMED)

        other = await asyncpg.connect(postgres_url)
        await other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        async with asyncio.timeout(30):
            while store.session.pool.get_size() == CONNECTIONS:  # noqa: ASYNC110 - asyncpg has no event for it
                await asyncio.sleep(0.01)
        await until_all_are_open(store)
        assert min(await warmed(store)) >= len(WARMED)
        await other.close()


async def test_warming_changes_nothing_and_does_not_disturb_the_work(
    postgres_url: str, observer: RecordingObserver
) -> None:
    async with opened(postgres_url, observer, connections=CONNECTIONS) as store:
        account = await account_with(store, 1000)
        await complete_job(store, account)
        tables = [row["relname"] for row in await store.session.pool.fetch("SELECT relname FROM pg_stat_user_tables")]

        async def rows() -> dict[str, list[tuple[object, ...]]]:
            fetch = store.session.pool.fetch
            return {name: sorted(map(tuple, await fetch(f"SELECT * FROM {name}")), key=repr) for name in tables}  # noqa: S608 - our own tables

        before = await rows()
        async with opened(postgres_url, observer, connections=CONNECTIONS, keep_open=True) as warm:
            await asyncio.gather(*(warm.wallet(account) for _ in range(20)))
            await until_all_are_open(warm)
        assert await rows() == before


async def test_a_store_that_is_closed_while_connections_are_opened_ends_at_once(
    postgres_url: str, observer: RecordingObserver
) -> None:
    for pause in (0.0, 0.01, 0.05):
        store = await PostgresStore.open(postgres_url, observer=observer, connections=CONNECTIONS, keep_open=True)
        await asyncio.sleep(pause)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await store.close()


@asynccontextmanager
async def closed_to_new_connections(url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """The database refuses new connections, with an error that is not a temporary one. Yields one to another."""
    parts = urlsplit(url)
    name = parts.path.removeprefix("/")
    other = await asyncpg.connect(parts._replace(path="/postgres").geturl())
    await other.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS false')
    try:
        yield other
    finally:
        await other.execute(f'ALTER DATABASE "{name}" WITH ALLOW_CONNECTIONS true')
        await other.close()


async def test_connections_are_opened_again_after_the_database_refused_them(
    postgres_url: str, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "REOPEN_SECONDS", 0.05)
    async with opened(postgres_url, observer, connections=CONNECTIONS, keep_open=True) as store:
        await until_all_are_open(store)
        async with store.session.pool.acquire() as one:
            ended = one.get_server_pid()
        async with closed_to_new_connections(postgres_url) as other, asyncio.timeout(30):
            await other.execute("SELECT pg_terminate_backend($1)", ended)
            while len(errors(observer)) < 2:  # noqa: ASYNC110 - the observer has no event for it
                await asyncio.sleep(0.01)
        assert "not currently accepting connections" in errors(observer)[0]
        await until_all_are_open(store)


async def test_idle_connections_return_to_the_pool_when_one_of_them_cannot_be_taken(
    postgres_url: str, observer: RecordingObserver
) -> None:
    """After a failover: the first has been replaced, and the next cannot be."""
    async with opened(postgres_url, observer, connections=CONNECTIONS) as store:
        pool = store.session.pool
        await warmed(store)  # opens all of them
        await pool.expire_connections()
        async with pool.acquire():
            pass
        async with closed_to_new_connections(postgres_url):
            with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError):
                await store.session._open_one()

        assert pool.get_idle_size() == pool.get_size() > 0
        async with asyncio.timeout(30):
            await warmed(store)  # takes all of them


async def test_a_connection_that_could_not_be_opened_is_reported_once_although_an_idle_one_is_lost_too(
    postgres_url: str, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the server stops: an error that no task reads would be logged with its traceback."""
    unread: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unread.append(context["message"]))
    release = asyncpg.Pool.release

    async def lose(*of: Any, **named: Any) -> None:
        await release(*of, **named)
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    async with opened(postgres_url, observer, connections=CONNECTIONS) as store:
        await account_with(store)
        await store.session._connections.give_back_all()
        assert 0 < store.session.pool.get_idle_size() < CONNECTIONS
        async with closed_to_new_connections(postgres_url):
            with monkeypatch.context() as lost:
                lost.setattr(asyncpg.Pool, "release", lose)
                with pytest.raises(asyncpg.PostgresError):
                    await store.session._open_one()
            opening = asyncio.all_tasks() - {asyncio.current_task()}
            if opening:
                await asyncio.wait(opening)
            del opening
            gc.collect()
    asyncio.get_running_loop().set_exception_handler(None)
    assert unread == []


def errors(observer: RecordingObserver) -> list[str]:
    return [facts["error"] for event, facts in observer.events if event is Event.STAGE_ERROR]


async def test_a_connection_is_used_although_a_newer_schema_does_not_know_a_statement(
    postgres_url: str, observer: RecordingObserver
) -> None:
    async with opened(postgres_url, observer) as store:
        account = await account_with(store, 1000)
        await store.session.pool.execute("ALTER TABLE api_keys RENAME TO keys_of_clients")

    async with opened(postgres_url, observer, connections=CONNECTIONS, migrate=False, keep_open=True) as store:
        await until_all_are_open(store)
        assert (await store.wallet(account)).available == 1000
        unknown = {"api_keys_with_orders", "api_keys_with_jobs"}
        assert min(await warmed(store)) >= len(set(WARMED) - unknown)
    assert errors(observer) == []


async def test_connections_that_were_kept_for_the_next_statement_are_replaced_when_they_are_lost(
    postgres_url: str, observer: RecordingObserver
) -> None:
    async with opened(postgres_url, observer, connections=CONNECTIONS, keep_open=True) as store:
        store.session.statements["backend"] = ("SELECT pg_backend_pid() AS pid", ())
        store.session.queries = {**store.session.queries, "backend": Query("backend", "", "")}
        account = await account_with(store, 1000)
        await until_all_are_open(store)
        await asyncio.gather(*(store.wallet(account) for _ in range(20)))
        assert 0 < store.session.pool.get_size() - store.session.pool.get_idle_size() <= CONNECTIONS // 2

        [kept] = {(await store.session.one("backend"))[0]["pid"] for _ in range(5)}  # the same one again and again
        other = await asyncpg.connect(postgres_url)
        await other.execute("SELECT pg_terminate_backend($1)", kept)
        await other.close()
        assert (await store.wallet(account)).available == 1000
        assert (await store.session.one("backend"))[0]["pid"] != kept

        await asyncio.gather(*(store.wallet(account) for _ in range(20)))
        await store.session._connections.give_back_all()
        assert store.session.pool.get_idle_size() == store.session.pool.get_size()


async def test_the_system_asks_whether_an_idle_connection_is_still_there(
    postgres_url: str, observer: RecordingObserver
) -> None:
    for keep_open in (True, False):
        async with (
            opened(postgres_url, observer, connections=1, keep_open=keep_open) as store,
            store.session.pool.acquire() as connection,
        ):
            connected = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]
            assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            found = {name: connected.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in KEEP_ALIVE}
            assert found == {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


def test_a_unix_socket_is_left_as_it_is() -> None:
    one, other = socket.socketpair()
    with closing(one), closing(other):
        keep_alive(one)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
