"""The settings of a running sandbox, as a file that a shell reads, for the commands beside the service."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

FILE = "env"


class SettingsFile:
    """It has secrets, and is there only while the sandbox runs: the next one listens and signs with others."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def write(self, settings: Mapping[str, str]) -> None:
        """Write a file that was removed before, readable by its owner only."""
        lines = "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(settings.items()))
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(lines)

    def read(self) -> dict[str, str]:
        """Return what was written; nothing if no sandbox runs."""
        if not self._path.exists():
            return {}
        lines = self._path.read_text(encoding="utf-8").splitlines()
        return {name: shlex.split(quoted)[0] for name, _, quoted in (line.partition("=") for line in lines)}

    def shell_command(self) -> str:
        """What a user types so that the commands in this terminal use these settings."""
        here = Path.cwd()
        path = self._path.relative_to(here) if self._path.is_relative_to(here) else self._path
        # A dot without a slash would search PATH.
        return f"set -a; . {shlex.quote(str(path) if len(path.parts) > 1 else f'./{path}')}; set +a"
