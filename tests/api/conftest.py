"""One API for all tests of a file: each test makes its own clients."""

import io
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from PIL import Image

from tests.api.world import ApiWorld, running_api
from tests.databases import new_sqlite


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiWorld]:
    folder = tmp_path_factory.mktemp("api")
    async with running_api(f"sqlite:///{new_sqlite(folder)}", folder / "media") as running:
        yield running


@pytest.fixture(scope="session")
def png() -> bytes:
    """A small picture."""
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), "teal").save(buffer, "PNG")
    return buffer.getvalue()
