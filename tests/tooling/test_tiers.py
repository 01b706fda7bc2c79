"""`make quick` keeps its promise: a test without a marker cannot start a process."""

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.process

TESTS = """
import asyncio, contextlib, multiprocessing, os, subprocess
import pytest

@pytest.fixture
def server():
    return subprocess.run(["true"], check=True)

def run(): pass

def test_subprocess(): subprocess.run(["true"], check=True)
def test_caught():
    with contextlib.suppress(Exception):
        subprocess.run(["true"], check=True)
def test_system(): os.system("true")
def test_spawn():
    process = multiprocessing.get_context("spawn").Process(target=run)
    process.start()
    process.join()
async def test_asyncio(): await (await asyncio.create_subprocess_exec("true")).wait()
def test_fixture(server): pass

def test_none(): pass
@pytest.mark.process
def test_marked(): subprocess.run(["true"], check=True)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_store(store):
    if store == "postgres":
        subprocess.run(["true"], check=True)
"""
STARTING = {"test_subprocess", "test_caught", "test_system", "test_spawn", "test_asyncio", "test_fixture"}
ALLOWED = {"test_none", "test_marked", "test_store[sqlite]", "test_store[postgres]"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["tests.tiers"]\n')
    (tmp_path / "test_some.py").write_text(TESTS)
    return tmp_path


def run_pytest(folder: Path, *arguments: str) -> dict[str, str]:
    """The outcome of each test, by name."""
    options = ["-q", "-rA", "--strict-markers", f"--rootdir={folder}", "-c", "/dev/null", "-o", "asyncio_mode=auto"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments, folder / "test_some.py"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith(("PASSED", "FAILED", "ERROR "))]
    return {words[1].rpartition("::")[2]: words[0] for words in lines}


def test_a_test_without_a_marker_fails_if_it_starts_a_process(folder: Path) -> None:
    outcomes = run_pytest(folder)
    assert {name for name, outcome in outcomes.items() if outcome != "PASSED"} == STARTING
    assert {name for name, outcome in outcomes.items() if outcome == "PASSED"} == ALLOWED


def test_quick_leaves_out_what_has_a_marker(folder: Path) -> None:
    (quick,) = [
        line for line in (REPOSITORY / "Makefile").read_text().splitlines() if " -m " in line and "slow" in line
    ]
    chosen = quick.split('"')[1]
    assert run_pytest(folder, "-m", chosen, "-k", "none or marked or store") == {
        "test_none": "PASSED",
        "test_store[sqlite]": "PASSED",
    }
