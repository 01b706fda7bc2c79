"""Two packaged languages, however many the package has by now: a contributor may add one without changing tests."""

from pathlib import Path

import pytest

from genlock.i18n import loader
from genlock.i18n.translator import package_texts

PACKAGE = Path(loader.__file__).parent
package_texts()  # cached with every language, before a fixture leaves some out


@pytest.fixture
def _two_languages(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make loaders find only English and Russian in the package."""
    folder = tmp_path_factory.mktemp("i18n")
    for code in ("en", "ru"):
        (folder / code).symlink_to(PACKAGE / code)
    monkeypatch.setattr(loader, "files", lambda _: folder)
