"""Random examples are the same at every run, and others, and more, with `--first-seed`."""

import subprocess
import sys
from pathlib import Path

import pytest

PROPERTY = """
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.random_examples import examples

SEEN = []


@settings(max_examples=examples(10))
@given(st.integers())
def test_property(number):
    SEEN.append(number)


@pytest.mark.random
def test_own_mark(request):
    SEEN.append(request.node.get_closest_marker("timeout"))


def test_seeds(first_seed, fuzz_cases):
    time = SEEN.pop().args[0] if first_seed else SEEN.pop()
    print("seen", len(SEEN), sum(SEEN), "seed", first_seed, "cases", fuzz_cases, "seconds", time)
"""
ROOT = Path(__file__).parents[2]


def seen(folder: Path, *options: str) -> list[str]:
    """Run the property in a process of its own, and return what it has seen."""
    (folder / "test_it.py").write_text(PROPERTY)
    command = [
        sys.executable, "-m", "pytest", "-q", "-s", "-m", "random", "-p", "no:cacheprovider", "-p", "no:schemathesis",
        "-p", "tests.random_examples", f"--rootdir={folder}", *options, str(folder / "test_it.py"),
    ]  # fmt: skip
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return next(line for line in ended.stdout.splitlines() if "seen" in line).split("seen ")[1].split()


@pytest.mark.process
@pytest.mark.parametrize("ci", ["", "true"])
def test_examples_are_the_same_until_others_are_asked_for(
    tmp_path: Path, ci: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis has other defaults where the variable CI is set."""
    if ci:
        monkeypatch.setenv("CI", ci)
    else:
        monkeypatch.delenv("CI", raising=False)
    first = seen(tmp_path)
    assert first == seen(tmp_path)
    assert (first[0], first[3], first[5], first[7]) == ("10", "0", "20000", "None")

    others = seen(tmp_path, "--first-seed", "5")
    assert (others[0], others[3], others[5], others[7]) == ("200", "5", "400000", "3600")
    assert others == seen(tmp_path, "--first-seed", "5")
    assert others[1] != seen(tmp_path, "--first-seed", "6")[1]
