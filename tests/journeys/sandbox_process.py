"""A process of `genlock sandbox`."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import psutil

from genlock.sandbox.processes import find_free_port, reserve_port

PATIENCE_SECONDS = 90


def wait_until(holds: Callable[[], Any], what: str) -> Any:
    """Ask until there is an answer; a busy machine may cut a connection."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := _try(holds)):
        assert time.monotonic() < deadline, f"timed out waiting until {what}"
        time.sleep(0.05)
    return found


def _try(holds: Callable[[], Any]) -> Any:
    try:
        return holds()
    except OSError:
        return None


def find_four_ports() -> int:
    """The first of four consecutive free ports."""
    while True:
        first = find_free_port()
        if all(reserve_port(port) for port in range(first + 1, first + 4)):
            return first


class Sandbox:
    def __init__(
        self, folder: Path, *arguments: str, port: int | None = None, launch: Callable[..., Any] = subprocess.Popen
    ) -> None:
        self.port = port or find_four_ports()
        self.error = folder / f"sandbox-{self.port}.txt"
        with self.error.open("wb") as error:
            self.process = launch(
                [sys.executable, "-m", "genlock", "sandbox", "--port", str(self.port), *arguments],
                cwd=folder,
                stdout=error,
                stderr=error,
                env={**os.environ, "COLUMNS": "200"},
            )

    @property
    def url(self) -> str:
        """The chat page."""
        return f"http://127.0.0.1:{self.port}/"

    @property
    def output(self) -> str:
        return self.error.read_text()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.output
        return "Ctrl-C stops it" in self.output

    def ready(self) -> "Sandbox":
        wait_until(self.is_ready, self.output)
        return self

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def get(self, path: str, *, place: int = 0) -> Any:
        with urlopen(f"http://127.0.0.1:{self.port + place}{path}", timeout=10) as response:
            text = response.read()
            return json.loads(text) if "json" in response.headers["Content-Type"] else text.decode()

    def open_dashboard(self) -> str:
        """Follow the one link that the sandbox prints, as a browser does."""
        browser = build_opener(HTTPCookieProcessor())
        with browser.open(f"http://127.0.0.1:{self.port}/dashboard", timeout=10) as response:
            return str(response.read().decode())

    def post(self, path: str, said: Any) -> Any:
        body = json.dumps(said).encode()
        request = Request(f"http://127.0.0.1:{self.port}{path}", body, {"Content-Type": "application/json"})
        with urlopen(request, timeout=10) as response:  # noqa: S310
            return json.loads(response.read())

    def end(self, name: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(name)
        return int(self.process.wait(PATIENCE_SECONDS))
