"""The wheel works where it is installed: everything it needs is in it, and nothing comes from the repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from genlock.sandbox.smoke import PHASES
from tests.certificates import with_all_authorities

REPOSITORY = Path(__file__).parents[2]
#: the first run downloads what the wheel depends on
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", cwd=REPOSITORY)
    (built,) = (tmp_path / "dist").iterdir()
    return built


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Path:
    """The programs of an environment that holds the wheel, its extra, and the locked versions of what they need."""
    environment = tmp_path / "environment"
    uv = Path(sys.executable).with_name("uv")
    run(uv, "venv", "--no-config", "--python", sys.executable, environment, cwd=tmp_path)
    run(
        *(
            uv,
            "pip",
            "install",
            "--no-config",
            "--link-mode=copy",
            "--no-build",
            "--python",
            environment / "bin" / "python",
        ),
        # uv checks the hashes that the lock gives, and the versions are the ones that all other tests use.
        *("--constraint", REPOSITORY / "requirements" / "dev.lock", f"genlock[sandbox] @ {wheel.as_uri()}"),
        cwd=tmp_path,
        env=with_all_authorities(),
    )
    return environment / "bin"


def test_an_installed_wheel_passes_the_smoke_test_outside_the_repository(installed: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    clean = {"PATH": os.defpath}
    where = run(installed / "python", "-c", "import genlock; print(genlock.__file__)", cwd=empty, env=clean)
    assert Path(where.strip()).is_relative_to(installed.parent)

    report = json.loads(run(installed / "genlock", "smoke", "--json", cwd=empty, env=clean))

    assert [phase["name"] for phase in report["phases"] if phase["ok"]] == list(PHASES)
    assert list(empty.iterdir()) == []
