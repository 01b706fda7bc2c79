"""The invented history that the docs' pictures show."""

import asyncio
from pathlib import Path

from docs.sandbox_history import ORDERS, USERS, write_history
from genlock.app.databases import open_store
from genlock.log import Silent


async def test_the_history_fits_the_schema_and_its_ledger_adds_up(tmp_path: Path) -> None:
    file = tmp_path / "genlock.db"
    await asyncio.to_thread(write_history, file)
    store = await open_store(f"sqlite:///{file}", observer=Silent())
    try:
        assert [str(violation) for violation in await store.violations(settled=True)] == []
        assert (await store.figures_progress()).newest_job == ORDERS
        assert await store.job(ORDERS) is not None
        assert len(await store.account_names(range(1, USERS + 1))) == USERS
    finally:
        await store.close()
