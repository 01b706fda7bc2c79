"""Migrated databases without rows, for tests that are not about migrations."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from genlock.app.databases import open_store
from genlock.log import Silent


def migrate(url: str) -> None:
    """Apply all migrations; also from within a running event loop."""

    async def opened() -> None:
        store = await open_store(url, observer=Silent())
        await store.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, opened()).result()


@cache
def _template() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        migrate(f"sqlite:///{path}")
        return path.read_bytes()


def new_sqlite(folder: Path, name: str = "genlock.db") -> str:
    """Return the path of a migrated SQLite file, new unless it is there: a copy costs a tenth of the migrations."""
    path = folder / name
    if not path.exists():
        path.write_bytes(_template())
    return str(path)
