"""The network between the store and PostgreSQL: starting and restarting servers, temporary errors, time-outs."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from genlock.domain.errors import StoreError, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, Job, State
from genlock.domain.money import EntryKind, HoldState, Wallet
from genlock.ports import Store
from genlock.sandbox.postgres import PostgresServer
from genlock.stores import postgres
from genlock.stores.postgres import PostgresStore
from genlock.stores.rows import Row
from tests.changes import PATIENCE_SECONDS
from tests.stores.builders import ME, account_with, order, see, until
from tests.stores.conftest import RecordingObserver
from tests.stores.open_postgres import complete_job, opened
from tests.stores.other_connections import other_connection, waiting_for_locks


@asynccontextmanager
async def starting_up(url: str, refusals: int) -> AsyncIterator[str]:
    """A proxy to the server that first answers `refusals` times that the server is starting up."""
    parts = urlsplit(url)
    message = b"SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0"
    left = refusals

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            await reader.read(1000)
            writer.write(b"E" + (len(message) + 4).to_bytes(4) + message)
        else:
            inner_reader, inner_writer = await asyncio.open_connection(parts.hostname, parts.port)
            await asyncio.gather(pass_on(reader, inner_writer), pass_on(inner_reader, writer))
        writer.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while message := await reader.read(65_536):
            writer.write(message)
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield parts._replace(netloc=f"{parts.username}@127.0.0.1:{port}").geturl() + "?sslmode=disable"
    server.close()


async def test_the_store_waits_for_a_server_that_is_starting(postgres_url: str, observer: RecordingObserver) -> None:
    async with starting_up(postgres_url, refusals=3) as url, opened(url, observer) as store:
        assert (await store.counts())["due"] == 0


async def test_the_store_stops_waiting_for_a_server_that_never_starts(
    postgres_url: str, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "STARTING_SECONDS", 0.5)
    async with starting_up(postgres_url, refusals=1000) as url:
        with pytest.raises(StoreUnavailable, match="starting up"):
            await PostgresStore.open(url, observer=observer)


# restarts


@pytest.mark.parametrize("end", [PostgresServer.stop, PostgresServer.crash])
async def test_work_goes_on_after_a_restart_and_nothing_is_lost(
    own_postgres: PostgresServer, observer: RecordingObserver, end: Callable[[PostgresServer], None]
) -> None:
    workers, before, after = 12, 3, 1
    done: dict[int, list[Job]] = {number: [] for number in range(workers)}
    back = asyncio.Event()

    async def work(store: Store, number: int, account_id: int) -> None:
        wanted = 0
        while wanted < after:
            wanted += back.is_set()
            done[number].append(await complete_job(store, account_id, price=1))

    async with opened(own_postgres.create_database(), observer) as store:
        accounts = [await account_with(store, 10**6) for _ in range(workers)]
        tasks = [asyncio.create_task(work(store, number, account_id)) for number, account_id in enumerate(accounts)]
        await until(lambda: all(len(jobs) >= before for jobs in done.values()))

        await asyncio.to_thread(end, own_postgres)
        await until(lambda: observer.total("store_retries") > 0)
        await asyncio.to_thread(own_postgres.start)
        back.set()
        async with asyncio.timeout(30):
            await asyncio.gather(*tasks)

        assert [await store.wallet(account_id) for account_id in accounts] == [
            Wallet(account_id=account_id, available=10**6 - len(done[number]), held=0)
            for number, account_id in enumerate(accounts)
        ]
        rows = [await see(store, job) for jobs in done.values() for job in jobs]
        assert {(row.state, row.delivery, row.hold_state) for row in rows} == {
            (State.SUCCEEDED, Delivery.DELIVERED, HoldState.CAPTURED)
        }
        assert len(await store.jobs(limit=10**6)) == len(rows)
        assert await store.violations(settled=False) == []
    assert Event.STORE_RETRY in [event for event, _ in observer.events]


async def test_a_connection_that_was_cut_is_replaced(postgres_url: str, observer: RecordingObserver) -> None:
    async with opened(postgres_url, observer) as store, other_connection(postgres_url) as other:
        account_id = await account_with(store)
        await other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

        assert (await store.wallet(account_id)).available == 1000


# temporary errors


async def test_without_a_free_connection_a_call_waits_and_that_is_counted(
    postgres_url: str, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url, observer, connections=1) as store:
        account_id = await account_with(store)
        monkeypatch.setattr(store.session._connections, "_timeout", 0.1)
        async with store.session.pool.acquire():
            answer = asyncio.create_task(store.wallet(account_id))
            await until(lambda: observer.total("store_retries", operation="wallet", reason="TimeoutError") > 0)
            assert not answer.done()

        assert (await answer).available == 1000


async def test_after_a_failover_the_store_connects_to_the_new_primary(
    postgres_url: str, observer: RecordingObserver
) -> None:
    """After a failover the old connections still answer, but take no writes."""
    async with opened(postgres_url, observer, connections=1) as store, other_connection(postgres_url) as other:
        await store.session.pool.execute("SET default_transaction_read_only = on")

        account_id = await store.ensure_account("chat", "bot", "new")

        assert await other.fetchval("SELECT id FROM accounts WHERE external_id = 'new'") == account_id
        assert observer.total("store_retries", operation="ensure_account", reason="ReadOnlySQLTransactionError") == 1


async def test_more_calls_than_connections_all_complete(postgres_url: str, observer: RecordingObserver) -> None:
    async with opened(postgres_url, observer, connections=2) as store:
        answers = await asyncio.gather(*(store.ensure_account("chat", "bot", str(number)) for number in range(100)))

        assert len(set(answers)) == 100
        assert observer.total("store_retries") == 0


async def test_a_statement_that_our_own_time_out_cut_is_not_run_again(
    postgres_url: str, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(postgres_url, observer) as store:
        account_id = await account_with(store, 0)
        before = store.uncertain_commits
        async with other_connection(postgres_url) as other:
            await other.execute("SELECT * FROM accounts FOR UPDATE")
            monkeypatch.setattr(store.session, "statement_seconds", 0.5)
            with pytest.raises(StoreUnavailable, match=r"transfer took longer than 0\.5 s"):
                await store.transfer(account_id, EntryKind.TOPUP, 5, "key")
            monkeypatch.undo()

        assert observer.total("store_retries", operation="transfer") == 0
        assert observer.total("store_timeouts", operation="transfer") == 1
        assert store.uncertain_commits > before  # it may have been committed
        await store.transfer(account_id, EntryKind.TOPUP, 5, "key")  # the caller repeats it, with the same key
        assert (await store.wallet(account_id)).available == 5
    [(_, facts)] = [note for note in observer.events if note[0] is Event.STORE_TIMEOUT]
    assert facts["operation"] == "transfer"


async def test_a_statement_that_the_servers_time_out_cut_is_not_run_again(
    postgres_url: str, observer: RecordingObserver
) -> None:
    """A database of a host has a `statement_timeout` of its own, which may be shorter than ours."""
    async with opened(postgres_url, observer, connections=1) as store, other_connection(postgres_url) as other:
        account_id = await account_with(store, 0)
        await other.execute("SELECT * FROM accounts FOR UPDATE")
        await store.session.pool.execute("SET statement_timeout = '1200ms'")
        with pytest.raises(StoreUnavailable, match=r"transfer took longer than \d"):
            await store.transfer(account_id, EntryKind.TOPUP, 5, "key")

        assert observer.total("store_retries", operation="transfer") == 0
        assert observer.total("store_timeouts", operation="transfer") == 1


async def test_slow_screens_leave_connections_for_the_work(postgres_url: str, observer: RecordingObserver) -> None:
    """Screens that wait for the database fill their own share of the pool, and orders go on."""
    async with opened(postgres_url, observer, connections=4, statement_seconds=60.0) as store:
        account_id = await account_with(store)
        async with other_connection(postgres_url) as other:
            await other.execute("LOCK TABLE drafts, jobs, inbox IN ACCESS EXCLUSIVE MODE")
            screens = [asyncio.create_task(store.jobs(account_id=account_id)) for _ in range(20)]
            lists = [asyncio.create_task(store.callbacks(InboxState.ORPHAN, 10)) for _ in range(20)]
            await waiting_for_locks(store, 3)

            async with asyncio.timeout(30):
                assert (await store.wallet(account_id)).available == 1000
            assert not any(screen.done() for screen in (*screens, *lists))

        assert await asyncio.gather(*screens, *lists) == [[]] * 40


async def test_a_deadlock_is_retried_and_counted(postgres_url: str, observer: RecordingObserver) -> None:
    """Another connection locks wallets in the opposite order: the statement that loses is repeated as a whole."""
    async with other_connection(postgres_url) as other:
        await other.execute(
            "SET LOCAL deadlock_timeout = '60s'"
        )  # so that our statement is the one that is rolled back
        async with opened(postgres_url, observer) as store:
            first, second = await account_with(store), await account_with(store)
            await other.execute("SELECT * FROM accounts WHERE id = $1 FOR UPDATE", second)
            answers = asyncio.gather(*(store.accept_job(order(account_id), ME) for account_id in (first, second)))
            await waiting_for_locks(store, 1)

            await other.execute("SELECT * FROM accounts WHERE id = $1 FOR UPDATE", first)
            await until(lambda: observer.total("store_retries", reason="DeadlockDetectedError") == 1)
            await other.execute("ROLLBACK; BEGIN")

            assert [answer.created for answer in await answers] == [True, True]
            assert len(await store.jobs()) == 2
            assert await store.violations(settled=False) == []


async def test_a_database_that_does_not_answer_is_unavailable_after_the_patience(
    own_postgres: PostgresServer, observer: RecordingObserver
) -> None:
    url = own_postgres.create_database()
    async with opened(url, observer, retry_seconds=0.5) as store:
        accounts = [await account_with(store) for _ in range(90)]
        orders = [order(account_id) for account_id in accounts]
        await asyncio.to_thread(own_postgres.stop)

        async with asyncio.timeout(PATIENCE_SECONDS):  # not half a second for each
            answers = await asyncio.gather(
                *(store.accept_job(new_order, ME) for new_order in orders), return_exceptions=True
            )
            with pytest.raises(StoreUnavailable, match="the database did not answer"):
                await store.wallet(accounts[0])

        assert [type(answer) for answer in answers] == [StoreUnavailable] * len(orders)
        await asyncio.to_thread(own_postgres.start)
        assert all(
            answer.created
            for answer in await asyncio.gather(*(store.accept_job(new_order, ME) for new_order in orders))
        )


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 11; another operation (2) is in progress"),
        asyncpg.ConnectionDoesNotExistError("connection was closed"),
        asyncpg.AdminShutdownError("terminating connection"),
        asyncpg.CannotConnectNowError("the database system is starting up"),
        asyncpg.TooManyConnectionsError("sorry, too many clients already"),
        asyncpg.DiskFullError("no space left on device"),
        asyncpg.DeadlockDetectedError("deadlock detected"),
        asyncpg.SerializationError("could not serialize access"),
        asyncpg.QueryCanceledError("canceling statement"),
        asyncpg.LockNotAvailableError("could not obtain lock"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_temporary_errors_are_retried(
    postgres: PostgresStore, observer: RecordingObserver, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    attempt = postgres.session._try

    async def fail_once(_text: str, _values: list[Any]) -> list[Row]:
        monkeypatch.setattr(postgres.session, "_try", attempt)
        raise error

    monkeypatch.setattr(postgres.session, "_try", fail_once)

    assert await postgres.ensure_account("chat", "bot", "7")

    assert observer.total("store_retries", operation="ensure_account", reason=type(error).__name__) == 1


async def test_an_invalid_statement_is_not_retried(postgres: PostgresStore, observer: RecordingObserver) -> None:
    account_id = await account_with(postgres)

    with pytest.raises(asyncpg.DataError):
        await postgres.transfer(account_id, EntryKind.TOPUP, 10**30, "key")

    assert observer.total("store_retries") == 0
    assert postgres.uncertain_commits == 0


@pytest.mark.parametrize("name", ["\ud800", 5, "x\0y", ["x"]])
async def test_a_value_that_cannot_be_sent_is_not_a_lost_connection(
    postgres: PostgresStore, observer: RecordingObserver, name: Any
) -> None:
    with pytest.raises((ValueError, asyncpg.DataError)):
        await postgres.ensure_account("chat", "bot", name)

    assert observer.total("store_retries") == 0
    assert postgres.uncertain_commits == 0


async def test_an_error_of_the_server_becomes_a_store_error(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_text: str, _values: list[Any]) -> list[Row]:
        raise asyncpg.InvalidPasswordError("password authentication failed")

    monkeypatch.setattr(postgres.session, "_try", refuse)

    with pytest.raises(StoreError, match="password authentication failed"):
        await postgres.ensure_account("chat", "bot", "7")


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("heartbeat", {"instance": "me", "silent_seconds": 3.0}),
        ("add_job_events", {"instance": "me", "correlation_id": "{a}", "number": "{1}", "events": "{[]}"}),
        (
            "take_call_permits",
            {"keys": "{chat}", "interval": 1.0, "burst": 1, "horizon": 2.0}
            | {"shared_key": "bot", "shared_interval": 0.1, "shared_burst": 1},
        ),
    ],
)
async def test_only_what_a_crash_of_the_server_may_lose_is_committed_without_waiting_for_the_disk(
    postgres_url: str, observer: RecordingObserver, name: str, params: dict[str, Any]
) -> None:
    async with opened(postgres_url, observer) as store, store.session.pool.acquire() as connection:
        await store.reserve_permits("bot", 1, 0.1, 1, 1.0)
        text, names = store.session.statements[name]
        async with connection.transaction():
            assert await connection.fetchval("SHOW synchronous_commit") == "on"
            await connection.fetch(text, *({"now": None, **params}[parameter] for parameter in names))
            assert await connection.fetchval("SHOW synchronous_commit") == "off"
        assert await connection.fetchval("SHOW synchronous_commit") == "on", "the next commit waits again"
