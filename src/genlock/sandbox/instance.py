"""Start, pause, kill and stop one real `genlock serve` process, and read the events in its log."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM, Signals
from time import time
from typing import Any, Protocol

from genlock.sandbox.processes import ProgramFailed, find_free_port, guarded_folder

READY_SECONDS = 60.0
#: `genlock serve` stops within 20 s
STOP_SECONDS = 30.0
POLL_SECONDS = 0.02
TAIL_LINES = 30
#: environment variables passed on to the process; everything else comes from its settings
PASSED_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TMPDIR", "TZ", "VIRTUAL_ENV")


class Process(Protocol):
    """What we need of `subprocess.Popen`."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self) -> int: ...

    def kill(self) -> None: ...

    def send_signal(self, sig: int, /) -> None: ...


class Instance:
    """One process with its log. It can be started again after it ended, with the same port and log."""

    #: tests replace it by one that does not import the package anew for each process
    launch: Callable[..., Process] = staticmethod(subprocess.Popen)

    def __init__(self, name: str, folder: Path, settings: Mapping[str, str]) -> None:
        self.name = name
        self.port = int(settings.get("GENLOCK_PORT") or find_free_port())
        self.log = folder / f"{name}.log"
        self.log.unlink(missing_ok=True)  # from an earlier run
        self._read_bytes = 0
        self._lines: list[dict[str, Any]] = []
        self._pid = folder / f"{name}.pid"
        self._folder = folder
        self._settings = settings
        self._process: Process | None = None
        self.paused = False
        self.started_at = 0.0
        #: seconds until ready, for each start
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
        """Exit status; None while it runs."""
        return self._process.poll() if self._process else None

    @property
    def megabytes(self) -> float:
        """Resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="utf-8").split()[1]) * 4096 / 1e6

    # start and stop

    def start(self) -> None:
        assert not self.running
        self.paused = False
        self.started_at = time()
        with self.log.open("ab") as log:
            log.write(b"\n")  # a killed process may have left half a line
            log.flush()
            self._process = self.launch(
                [sys.executable, "-m", "genlock", "serve"],
                cwd=self._folder,  # so that no other .env file is read
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C goes to the parent only, which then stops it gracefully
            )
        self._pid.write_text(f"{self._process.pid}\n")

    def _environment(self) -> dict[str, str]:
        passed = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        return {**passed, "GENLOCK_LOG_FORMAT": "json", **self._settings, "GENLOCK_PORT": str(self.port)}

    async def wait_until_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until `GET /ready` answers 200. Raises ProgramFailed if it does not."""
        deadline = time() + seconds
        while not await answers_200(self.port):
            if not self.running or time() > deadline:
                raise ProgramFailed(f"`genlock serve` ({self.name}) is not ready:\n{self.log_tail()}")
            await asyncio.sleep(POLL_SECONDS)
        self.starts.append(time() - self.started_at)

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
        """Kill it with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._pid.unlink(missing_ok=True)
        self.paused = False

    async def wait_until_ended(self, seconds: float = STOP_SECONDS) -> int:
        """Wait until it has ended; return its exit status."""
        async with asyncio.timeout(seconds):
            while (status := self.status) is None:  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(POLL_SECONDS)
        return status

    async def stop(self, seconds: float = STOP_SECONDS) -> int:
        """Stop it with SIGTERM, or kill it after `seconds`; return its exit status."""
        if self.paused:
            self.resume()
        self.signal(SIGTERM)
        try:
            return await self.wait_until_ended(seconds)
        except TimeoutError:
            return -SIGKILL
        finally:
            self.kill()

    # log

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def log_tail(self) -> str:
        return "\n".join(self.text.splitlines()[-TAIL_LINES:])

    def new_lines(self) -> list[dict[str, Any]]:
        """Return log lines since the last call. They are not kept in memory."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(self._read_bytes)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]  # the last line may be incomplete
        self._read_bytes += len(whole)
        return [_parse_line(line, self.name) for line in whole.splitlines() if line.strip()]

    @property
    def log_lines(self) -> list[dict[str, Any]]:
        """All log lines. Do not mix with `new_lines`, which consumes them."""
        self._lines += self.new_lines()
        return self._lines

    def events(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        """Return log lines of this event that have at least these fields."""
        return [line for line in self.log_lines if line["event"] == event and fields.items() <= line.items()]

    async def wait_for_event(self, event: str, *, seconds: float = STOP_SECONDS, **fields: Any) -> dict[str, Any]:
        """Wait for a log line of this event. Raises ProgramFailed if the process ends first, else TimeoutError."""
        async with asyncio.timeout(seconds):
            while True:
                running = self.running
                if found := self.events(event, **fields):
                    return found[0]
                if not running:
                    raise ProgramFailed(
                        f"`genlock serve` ({self.name}) ended without logging {event}:\n{self.log_tail()}"
                    )
                await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def running_instance(settings: Mapping[str, str]) -> AsyncIterator[Instance]:
    """Yield a ready instance. It ends with the block, and also if this process is killed."""
    with guarded_folder() as folder:
        instance = Instance("instance", folder, settings)
        instance.start()
        try:
            await instance.wait_until_ready()
            yield instance
        finally:
            instance.kill()


async def answers_200(port: int, path: str = "/ready") -> bool:
    """Whether a server answers 200 on this port and path."""
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


def _parse_line(line: bytes, name: str) -> dict[str, Any]:
    """Parse a JSON log line. Other lines, such as tracebacks, become an event without a name."""
    try:
        fields = json.loads(line)
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or "event" not in fields:
        fields = {"event": "", "correlation_id": "", "text": line.decode(errors="replace")}
    at = datetime.fromisoformat(fields["at"]).timestamp() if "at" in fields else time()
    return {"process": name, **fields, "at": at}
