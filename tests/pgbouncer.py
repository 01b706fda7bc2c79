"""A real PgBouncer in transaction mode."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT
from urllib.parse import urlsplit

from genlock.sandbox.processes import AS_ROOT, Server, find_free_port, guarded_folder
from tests.debian import unpack_packages, unpacked_program
from tests.programs import Program, ProgramMissing, recorded

POOL_SIZE = 4


def find_pgbouncer() -> Program:
    """Return the system's PgBouncer, else Debian's package unpacked: installing it would start a service."""
    # An ordinary user's PATH often lacks Debian's /usr/sbin.
    if installed := shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"):
        return Program(Path(installed))
    try:
        return unpacked_program(unpack_packages("pgbouncer"), "usr/sbin/pgbouncer")
    except ProgramMissing as error:
        raise ProgramMissing(f"The tests need PgBouncer: install its package, pgbouncer. ({error})") from error


@contextmanager
def pgbouncer(url: str) -> Iterator[str]:
    """Run a pooler in front of the server of `url`; gives the url of the same database through it."""
    program = recorded("pgbouncer")
    port = find_free_port()
    with guarded_folder() as folder:
        config = folder / "pgbouncer.ini"
        config.write_text(_config(url, port))
        environment = {**os.environ, **program.environment}
        server = Server([program.path, config], folder=folder, answers=lambda: _listens(port), env=environment)
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
