"""The programs of a process that was killed end, even if the next process uses its folder already."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from genlock.sandbox.processes import find_free_port, guarded_folder
from tests.changes import poll_until

#: it says that it was asked to quit, and goes on
STUBBORN = "trap 'echo asked > asked' QUIT; while :; do sleep 0.05; done"
HOLDER = f"""
import subprocess, sys
from pathlib import Path
from genlock.sandbox.processes import guarded_folder
with guarded_folder(Path(sys.argv[1])) as folder:
    program = subprocess.Popen(["sh", "-c", {STUBBORN!r}], cwd=folder, start_new_session=True, stdout=sys.stderr)
    (folder / "program.pid").write_text(str(program.pid))
    print(program.pid, flush=True)
    program.wait()
"""


def start_and_kill(folder: Path) -> psutil.Process:
    """Kill a process that holds the folder; return the program that it had started."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        program = psutil.Process(int(holder.stdout.readline()))
        holder.send_signal(signal.SIGKILL)
    return program


@pytest.mark.process
async def test_a_program_of_a_killed_process_ends_although_its_folder_is_in_use_again(tmp_path: Path) -> None:
    program = start_and_kill(tmp_path)
    try:
        await poll_until((tmp_path / "asked").exists)
        with guarded_folder(tmp_path):
            own = tmp_path / "own.pid"
            own.write_text("")
            await poll_until(lambda: not program.is_running())
            assert own.exists(), "the pids of the next process are its own"
    finally:
        if program.is_running():
            program.kill()


FINDER = "from genlock.sandbox.processes import reserve_port; import sys; print(reserve_port(int(sys.argv[1])))"


@pytest.mark.process
def test_a_port_that_one_process_found_is_not_found_again_before_its_server_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = find_free_port()
    drawn = iter([first, first, 31_999, 31_998, 31_997])
    monkeypatch.setattr(random, "randint", lambda *_: next(drawn))
    assert find_free_port() in {31_999, 31_998, 31_997}

    command = [sys.executable, "-c", FINDER, str(first)]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "False\n"
