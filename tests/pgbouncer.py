"""A real PgBouncer in transaction mode: the system's, or Debian's package unpacked into the virtual environment."""

import fcntl
import os
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT
from urllib.parse import urlsplit

from genlock.sandbox.processes import AS_ROOT, ProgramFailed, Server, find_free_port, guarded_folder, run

POOL_SIZE = 4
UNPACKED = Path(sys.prefix) / "pgbouncer"


class PgBouncerMissing(Exception):
    """PgBouncer is neither installed nor to be had from Debian's packages."""


@contextmanager
def pgbouncer(url: str) -> Iterator[str]:
    """Run a pooler in front of the server of `url`; gives the url of the same database through it."""
    program, env = find_program()
    port = find_free_port()
    with guarded_folder() as folder:
        config = folder / "pgbouncer.ini"
        config.write_text(_config(url, port))
        server = Server([program, config], folder=folder, answers=lambda: _listens(port), env={**os.environ, **env})
        try:
            yield urlsplit(url)._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
        finally:
            server.stop(SIGINT)


def _config(url: str, port: int) -> str:
    server = urlsplit(url)
    password = f"password={server.password}" if server.password else ""
    return f"""
[databases]
* = host={server.hostname} port={server.port or 5432} user={server.username} {password}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {POOL_SIZE}
max_client_conn = 200
{"user = nobody" if AS_ROOT else ""}
"""


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def find_program() -> tuple[Path, Mapping[str, str]]:
    """The program and the environment it needs."""
    # An ordinary user's PATH often lacks Debian's /usr/sbin.
    if installed := shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"):
        return Path(installed), {}
    unpack_package()
    libraries = ":".join(str(path) for path in UNPACKED.glob("**/*-linux-gnu"))
    return UNPACKED / "usr/sbin/pgbouncer", {"LD_LIBRARY_PATH": libraries}


def unpack_package() -> None:
    """Unpack Debian's package and the libraries it lacks here, changing nothing of the system and needing no root."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise PgBouncerMissing("PgBouncer is not installed, and here are no Debian packages to take it from")
    with Path(f"{UNPACKED}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # held against the other test processes until closed
        if UNPACKED.exists():
            return
        try:
            with guarded_folder() as folder:
                _download(folder)
                for package in folder.glob("archives/*.deb"):
                    run(["dpkg-deb", "--extract", package, f"{UNPACKED}.part"])
        except ProgramFailed as error:
            raise PgBouncerMissing(f"PgBouncer cannot be had from Debian's packages: {error}") from error
        Path(f"{UNPACKED}.part").rename(UNPACKED)


def _download(folder: Path) -> None:
    options = {
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
        "Dir::Cache": folder,
        "Dir::State::Lists": folder / "lists",
    }
    apt = ["apt-get", "--quiet", *(f"--option={name}={value}" for name, value in options.items())]
    for needed in ("archives/partial", "lists/partial"):
        (folder / needed).mkdir(parents=True)
    run([*apt, "update"])
    run([*apt, "install", "--download-only", "--no-install-recommends", "--yes", "pgbouncer"])
