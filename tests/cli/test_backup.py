"""`genlock backup` and `genlock restore`, as an operator runs them: real processes, real files."""

import json
from pathlib import Path

import pytest

from tests.cli.shell import Shell, order_a_job

pytestmark = pytest.mark.process


@pytest.fixture(params=["sqlite", "postgres"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    if request.param == "sqlite":
        return Shell(f"sqlite:///{tmp_path}/genlock.db", tmp_path)
    return Shell(request.getfixturevalue("postgres_url"), tmp_path)


def test_an_operator_backs_up_and_rehearses_the_restore_in_a_file(shell: Shell, tmp_path: Path) -> None:
    job_id = order_a_job(shell.url)

    made = shell.run("backup", "daily.backup")
    assert made.returncode == 0, made.stderr
    assert "read back and complete" in made.stdout
    refused = shell.run("backup", "daily.backup")
    assert (refused.returncode, "exists already" in refused.stderr) == (1, True)

    rehearsal = Shell(f"sqlite:///{tmp_path}/rehearsal.db", tmp_path)
    restored = rehearsal.run("restore", "daily.backup")
    assert restored.returncode == 0, restored.stderr
    assert "Every invariant of money and jobs holds." in restored.stdout
    assert "1 jobs (`genlock jobs attention`)" in restored.stdout
    assert rehearsal.run("jobs", "check").stdout == "Every invariant holds.\n"
    [listed] = rehearsal.json("jobs", "attention")
    assert listed["id"] == job_id
    assert "restored from the backup" in listed["attention"]

    again = rehearsal.run("restore", "daily.backup")
    assert (again.returncode, "the database is not empty" in again.stderr) == (1, True)
    moved = rehearsal.run("restore", "--force", "--resume", "--json", "daily.backup")
    assert json.loads(moved.stdout)["parked_jobs"] == 0
    assert rehearsal.json("jobs", "attention") == []


def test_errors_are_sentences_without_a_traceback(tmp_path: Path) -> None:
    shell = Shell(f"sqlite:///{tmp_path}/genlock.db", tmp_path)
    absent = shell.run("backup", "x.backup")
    assert (absent.returncode, "does not exist" in absent.stderr) == (1, True)
    shell.run("migrate")
    folder = shell.run("backup", "absent/x.backup")
    assert (folder.returncode, "absent cannot be written to" in folder.stderr) == (1, True)
    unknown = shell.run("restore", "absent.backup")
    assert (unknown.returncode, "absent.backup cannot be opened" in unknown.stderr) == (1, True)
    for done in (absent, folder, unknown):
        assert "Traceback" not in done.stderr
