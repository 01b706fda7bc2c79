"""`genlock smoke`: nine phases that hold, and that fail where something is broken."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from genlock.sandbox.smoke import PHASES, run


def test_all_nine_phases_hold_without_any_setting(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "genlock", "smoke", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        timeout=100,
    )
    told = json.loads(done.stdout)
    assert [phase["name"] for phase in told["phases"]] == list(PHASES)
    assert all(phase["ok"] and phase["detail"] for phase in told["phases"]), told
    assert told["ok"]
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("sends_twice")
def test_a_channel_that_repeats_what_is_sent_is_found_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(as_json=True) == 1
    told = {phase["name"]: phase for phase in json.loads(capsys.readouterr().out)["phases"]}
    assert "2 notices" in told["delivery"]["detail"]
    assert not told["delivery"]["ok"]
    assert told["money"]["ok"]
