"""Fixtures of the tests of plug-ins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.packages import Packages


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Packages]:
    monkeypatch.chdir(tmp_path)
    found = Packages(tmp_path / "site", monkeypatch)
    yield found
    found.unload()
