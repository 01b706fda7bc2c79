"""The settings of a running sandbox, as a shell reads them."""

import subprocess
from pathlib import Path

import pytest

from genlock.sandbox.settings_file import SettingsFile


def read_in_a_shell(command: str, name: str) -> str:
    line = ["sh", "-ec", f'{command}; printenv "$1"', "sh", name]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout.removesuffix("\n")


@pytest.mark.process
@pytest.mark.parametrize("folder", ["state", "it's [bold] $HOME", "."])
def test_a_shell_reads_every_value_as_it_was_written(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "sqlite:////tmp/it's $HOME `id`/genlock.db"
    (tmp_path / folder).mkdir(exist_ok=True)
    file = SettingsFile(tmp_path / folder)
    file.write({"GENLOCK_FIRST": value, "GENLOCK_SECOND": "a,b"})
    elsewhere = file.shell_command()
    monkeypatch.chdir(tmp_path)
    for command in (elsewhere, file.shell_command()):
        assert read_in_a_shell(command, "GENLOCK_FIRST") == value
        assert read_in_a_shell(command, "GENLOCK_SECOND") == "a,b"
    assert file.read() == {"GENLOCK_FIRST": value, "GENLOCK_SECOND": "a,b"}
    file.remove()
    assert file.read() == {}


def test_only_its_owner_reads_the_file_and_what_a_killed_sandbox_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("GENLOCK_FIRST=old\n")
    (tmp_path / "env").chmod(0o644)
    file = SettingsFile(tmp_path)
    file.remove()
    file.write({"GENLOCK_FIRST": "new"})
    assert (tmp_path / "env").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "env").read_text() == "GENLOCK_FIRST=new\n"
