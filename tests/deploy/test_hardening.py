"""What is deployed has no more rights than it needs, and is built from nothing that is not pinned."""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

SERVICES: dict[str, Any] = yaml.safe_load(Path("compose.yaml").read_text(encoding="utf-8"))["services"]
UNITS = sorted(Path("deploy").glob("*.service"))
DOCKERFILE = Path("Dockerfile").read_text(encoding="utf-8")
LOCKS = sorted(Path("requirements").glob("*.lock"))
#: the highest exposure level of `systemd-analyze security`, in tenths; a service without any of it has 96
EXPOSURE_MAX = 15
FULL_DIGEST = "sha256:" + "ab" * 32


def installs() -> Iterator[tuple[str, str]]:
    """Every line of the project that installs packages, with the file it is in."""
    files = [
        Path("Dockerfile"),
        Path("Makefile"),
        Path(".ci/run"),
        *Path("deploy").iterdir(),
        *Path("docs").rglob("*.md"),
    ]
    for file in files:
        text = re.sub(r"\\\n\s*", " ", file.read_text(encoding="utf-8"))
        for line in text.splitlines():
            for command in re.split(r"&&|;", line):
                if re.search(r"(pip|\$\(PIP\)) install ", command):
                    yield str(file), command


def test_every_install_step_takes_locked_wheels_or_our_own_wheel() -> None:
    found = list(installs())
    wrong = [
        (file, command)
        for file, command in found
        if not ("--require-hashes" in command and "--only-binary :all:" in command)
        and not ("--no-deps" in command and ("--no-index" in command or "--no-build-isolation" in command))
    ]
    assert len(found) >= 8
    assert wrong == []


def test_every_locked_package_has_hashes() -> None:
    assert [lock.name for lock in LOCKS] == ["build.lock", "dev.lock", "run.lock"]
    for lock in LOCKS:
        packages = re.split(r"\n(?=\S)", lock.read_text(encoding="utf-8").strip())
        assert [name for name in packages if "==" not in name or "--hash=sha256:" not in name] == []


def test_the_build_backend_is_the_locked_one() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    [backend] = project["build-system"]["requires"]
    pinned = [
        re.findall(r"^(hatchling==\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
        for lock in LOCKS
        if lock.name != "run.lock"
    ]
    assert pinned == [[backend], [backend]]
    assert project["dependency-groups"]["build"] == [backend.partition("==")[0]]


def test_no_base_image_is_named_without_a_digest() -> None:
    """The digests themselves are the operator's to look up: `make images`. There is no default to fall back to."""
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    assert re.findall(r"^ARG PYTHON_IMAGE(.*)$", DOCKERFILE, re.MULTILINE) == ["", ""]
    assert SERVICES["genlock"]["build"]["args"]["PYTHON_IMAGE"].startswith("${PYTHON_IMAGE:?")
    assert SERVICES["postgres"]["image"].startswith("${POSTGRES_IMAGE:?")


@pytest.mark.process
@pytest.mark.parametrize(
    ("image", "accepted"), [(f"python:3.12-slim@{FULL_DIGEST}", True), ("python:3.12-slim", False), ("", False)]
)
def test_the_image_is_not_built_on_a_base_image_without_a_digest(image: str, accepted: bool) -> None:  # noqa: FBT001 - a case
    [check] = re.findall(r"^RUN (case .*)$", DOCKERFILE, re.MULTILINE)
    done = subprocess.run(["sh", "-c", check], env={"PYTHON_IMAGE": image}, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is accepted
    assert accepted or "run make images" in done.stderr


@pytest.mark.process
def test_make_images_prints_what_the_build_takes(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho {FULL_DIGEST}\n", encoding="utf-8")
    docker.chmod(0o755)
    command = ["make", "--silent", "--no-print-directory", "images"]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(command, env={"PATH": path}, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        f"PYTHON_IMAGE=python:3.12-slim@{FULL_DIGEST}",
        f"POSTGRES_IMAGE=postgres:17-alpine@{FULL_DIGEST}",
    ]


@pytest.mark.process
def test_the_documented_build_takes_the_image_looked_up_last(tmp_path: Path) -> None:
    [take] = re.findall(r'--build-arg "\$\((.+?)\)"', Path("docs/how-to/deploy.md").read_text(encoding="utf-8"))
    (tmp_path / ".env").write_text("PYTHON_IMAGE=old\nPOSTGRES_IMAGE=old\nPYTHON_IMAGE=new\n", encoding="utf-8")
    done = subprocess.run(["sh", "-c", take], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["PYTHON_IMAGE=new"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_has_no_capabilities_and_bounded_resources(name: str) -> None:
    service = SERVICES[name]
    assert service["cap_drop"] == ["ALL"]
    assert "cap_add" not in service
    assert "privileged" not in service
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["read_only"] is True
    assert service["mem_limit"] == service["memswap_limit"]
    assert service["pids_limit"] <= 256


@pytest.mark.parametrize("name", SERVICES)
def test_a_container_can_write_temporary_files(name: str) -> None:
    """Files that are measured, uploaded and downloaded are in /tmp for the length of a call."""
    [tmp] = [mount for mount in SERVICES[name]["tmpfs"] if mount.startswith("/tmp:")]  # noqa: S108 - a path in the container
    assert "mode=1777" in tmp


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_confined(unit: Path) -> None:
    lines = set(unit.read_text(encoding="utf-8").splitlines())
    wanted = {
        "DynamicUser=yes", "User=genlock", "UMask=0077", "NoNewPrivileges=yes", "ProtectSystem=strict",
        "ProtectHome=yes", "PrivateTmp=yes", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "SystemCallFilter=@system-service", "SystemCallArchitectures=native", "CapabilityBoundingSet=",
    }  # fmt: skip
    assert wanted - lines == set()
    assert any(line.startswith("MemoryMax=") for line in lines)
    assert any(line.startswith("TasksMax=") for line in lines)


@pytest.mark.process
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_little_exposure(unit: Path) -> None:
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_backup_runs_daily_and_old_ones_go_only_after_a_new_one() -> None:
    unit = Path("deploy/genlock-backup.service").read_text(encoding="utf-8")
    assert "genlock backup" in unit
    assert re.search(r"^ExecStartPost=.*-delete$", unit, re.MULTILINE)
    assert "OnCalendar=*-*-* 03:30:00" in Path("deploy/genlock-backup.timer").read_text(encoding="utf-8")
