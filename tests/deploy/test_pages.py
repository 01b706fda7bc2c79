"""The pages name files, modules and links that exist, and their example works."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PAGES = [*sorted(Path("docs").rglob("*.md")), *sorted(Path().glob("*.md"))]
FILES = [path for path in Path().glob("[!.]*/**/*") if "__pycache__" not in path.parts] + list(Path().iterdir())
#: named as a pattern, or made where genlock runs
ELSEWHERE = {"NNNN_name.sql", "genlock.db", "genlock.db-wal", "genlock.db-shm"}


def in_backticks(page: Path, pattern: str) -> set[str]:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return {name for name in re.findall(r"`([^`\n]+)`", prose) if re.fullmatch(pattern, name)}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_link_has_a_target(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_named_file_and_folder_exists(page: Path) -> None:
    known = {"/".join(path.parts[-length:]) for path in FILES for length in range(1, len(path.parts) + 1)}
    named = in_backticks(page, r"[\w./-]+\.(py|toml|sql|ya?ml|service|md)|[\w.-]+(/[\w.-]+)*/")
    assert not {name.rstrip("/") for name in named} - known - ELSEWHERE


def test_every_page_and_test_that_a_comment_names_exists() -> None:
    path = re.compile(r"(?<![\w/.])(?:docs|tests)/[\w./-]+\.(?:md|py)\b")
    sources = [file for file in FILES if file.parts[0] in {"src", "tests", "examples", "deploy"} and file.is_file()]
    named = {
        name
        for file in sources
        if file.suffix in {".py", ".toml", ".sql", ".yml", ".service"}
        for name in path.findall(file.read_text(encoding="utf-8"))
    }
    assert {name for name in named if not Path(name).exists()} == set()


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_named_module_exists(page: Path) -> None:
    for name in in_backticks(page, r"(python -m )?genlock(\.\w+)+") - ELSEWHERE:
        path = Path("src", *name.removeprefix("python -m ").split("."))
        assert path.is_dir() or path.with_suffix(".py").exists(), name


@pytest.mark.process
def test_the_order_that_the_readme_shows_is_delivered_and_paid_for() -> None:
    shown = re.search(r"```python\n(store = .*?)```", Path("README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert shown
    script = Path("examples/smallest_engine.py")
    assert textwrap.indent(shown[1], "    ") in script.read_text(encoding="utf-8")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "message 1.0 shows https://example.org/task-1.png",
        "notice: order 1 is ready",
        "the account has 9200 thousandths of a credit left, and 0 held",
    ]
