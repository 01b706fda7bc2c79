"""The documentation site builds strictly and loads nothing from other hosts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

#: what a browser loads by itself, as opposed to a link that a reader may follow
LOADED = re.compile(r"""(?:\bsrc=|<link[^>]+href=|url\(|@import\s+)["']?(https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_the_docs_is_on_the_site(site: Path) -> None:
    pages = {path.relative_to("docs").with_suffix(".html") for path in Path("docs").rglob("*.md")}
    assert pages - {path.relative_to(site) for path in site.rglob("*.html")} == set()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loads = [
        f"{path.relative_to(site)}: {match[0]}"
        for path in site.rglob("*")
        if path.suffix in {".html", ".css"}
        for match in LOADED.finditer(path.read_text(encoding="utf-8"))
        if 'rel="canonical"' not in match[0]
    ]
    assert loads == []
