"""What an operator changes by a command is in the audit log, once."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from genlock.app.databases import open_store
from genlock.domain.audit import AuditFilter, AuditLine
from genlock.log import Silent
from tests.cli.shell import Shell, order_a_job
from tests.databases import new_sqlite
from tests.stores.builders import update

pytestmark = pytest.mark.process


async def audit_of(url: str) -> list[AuditLine]:
    """Return the lines of every bot, the oldest first."""
    store = await open_store(url, observer=Silent())
    found = await store.search_audit(AuditFilter(actor="command"))
    await store.close()
    return list(reversed(found.lines))


async def leave_work(url: str) -> None:
    """A dead update and a paused provider."""
    store = await open_store(url, observer=Silent())
    await store.store_update(update(1))
    await store.close()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE updates SET state = 'dead'")
        connection.execute("UPDATE update_queues SET waiting = 0, due_at = NULL")
        connection.execute(
            "INSERT INTO breakers (provider, model, failures, reason, changed_at) VALUES ('kie', '', 5, 'down', 0)"
        )
        connection.commit()


def test_every_change_by_a_command_is_a_line_of_the_audit_log(tmp_path: Path) -> None:
    shell = Shell(f"sqlite:///{new_sqlite(tmp_path)}", tmp_path)
    job = order_a_job(shell.url)
    asyncio.run(leave_work(shell.url))
    key = ("api-keys", "create", "1", "--name", "shop", "--key", "same")
    commands = [("jobs", "retry", f"{job}"), ("jobs", "cancel", f"{job}"), ("updates", "retry", "1"),
                ("providers", "reset", "kie"), key, key, ("api-keys", "revoke", "1")]  # fmt: skip
    for command in commands:
        done = shell.run(*command)
        assert done.returncode == 0, done.stderr
    shell.run("api-keys", "revoke", "1")  # it was before
    assert shell.run("jobs", "retry", "404").returncode == 1

    lines = asyncio.run(audit_of(shell.url))

    assert [(line.action, line.subject) for line in lines] == [
        ("retry", f"#{job}"),
        ("cancel", f"#{job}"),
        ("updates.retry", "update 1"),
        ("reset_provider", "provider kie"),
        ("create_api_key", "1"),
        ("revoke_api_key", "1"),
    ]
    assert lines[-1].bot == "bot"
    assert json.loads(lines[-1].detail) == {"before": {"key": 1, "name": "shop"}}
