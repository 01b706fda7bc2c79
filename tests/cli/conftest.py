"""The shell in which the tests of this folder run commands."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.databases import new_sqlite


@pytest.fixture(params=["sqlite", "postgres"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """A shell on a new SQLite file or PostgreSQL database, both migrated."""
    if request.param == "sqlite":
        return Shell(f"sqlite:///{new_sqlite(tmp_path)}", tmp_path)
    return Shell(request.getfixturevalue("migrated_postgres_url"), tmp_path)
