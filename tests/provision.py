"""Bring every program that the tests run, and prove that it works: `make test` does this before the first test."""

import os
import sys
from collections.abc import Callable

from genlock.sandbox.postgres import Postgres, PostgresMissing, PostgresServer
from genlock.sandbox.processes import ProgramFailed
from tests.browser import find_browser
from tests.pgbouncer import find_pgbouncer
from tests.programs import Program, ProgramMissing, write_record

POSTGRES_VARIABLE = "GENLOCK_TEST_POSTGRES_URL"
FINDERS: dict[str, Callable[[], Program]] = {"chromium": find_browser, "pgbouncer": find_pgbouncer}


def provision() -> list[str]:
    """Record what was found; return one line for each program that is missing."""
    found: dict[str, Program] = {}
    missing: list[str] = []
    for name, find in FINDERS.items():
        try:
            found[name] = find()
        except ProgramMissing as error:
            missing.append(str(error))
    try:
        check_postgres()
    except ProgramMissing as error:
        missing.append(str(error))
    write_record(found)
    return missing


def check_postgres() -> None:
    """Make a database and drop it, on the server that the tests will use."""
    url = os.environ.get(POSTGRES_VARIABLE)
    try:
        if url:
            _make_database(Postgres(url))
            return
        with PostgresServer.running() as server:
            _make_database(server)
    except PostgresMissing as error:
        raise ProgramMissing(
            "PostgreSQL is missing in .venv: remove .venv and run the command again "
            f"(or set {POSTGRES_VARIABLE} to a server that may make databases)"
        ) from error
    except (ProgramFailed, OSError) as error:
        lines = str(error).strip().splitlines()
        reason = next((line for line in lines if "error" in line.lower()), lines[-1]).strip()
        which = f"The server that {POSTGRES_VARIABLE} names" if url else "PostgreSQL from the wheel"
        raise ProgramMissing(
            f"{which} cannot be used: {reason} (set {POSTGRES_VARIABLE} to a server that may make databases)"
        ) from error


def _make_database(server: Postgres) -> None:
    server.drop_database(server.create_database())


if __name__ == "__main__":
    sys.exit("\n".join(provision()) or 0)
