"""What every test may ask for: a clean environment and real databases."""

import gc
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from genlock.sandbox import processes
from genlock.sandbox.instance import Instance
from genlock.sandbox.postgres import Postgres, PostgresServer
from genlock.web.server import allow_open_files
from tests.certificates import trust_one_authority
from tests.databases import migrate
from tests.fork_server import ForkServer
from tests.ignored_signals import heed_ignored_signals
from tests.pgbouncer import pgbouncer

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytest_plugins = ["tests.random_examples", "tests.shared_postgres", "tests.tiers"]

TEST_POSTGRES_URL = "GENLOCK_TEST_POSTGRES_URL"
MEMORY, MEMORY_BYTES_MIN = Path("/dev/shm"), 3 * 2**30  # noqa: S108 (each makes its own folder there)
PREFIXES = ("GENLOCK_", "PG")
ALIASES = {"DATABASE_URL", "KIE_API_KEY", "PORT", "RENDER_EXTERNAL_URL", "TELEGRAM_BOT_TOKEN"}

# Here and not in a fixture, so that no import and no child process sees the developer's own settings.
for name in list(os.environ):
    if name != TEST_POSTGRES_URL and (name in ALIASES or name.startswith(PREFIXES)):
        del os.environ[name]

# Our own server speaks no TLS: connections need not ask for it.
if TEST_POSTGRES_URL not in os.environ:
    os.environ["PGSSLMODE"] = "disable"

# All our connections are plain, and reading the certificates of all authorities takes a tenth of a second of CPU in
# each process that starts, and again for each client of the providers' libraries.
trust_one_authority()

# The stores sync every commit to the disk: on a file system in memory the tests do not wait for that, and making a
# database of PostgreSQL costs a tenth.
if (
    MEMORY.is_dir()
    and shutil.disk_usage(MEMORY).free > MEMORY_BYTES_MIN
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ.setdefault("TMPDIR", str(MEMORY))
    tempfile.tempdir = None  # it is read again

heed_ignored_signals()

# A login shell allows 1024, and the clients of a load test are in the same process as the server.
allow_open_files()

# Far fewer searches for garbage: they were a twentieth of the CPU time of all tests.
gc.set_threshold(20_000, 50, 100)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from the collected tests: there are thousands, and they stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def scratch(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have simulators write below pytest's folder, which pytest removes later if this process is killed."""
    processes.scratch = tmp_path_factory.getbasetemp()


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def forked_services(fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the instances of the service that this test starts."""
    monkeypatch.setattr(Instance, "launch", staticmethod(fork_server.launch))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> "AsyncIterator[Browser]":
    """One browser for all tests of a process: a start costs two seconds of CPU."""
    from tests.browser import chromium  # noqa: PLC0415 - not every test process needs the driver

    async with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """The server of this test process: the one at GENLOCK_TEST_POSTGRES_URL, else our own."""
    if url := os.environ.get(TEST_POSTGRES_URL):
        yield Postgres(url)
        return
    with PostgresServer.running(durable=False) as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> Iterator[str]:
    """A fresh, empty database."""
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Postgres) -> Iterator[str]:
    """A migrated database without rows. Copying it costs a tenth of running the migrations."""
    url = postgres_server.create_database()
    migrate(url)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def migrated_postgres_url(postgres_server: Postgres, postgres_template: str) -> Iterator[str]:
    """A fresh database, migrated and without rows."""
    url = postgres_server.create_database(postgres_template)
    yield url
    postgres_server.drop_database(url)


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A private server that the test may stop, crash and start again."""
    with PostgresServer.running(durable=False) as server:
        yield server


@pytest.fixture
def pgbouncer_url(postgres_url: str) -> Iterator[str]:
    """A fresh, empty database behind PgBouncer in transaction mode."""
    with pgbouncer(postgres_url) as url:
        yield url
