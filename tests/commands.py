"""Runs `genlock` commands in processes of their own, forked from one that has already imported the package."""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "asyncpg",
        "genlock.app.databases",
        "genlock.app.engine",
        "genlock.cli",
        "genlock.doctor.doctor",
        "genlock.settings",
        "typer.rich_utils",
    ]
)
TIMEOUT_SECONDS = 60.0


def run_command(*arguments: str, environment: Mapping[str, str], folder: Path) -> CompletedProcess[str]:
    """Run a command to its end, with this whole environment and in this folder."""
    with TemporaryDirectory() as outputs:
        out, err = Path(outputs, "out"), Path(outputs, "err")
        process = _CONTEXT.Process(target=_run, args=(arguments, dict(environment), folder, out, err))
        process.start()
        process.join(TIMEOUT_SECONDS)
        if process.is_alive():
            process.kill()
            raise TimeoutError(f"genlock {' '.join(arguments)} did not end")
        assert process.exitcode is not None
        return CompletedProcess(arguments, process.exitcode, out.read_text(), err.read_text())


def _run(arguments: tuple[str, ...], environment: dict[str, str], folder: Path, out: Path, err: Path) -> None:
    """Become the command: its own streams, environment, folder and arguments."""
    from genlock.cli import main  # noqa: PLC0415 - imported by the fork server

    for path, stream in ((out, sys.stdout), (err, sys.stderr)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["genlock", *arguments]
    main()
