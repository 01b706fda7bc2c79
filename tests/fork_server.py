"""Starts Python programs by forking a process that has imported them, which saves a second of CPU per start.

The programs are children of the fork server, which is asked for their exit statuses. Tests of a start itself
(`genlock smoke`, chaos, the first minute, the installed wheel) start Python anew.
"""

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, BinaryIO

from genlock.catalog.loader import load
from genlock.i18n.translator import package_texts

ROOT = Path(__file__).parents[1]
PRELOADED = (
    "genlock.app.dashboard_pages",
    "genlock.cli",
    "genlock.providers.kie.bundle",
    "genlock.sandbox.run",
    "genlock.service",
    "tests.journeys.engine_process",
    "uvicorn.protocols.http.httptools_impl",
)
POLL_SECONDS = 0.01


class ForkServer:
    """The test's end of the connection to the process that forks."""

    def __init__(self) -> None:
        self._lock = Lock()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._stream = ours.makefile("rw", encoding="utf-8")
        ours.close()

    def launch(
        self,
        command: Sequence[str],
        *,
        stdout: BinaryIO,
        cwd: Path = ROOT,
        env: Mapping[str, str] = os.environ,
        **_: Any,
    ) -> "ForkedProcess":
        """Start `python -m …`, with the arguments that `subprocess.Popen` would get; the output goes to a file."""
        assert command[1] == "-m"
        answer = self.ask(arguments=command[2:], folder=str(cwd), environment=dict(env), output=stdout.name)
        return ForkedProcess(self, answer["pid"])

    def ask(self, **request: Any) -> dict[str, Any]:
        with self._lock:
            self._stream.write(f"{json.dumps(request)}\n")
            self._stream.flush()
            answer: dict[str, Any] = json.loads(self._stream.readline())
            return answer

    def close(self) -> None:
        self._stream.close()
        self._process.wait()


class ForkedProcess:
    """What the tests need of `subprocess.Popen`."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._status: int | None = None

    def poll(self) -> int | None:
        if self._status is None:
            self._status = self._server.ask(poll=self.pid)["status"]
        return self._status

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else monotonic() + timeout
        while (status := self.poll()) is None:
            if deadline is not None and monotonic() > deadline:
                raise subprocess.TimeoutExpired("python", timeout or 0)
            sleep(POLL_SECONDS)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve_requests(descriptor: int) -> dict[str, Any] | None:
    """Answer requests until the test process ends; in a forked child, return what it has to become."""
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rw", encoding="utf-8") as stream:
        for line in stream:
            request = json.loads(line)
            if "poll" in request:
                pid, status = os.waitpid(request["poll"], os.WNOHANG)
                answer = {"status": os.waitstatus_to_exitcode(status) if pid else None}
            elif child := os.fork():
                answer = {"pid": child}
            else:
                return dict(request)
            stream.write(f"{json.dumps(answer)}\n")
            stream.flush()
    return None


def _become(arguments: list[str], folder: str, environment: dict[str, str], output: str) -> None:
    os.setsid()
    os.chdir(folder)
    for path, flags, targets in ((os.devnull, os.O_RDONLY, (0,)), (output, os.O_WRONLY | os.O_APPEND, (1, 2))):
        opened = os.open(path, flags)
        for target in targets:
            os.dup2(opened, target)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    runpy.run_module(arguments[0], run_name="__main__")


def _warm_caches() -> None:
    """Read the files of the package that every service reads at its start: about half of the CPU of a start."""
    load()
    package_texts()


def main() -> None:
    for name in PRELOADED:
        import_module(name)
    _warm_caches()
    gc.collect()
    gc.freeze()  # the pages of the imported modules stay shared
    if request := _serve_requests(int(sys.argv[1])):
        _become(**request)


if __name__ == "__main__":
    main()
