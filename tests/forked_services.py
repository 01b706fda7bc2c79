"""Starts `genlock serve` by forking a process that has imported the package, which saves a second of CPU per start.

The process of a service is a child of the fork server, so the fork server is asked for its exit status. Tests of the
start itself (`genlock smoke`, the sandbox, chaos, the installed wheel) start Python anew.
"""

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import Any, BinaryIO

ROOT = Path(__file__).parents[1]
PRELOADED = (
    "genlock.app.dashboard_pages",
    "genlock.cli",
    "genlock.providers.kie.bundle",
    "genlock.service",
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
                [sys.executable, "-m", "tests.forked_services", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._stream = ours.makefile("rw", encoding="utf-8")
        ours.close()

    def launch(
        self, command: list[str], *, cwd: Path, env: Mapping[str, str], stdout: BinaryIO, **_: Any
    ) -> "ForkedProcess":
        """Start `genlock serve`, with the arguments that `subprocess.Popen` would get."""
        assert command[1:] == ["-m", "genlock", "serve"]
        return ForkedProcess(self, self.ask(folder=str(cwd), environment=dict(env), log=stdout.name)["pid"])

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
    """What `Instance` needs of `subprocess.Popen`."""

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
                raise subprocess.TimeoutExpired("genlock serve", timeout or 0)
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


def _become(folder: str, environment: dict[str, str], log: str) -> None:
    os.setsid()
    os.chdir(folder)
    for path, flags, targets in ((os.devnull, os.O_RDONLY, (0,)), (log, os.O_WRONLY | os.O_APPEND, (1, 2))):
        opened = os.open(path, flags)
        for target in targets:
            os.dup2(opened, target)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["genlock", "serve"]


def main() -> None:
    for name in PRELOADED:
        import_module(name)
    gc.collect()
    gc.freeze()  # the pages of the imported modules stay shared
    if request := _serve_requests(int(sys.argv[1])):
        _become(**request)
        runpy.run_module("genlock", run_name="__main__")


if __name__ == "__main__":
    main()
