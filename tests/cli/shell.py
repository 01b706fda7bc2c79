"""The command line, as real processes."""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

from genlock.app.databases import open_store
from genlock.app.engine import make_engine
from genlock.domain.job import NewJob
from genlock.domain.money import EntryKind
from genlock.log import Silent
from genlock.sandbox.bench.instant import InstantChannel, InstantProvider
from tests.commands import run_command


class Shell:
    """Runs `genlock` against one database."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {**os.environ, "GENLOCK_DATABASE_URL": self.url, **environment}
        return run_command(*arguments, environment=settings, folder=self._folder)

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json").stdout)


def order_a_job(url: str, model: str = "z-image") -> int:
    """Add an account with money and one job that no worker processes."""

    async def order() -> int:
        store = await open_store(url, observer=Silent())
        account_id = await store.ensure_account("instant", "bot", "1")
        await store.transfer(account_id, EntryKind.TOPUP, 5_000, "payment-1")
        engine = make_engine(
            store, Silent(), providers={"instant": InstantProvider("t")}, channels={"instant": InstantChannel()}
        )
        engine.worker._stopping = True  # accepts jobs but processes none
        job = await engine.order(
            NewJob(
                account_id=account_id,
                request_key="1",
                provider="instant",
                channel="instant",
                address="1",
                model=model,
                input="{}",
                price=800,
                deadline_seconds=600,
            )
        )
        await store.close()
        return job.id

    return asyncio.run(order())
