"""Start server programs that end together with this process, even if this process is killed."""

import os
import pwd
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL, Signals
from stat import S_IXOTH
from typing import Any

from genlock.domain.errors import GenlockError

AS_ROOT = os.geteuid() == 0
SECONDS_MAX = 30
#: where root's temporary folders are made if other users may not enter the usual place
OPEN_PLACE = "/tmp"  # noqa: S108 (mkdtemp makes a unique name)
#: where simulators make folders for files that are not kept; None: the machine's usual place for temporary files
scratch: Path | None = None

# Waits for end of file on stdin (this process closed it or is gone), ends the programs that still run, and removes
# the folder unless it is kept. The pids in a kept folder are read once: soon they may be those of the next process.
WATCHDOG = """
cat
pids=$(cat "$1"/pid "$1"/*.pid)
if [ "$2" = kept ]; then
    rm -f "$1"/pid "$1"/*.pid
fi
if [ -n "$pids" ]; then
    kill -QUIT $pids
    sleep 2
    kill -KILL $pids
fi
if [ "$2" != kept ]; then
    rm -rf "$1" || { sleep 2; rm -rf "$1"; }  # again if a child of a program was still writing
fi
"""


class ProgramFailed(GenlockError):
    """A program that the sandbox needs failed or did not start."""


def run(command: list[str | Path], **options: Any) -> None:
    """Run a program to its end. Raises ProgramFailed with its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise ProgramFailed(f"{command}:\n{done.stdout}{done.stderr}")


def unprivileged() -> dict[str, Any]:
    """Arguments of `subprocess` that drop root privileges: PostgreSQL refuses to run as root."""
    if not AS_ROOT:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def guarded_folder(kept: Path | None = None) -> Iterator[Path]:
    """Yield a folder whose programs end with this process, even if it is killed.

    A watchdog process kills the programs whose pids are in the files `pid` and `NAME.pid` of the folder, and then
    removes the folder unless it is `kept`. The folder belongs to the user of `unprivileged`.
    """
    folder = _prepare(kept) if kept else Path(tempfile.mkdtemp(prefix="genlock-", dir=_temporary_place()))
    watchdog = subprocess.Popen(
        ["sh", "-c", WATCHDOG, "watchdog", folder, "kept" if kept else ""],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C must not end the watchdog
    )
    try:
        if user := unprivileged():
            os.chown(folder, user["user"], user["group"])
        yield folder
    finally:
        watchdog.communicate()


def _temporary_place() -> str:
    """Return where temporary folders are made: a place that the user of `unprivileged` may enter."""
    usual = tempfile.gettempdir()
    return usual if not AS_ROOT or open_to_all(Path(usual, "folder")) else OPEN_PLACE


def open_to_all(path: Path) -> bool:
    """Whether every user may enter all folders on the way to `path`, and run it if it is a program."""
    way = (path, *path.parents) if path.is_file() else path.parents
    return all(part.stat().st_mode & S_IXOTH for part in way)


def _prepare(folder: Path) -> Path:
    """Create the folder and remove pid files of an earlier run."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (folder / "pid", *folder.glob("*.pid")):
        file.unlink(missing_ok=True)
    return folder.resolve()


#: sockets whose names tell other processes which ports were found here; the system removes the names with the process
_reservations: dict[int, socket.socket] = {}


def find_free_port() -> int:
    """Find a port below the ephemeral range, so that no client connection takes it while its server restarts.

    Until this process ends, it is found by no other one, even while no server listens on it.
    """
    while True:
        port = random.randint(15_000, 32_000)
        if reserve_port(port):
            return port


def is_free_port(port: int) -> bool:
    """Return whether a server could listen on a port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def reserve_port(port: int) -> bool:
    """Return whether a port is free, and was not found before by this process or one that still runs."""
    if port in _reservations or not is_free_port(port):
        return False
    if sys.platform != "linux":  # only Linux has names of sockets that are not files
        return True
    reservation = socket.socket(socket.AF_UNIX)
    try:
        reservation.bind(f"\0genlock-port-{port}")
    except OSError:
        reservation.close()
        return False
    _reservations[port] = reservation
    return True


class Server:
    """A running server program. The constructor returns when `answers()` is true; log and pid are in `folder`."""

    def __init__(
        self,
        command: list[str | Path],
        *,
        folder: Path,
        answers: Callable[[], bool],
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self._log, self._pid = folder / "log", folder / "pid"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C goes to this process only, which then stops the server
                **options,
            )
        self._pid.write_text(f"{self._process.pid}\n")
        try:
            self._wait_until(answers)
        except BaseException:
            self.stop(SIGKILL)
            raise

    def _wait_until(self, answers: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ProgramFailed(f"{self._process.args!r} does not answer:\n{self._log.read_text()}")
            time.sleep(0.02)

    def stop(self, signal: Signals) -> None:
        """End the program and wait until it has ended."""
        self._process.send_signal(signal)
        try:
            self._process.wait(SECONDS_MAX)
        finally:
            self._process.kill()
            self._process.wait()
            self._pid.unlink()
