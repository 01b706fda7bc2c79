"""A real `genlock serve` process of our own: its lines are read, and it ends with this one."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGKILL, Signals
from time import monotonic
from typing import Any

from genlock.sandbox.processes import guarded_folder

READY_SECONDS = 30.0
#: the variables that may reach it from outside; all others are its own
_PASSED = ("HOME", "LANG", "LC_ALL", "PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV")


class InstanceFailed(Exception):
    """The process ended before it was asked to; its last lines are in the message."""


class Instance:
    def __init__(self, process: Process, started: float) -> None:
        self._process = process
        self._started = started
        self._news = asyncio.Event()
        self._reader = asyncio.get_running_loop().create_task(self._read())
        #: everything it said, and the same as values where it was JSON
        self.text: list[str] = []
        self.said: list[dict[str, Any]] = []
        self.address = ""
        #: from the start of the process to its first moment of readiness, as seen from here
        self.start_seconds = 0.0

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        return self._process.returncode

    @property
    def megabytes(self) -> float:
        """What it holds in memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="utf-8").split()[1]) * 4096 / 1e6

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for raw in self._process.stdout:
            line = raw.decode(errors="replace").rstrip("\n")
            self.text.append(line)
            try:
                told = json.loads(line)
            except ValueError:
                told = None
            if isinstance(told, dict):
                self.said.append(told)
            self._tell()
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def of(self, event: str, **facts: Any) -> list[dict[str, Any]]:
        """What it said under this name, with at least these facts."""
        return [line for line in self.said if line.get("event") == event and facts.items() <= line.items()]

    async def until(self, event: str, *, seconds: float = READY_SECONDS, **facts: Any) -> dict[str, Any]:
        """Wait until it says so. Raises InstanceFailed if it ends before, TimeoutError if it does not."""
        async with asyncio.timeout(seconds):
            while not (found := self.of(event, **facts)):
                if self._reader.done():
                    raise InstanceFailed("\n".join(self.text[-30:]))
                await self._news.wait()
        return found[0]

    def signal(self, signal: Signals) -> None:
        if self._process.returncode is None:
            self._process.send_signal(signal)

    async def ended(self, seconds: float = READY_SECONDS) -> int:
        """Wait for the end; returns the exit status."""
        async with asyncio.timeout(seconds):
            status = await self._process.wait()
            await self._reader
        return status

    async def kill(self) -> None:
        self.signal(SIGKILL)
        await self._process.wait()
        await self._reader


async def start_instance(
    settings: Mapping[str, str], folder: Path, *, ready: bool = True, guarded: Path | None = None
) -> Instance:
    """Start one with these settings and no others; with `ready`, wait until it is."""
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    started = monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "genlock", "serve",
        env={**passed, "GENLOCK_LOG_FORMAT": "json", "GENLOCK_PORT": "0", **settings},
        cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=STDOUT, limit=2**20,
        start_new_session=True,  # Ctrl-C is for this process, which ends the others in order
    )  # fmt: skip
    if guarded:
        (guarded / "pid").write_text(f"{process.pid}\n")
    instance = Instance(process, started)
    if ready:
        try:
            told = await instance.until("READY")
        except BaseException:
            await instance.kill()
            raise
        instance.start_seconds = monotonic() - started
        instance.address = told["address"]
    return instance


@asynccontextmanager
async def running_instance(settings: Mapping[str, str], folder: Path) -> AsyncIterator[Instance]:
    """One that is ready, until the block ends, even if this process is killed before."""
    with guarded_folder() as guarded:
        instance = await start_instance(settings, folder, guarded=guarded)
        try:
            yield instance
        finally:
            await instance.kill()
            (guarded / "pid").unlink()
