"""Real `genlock serve` processes, for whoever wants to run, pause or kill some."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals
from time import time
from typing import Any

from genlock.sandbox.processes import ProgramFailed, find_free_port

READY_SECONDS = 60.0
#: a stop takes 20 s at the most
STOP_SECONDS = 30.0
POLL_SECONDS = 0.05
#: names that platforms set, which must not reach a process of ours
FOREIGN = {"DATABASE_URL", "KIE_API_KEY", "PORT", "RENDER_EXTERNAL_URL", "TELEGRAM_BOT_TOKEN"}
TOLD_LINES = 30


class Instance:
    """One process with its log. A start after an end is a new process with the same port and log."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, str]) -> None:
        self.name = name
        self.port = find_free_port()
        self.log = folder / f"{name}.log"
        self.log.unlink(missing_ok=True)  # what a former run said
        self._pid = folder / f"{name}.pid"
        self._folder = folder
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        self.paused = False
        self.started_at = 0.0
        #: how long each start took until it was ready
        self.starts: list[float] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """How it ended; None while it runs."""
        return self._process.poll() if self._process else None

    def start(self) -> None:
        assert not self.running
        self.paused = False
        self.started_at = time()
        with self.log.open("ab") as log:
            log.write(b"\n")  # a killed one may have left half a line
            log.flush()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "genlock", "serve"],
                cwd=self._folder,  # no .env of somebody else's
                env={**clean_environment(), **self._settings, "GENLOCK_PORT": str(self.port)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the parent, which then stops it in order
            )
        self._pid.write_text(f"{self._process.pid}\n")

    async def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until it takes traffic."""
        deadline = time() + seconds
        while not await answers(self.port):
            if not self.running or time() > deadline:
                raise ProgramFailed(f"`genlock serve` ({self.name}) is not ready:\n{self.last_words()}")
            await asyncio.sleep(POLL_SECONDS)
        self.starts.append(time() - self.started_at)

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TOLD_LINES:])

    def signal(self, signal: Signals) -> None:
        assert self._process is not None
        self._process.send_signal(signal)

    def pause(self) -> None:
        self.paused = True
        self.signal(SIGSTOP)

    def resume(self) -> None:
        self.signal(SIGCONT)
        self.paused = False

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._pid.unlink(missing_ok=True)
        self.paused = False

    async def stop(self, seconds: float = STOP_SECONDS) -> int:
        """Ask it to end, and say how it did; who does not is killed."""
        assert self._process is not None
        if self.paused:
            self.resume()
        if self.running:
            self.signal(SIGTERM)
        deadline = time() + seconds
        while self.running and time() < deadline:  # noqa: ASYNC110 - the kernel tells only who waits
            await asyncio.sleep(POLL_SECONDS)
        status = self.status
        self.kill()
        return -SIGKILL if status is None else status


def clean_environment() -> dict[str, str]:
    """The environment without settings of ours: what a process is told is all it knows."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in FOREIGN and not name.startswith(("GENLOCK_", "PG"))
    }


async def answers(port: int, path: str = "/ready") -> bool:
    """Whether a server says 200 there."""
    try:
        async with asyncio.timeout(2.0):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                return b" 200 " in await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


@dataclass
class Log:
    """What instances have said, read while they write it. Lines are kept with the name of who said them."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    _places: dict[Path, int] = field(default_factory=dict)

    def read(self, instances: "list[Instance]") -> list[dict[str, Any]]:
        """The lines that are new."""
        new = self.take(instances)
        self.lines += new
        return new

    def take(self, instances: "list[Instance]") -> list[dict[str, Any]]:
        """The same, not kept."""
        return [line for instance in instances for line in self._read(instance)]

    def _read(self, instance: Instance) -> list[dict[str, Any]]:
        if not instance.log.exists():
            return []
        with instance.log.open("rb") as file:
            file.seek(self._places.get(instance.log, 0))
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]  # the last one may still be in the making
        self._places[instance.log] = self._places.get(instance.log, 0) + len(whole)
        return [_told(line, instance.name) for line in whole.splitlines() if line.strip()]


def _told(line: bytes, name: str) -> dict[str, Any]:
    """A line as an event; what is none, such as a traceback, as text."""
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict) or "event" not in said:
        said = {"event": "", "correlation": "", "text": line.decode(errors="replace")}
    at = datetime.fromisoformat(said["at"]).timestamp() if "at" in said else time()
    return {"process": name, **said, "at": at}
