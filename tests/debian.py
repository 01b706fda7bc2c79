"""Programs of Debian's packages for tests: the system's, or the package unpacked into the virtual environment."""

import fcntl
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from genlock.sandbox.processes import ProgramFailed, guarded_folder, run


class ProgramMissing(Exception):
    """A program is neither installed nor to be had from Debian's packages."""


def find_program(package: str, program: str) -> tuple[Path, Mapping[str, str]]:
    """The program and the environment it needs; `program` is its path inside the package."""
    # An ordinary user's PATH often lacks Debian's /usr/sbin.
    if installed := shutil.which(package, path=f"{os.environ['PATH']}:/usr/sbin"):
        return Path(installed), {}
    folder = unpack_package(package)
    libraries = ":".join(str(path) for path in sorted(folder.glob("**/*-linux-gnu")))
    return folder / program, {"LD_LIBRARY_PATH": libraries}


def unpack_package(package: str) -> Path:
    """Unpack a package and the libraries it lacks here, changing nothing of the system and needing no root."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise ProgramMissing(f"{package} is not installed, and here are no Debian packages to take it from")
    unpacked = Path(sys.prefix) / package
    with Path(f"{unpacked}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # held against the other test processes until closed
        if unpacked.exists():
            return unpacked
        try:
            with guarded_folder() as folder:
                _download(package, folder)
                for archive in folder.glob("archives/*.deb"):
                    run(["dpkg-deb", "--extract", archive, f"{unpacked}.part"])
        except ProgramFailed as error:
            raise ProgramMissing(f"{package} cannot be had from Debian's packages: {error}") from error
        Path(f"{unpacked}.part").rename(unpacked)
    return unpacked


def _download(package: str, folder: Path) -> None:
    options = {
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "true",
        "Dir::Cache": folder,
        "Dir::State::Lists": folder / "lists",
    }
    apt = ["apt-get", "--quiet", *(f"--option={name}={value}" for name, value in options.items())]
    for needed in ("archives/partial", "lists/partial"):
        (folder / needed).mkdir(parents=True)
    run([*apt, "update"])
    run([*apt, "install", "--download-only", "--no-install-recommends", "--yes", package])
