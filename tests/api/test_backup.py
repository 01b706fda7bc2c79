"""A backup holds what API clients have: keys, webhooks with their sealed secrets, deliveries, files and figures."""

from collections import defaultdict
from pathlib import Path
from typing import Any

from genlock.app.backups import back_up, restore
from genlock.log import Silent
from tests.api.test_erasure_places import leave_texts, refusing_receiver
from tests.api.world import running_api
from tests.databases import new_sqlite
from tests.marker import rows_in

#: tables that this world fills, beside those of every bot
FILLED = {"api_keys", "attempts", "jobs", "ledger", "limits", "uploads", "webhook_deliveries", "webhooks"}


async def test_what_api_clients_have_is_restored(tmp_path: Path, png: bytes) -> None:
    url, other = f"sqlite:///{new_sqlite(tmp_path)}", f"sqlite:///{tmp_path}/restored.db"
    async with (
        refusing_receiver() as receiver,
        running_api(url, tmp_path / "media", private_hosts=(receiver.host,)) as world,
    ):
        client = await world.client()
        await leave_texts(world, client.key.account_id, f"{receiver.url}/hook", png)
    before = await rows_by_table(url)
    assert {table for table, rows in before.items() if rows} >= FILLED

    await back_up(url, tmp_path / "backup", overwrite=False)
    await restore(other, tmp_path / "backup", observer=Silent(), force=False, resume=True)

    after = await rows_by_table(other)
    differing = {table for table in before | after if before[table] != after[table]}
    assert differing <= {"audit", "migrations"}, "the restore itself is in the audit log, and migrations have a time"


async def rows_by_table(url: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for table, row in await rows_in(url):
        found[table].append(row)
    return found
