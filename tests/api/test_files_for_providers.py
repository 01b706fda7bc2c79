"""A file that a client sent reaches each provider from our own copy of it."""

from collections.abc import AsyncIterable
from functools import partial

import pytest

from genlock.api.uploads import read_upload
from genlock.domain.current_catalog import CurrentCatalog
from genlock.engine.file_storage import FileStorage, ProviderStorage
from genlock.engine.input_files import InputFiles
from tests.api.world import ApiWorld
from tests.packaged import CATALOG

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_provider_that_was_not_sent_the_file_gets_it_once(world: ApiWorld, png: bytes) -> None:
    stored: list[bytes] = []

    async def upload(content: AsyncIterable[bytes], name: str, folder: str) -> str:
        assert (name.endswith(".png"), folder) == (True, "genlock")
        stored.append(b"".join([chunk async for chunk in content]))
        return f"https://other.example/{len(stored)}.png"

    client = await world.client()
    sent = await client.request("POST", "/v1/files", data=png)
    ordered = await client.order(model="recraft/remove-background", input={"image": sent.json["id"]}, wait=60)
    job = await world.store.job(world.job_id(ordered.json["id"]))
    assert job is not None
    storage = FileStorage([ProviderStorage(provider="other", upload=upload)])
    files = InputFiles(store=world.store, storage=storage, catalog=CurrentCatalog(CATALOG))
    files.sources["api"] = partial(read_upload, world.media)
    urls = [await files.prepare(job, "other") for _ in range(2)]

    [(address, url)] = urls[0]
    assert address.startswith(world.kie.files_url)
    assert url == "https://other.example/1.png"
    assert urls == [urls[0]] * 2
    assert stored == [png]
