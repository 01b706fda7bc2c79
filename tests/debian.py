"""Packages of Debian and its derivatives: installed by root, or unpacked into the virtual environment by any user."""

import os
import shutil
import sys
from pathlib import Path

from genlock.sandbox.processes import ProgramFailed, guarded_folder, run
from tests.programs import Program, ProgramMissing

SECONDS_MAX = 600


def install_packages(*packages: str) -> None:
    """Install packages into the system; only root may."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt: list[str | Path] = ["apt-get", "--quiet", "--option=DPkg::Lock::Timeout=120"]
    _run([*apt, "update"], env=environment)
    _run([*apt, "install", "--no-install-recommends", "--yes", *packages], env=environment)


def unpack_packages(*packages: str) -> Path:
    """Unpack packages, and the libraries that this system lacks for them, without root and without a system change."""
    unpacked = Path(sys.prefix) / packages[0]
    if unpacked.exists():
        return unpacked
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise ProgramMissing("there is no apt-get to take a package with")
    partial = Path(f"{unpacked}.part")
    shutil.rmtree(partial, ignore_errors=True)
    with guarded_folder() as folder:
        _download(packages, folder)
        for archive in folder.glob("archives/*.deb"):
            _run(["dpkg-deb", "--extract", archive, partial])
    if not partial.exists():
        raise ProgramMissing(f"apt-get takes {packages[0]} for installed, but it is not usable")
    return partial.rename(unpacked)


def unpacked_program(unpacked: Path, program: str) -> Program:
    """Return a program of unpacked packages with the variables that make it find its libraries and fonts."""
    libraries = {str(library.parent) for library in unpacked.glob("**/*-linux-gnu/**/lib*.so*")}
    environment = {"LD_LIBRARY_PATH": ":".join(sorted(libraries))}
    if (unpacked / "usr/share/fonts").exists():
        environment["XDG_DATA_HOME"] = str(unpacked / "usr/share")
    if (unpacked / "etc/fonts").exists():
        environment["FONTCONFIG_PATH"] = str(unpacked / "etc/fonts")
    return Program(unpacked / program, environment)


def _download(packages: tuple[str, ...], folder: Path) -> None:
    options = {
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
        "Dir::Cache": folder,
        "Dir::State::Lists": folder / "lists",
    }
    apt = ["apt-get", "--quiet", *(f"--option={name}={value}" for name, value in options.items())]
    for needed in ("archives/partial", "lists/partial"):
        (folder / needed).mkdir(parents=True)
    _run([*apt, "update"])
    _run([*apt, "install", "--download-only", "--no-install-recommends", "--yes", *packages])


def _run(command: list[str | Path], **options: object) -> None:
    try:
        run(command, timeout=SECONDS_MAX, **options)
    except ProgramFailed as error:
        raise ProgramMissing(f"{command[0]} failed: {str(error).splitlines()[-1]}") from error
