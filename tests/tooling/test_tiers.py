"""`make quick` keeps its promise: a test without a marker cannot start a process."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tiers import put_first, pytest_ignore_collect

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


def test_a_folder_is_not_imported_if_all_of_its_tests_are_left_out() -> None:
    def ignored(folder: str, wanted: str) -> bool:
        config: Any = SimpleNamespace(option=SimpleNamespace(markexpr=wanted), rootpath=REPOSITORY)
        return bool(pytest_ignore_collect(REPOSITORY / "tests" / folder, config))

    assert [ignored(folder, "not slow and not browser") for folder in ("api", "sandbox/page", "bot")] == [
        True,
        True,
        False,
    ]
    assert not any(ignored("api", wanted) for wanted in ("", "slow", "not browser", "not slow or postgres"))


def test_files_that_share_a_browser_or_aiogram_run_first_and_together(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        'import pytest\npytest_plugins = ["tests.tiers"]\n@pytest.fixture\ndef browser(): pass\n'
    )
    library = 'import pytest\n@pytest.mark.parametrize("library", ["aiogram"])\ndef test(library): pass\n'
    files = {
        "a": "def test(): pass\n",
        "b": library,
        "c": "def test(browser): pass\n",
        "d": "def test(): pass\n",
        "e": "def test(): pass\ndef test_page(browser): pass\n",
    }
    for name, text in files.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    options = ["-q", "--collect-only", f"--rootdir={tmp_path}", "-c", "/dev/null", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    order = [line.partition(".py")[0][-1] for line in done.stdout.splitlines() if "::" in line]
    assert order == ["c", "e", "e", "b", "a", "d"]


def test_each_process_begins_with_what_is_chosen_for_it() -> None:
    items, first = list(range(100)), [[7], [], [50, 52, 54], [51, 53]]

    ordered = put_first(items, first)

    assert sorted(ordered) == items
    runs = [ordered[start : start + 25] for start in range(0, 100, 25)]
    assert [run[: len(tests)] for run, tests in zip(runs, first, strict=True)] == first
    assert ordered[1:7] == [0, 1, 2, 3, 4, 5], "the others keep their order"


@pytest.mark.parametrize("first", [[[], []], [[0, 1], [2]], [[], [], [], [3, 1, 0]], [[0, 1, 2, 3, 4], []]])
def test_no_test_is_lost_however_few_there_are(first: list[list[int]]) -> None:
    assert sorted(put_first(range(5), first)) == list(range(5))
