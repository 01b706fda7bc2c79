"""The simulators of Telegram and Kie.ai in processes of their own, so that they do not slow down what is measured."""

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from genlock.sandbox.processes import find_free_port

TOKEN = "42:sandbox"  # noqa: S105 - the simulator's


@dataclass(frozen=True, kw_only=True)
class Simulators:
    telegram_url: str
    kie_url: str
    kie_files_url: str
    kie_key: str

    def settings(self, database_url: str) -> dict[str, str]:
        """Return the settings of an instance that uses these simulators."""
        port = find_free_port()
        hosts = (self.telegram_url, self.kie_url, self.kie_files_url)
        return {
            "GENLOCK_TELEGRAM_TOKEN": TOKEN,
            "GENLOCK_TELEGRAM_API_URL": self.telegram_url,
            "GENLOCK_KIE_API_KEY": self.kie_key,
            "GENLOCK_KIE_API_URL": self.kie_url,
            "GENLOCK_KIE_UPLOAD_URL": self.kie_url,
            "GENLOCK_DATABASE_URL": database_url,
            "GENLOCK_MEDIA_PRIVATE_HOSTS": ",".join(urlsplit(url).netloc for url in hosts),
            "GENLOCK_PORT": str(port),
            "GENLOCK_PUBLIC_URL": f"http://127.0.0.1:{port}",
        }


@asynccontextmanager
async def running_simulators(*, speed: float) -> AsyncIterator[Simulators]:
    """Run both simulators until the block ends. `speed` is how much faster than in reality tasks run."""
    limits = ("--creates-per-10-seconds", "10000", "--queries-per-second", "1000", "--credits", "1e9")
    kie_options = ("--json", "--port", "0", "--speed", str(speed), "--same-media", *limits)
    async with (
        running_simulator("telegram", "--token", TOKEN) as telegram,
        running_simulator("kie", *kie_options) as kie,
    ):
        yield Simulators(
            telegram_url=telegram["url"], kie_url=kie["url"], kie_files_url=kie["files_url"], kie_key=kie["key"]
        )


@asynccontextmanager
async def running_simulator(name: str, *options: str) -> AsyncIterator[dict[str, Any]]:
    """Run the module `genlock.sandbox.NAME` until the block ends, and yield the line it prints when it is ready."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"genlock.sandbox.{name}", *options, stdout=PIPE, stdin=DEVNULL
    )
    assert process.stdout is not None
    try:
        yield json.loads(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()
