"""The pictures of the docs can be taken from the running sandbox at any time."""

from pathlib import Path

import pytest
from PIL import Image

from docs.screenshots import SIZE, take_from_new_sandbox


@pytest.mark.timeout(180)
async def test_the_pictures_of_the_docs_are_taken_from_the_sandbox(tmp_path: Path) -> None:
    await take_from_new_sandbox(tmp_path, tmp_path)
    for name in ("chat.png", "panel.png", "try.png"):
        with Image.open(tmp_path / name) as picture:
            assert picture.size == (SIZE["width"], SIZE["height"])
            assert len(picture.getcolors(1 << 24) or ()) > 1000, "the picture shows the painted scene"
