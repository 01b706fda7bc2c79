"""Fail if a module names a provider that should know providers only through the port.

`python -m tests.style.check_providers`. The names are those of the folders in `genlock.providers`.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path("src/genlock")
#: code, and what users and operators read; the files of the catalog are data about providers
CHECKED = ("**/*.py", "i18n/**/*.toml", "dashboard/templates/*.html")
#: the adapters and the simulators
ALLOWED = ("providers/", "sandbox/")


def provider_names(source: Path = SOURCE) -> list[str]:
    return sorted(folder.name for folder in (source / "providers").iterdir() if (folder / "__init__.py").exists())


def named_providers(source: Path, names: list[str]) -> Iterator[str]:
    """Yield each line outside the allowed modules that names a provider, as a word or as a part of a name."""
    pattern = re.compile(rf"(?<![a-z])(?:{'|'.join(names)})(?![a-z])", re.IGNORECASE)
    for path in sorted(path for pattern in CHECKED for path in source.glob(pattern)):
        place = path.relative_to(source).as_posix()
        if place.startswith(ALLOWED):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                yield f"{place}:{number}: names a provider: {line.strip()}"


def main() -> int:
    found = list(named_providers(SOURCE, provider_names()))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
