"""`genlock smoke` passes on the real product and fails if something is broken."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from genlock.sandbox.smoke import PHASES, run


def test_all_nine_phases_pass_without_any_setting(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "genlock", "smoke", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin"},
        timeout=100,
    )
    report = json.loads(done.stdout)
    assert [phase["name"] for phase in report["phases"]] == list(PHASES)
    assert all(phase["ok"] and phase["detail"] for phase in report["phases"]), report
    assert "Hi, Ann! I create pictures" in report["phases"][0]["detail"]
    assert "xa0" not in report["phases"][0]["detail"]
    assert report["ok"]
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("sends_twice")
def test_smoke_fails_if_the_channel_sends_messages_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(as_json=True) == 1
    report = {phase["name"]: phase for phase in json.loads(capsys.readouterr().out)["phases"]}
    assert "2 notices" in report["delivery"]["detail"]
    assert not report["delivery"]["ok"]
    assert report["money"]["ok"]
