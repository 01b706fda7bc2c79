"""An operator's edit reaches every instance of a fleet within seconds, without a restart."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genlock.app.databases import open_store
from genlock.domain.catalog_change import NewCatalogChange
from genlock.log import Silent
from tests.journeys.test_serve import ServeSetup, running_setup

#: the period of an instance is 2 s; a loaded machine may take longer
SECONDS_MAX = 15.0


@pytest.fixture
async def setup(postgres_url: str, tmp_path: Path) -> AsyncIterator[ServeSetup]:
    async for setup in running_setup(postgres_url, tmp_path):
        yield setup


async def test_two_instances_apply_an_edit_within_seconds_and_name_one_that_does_not_fit(setup: ServeSetup) -> None:
    instances = await asyncio.gather(setup.start(), setup.start())
    store = await open_store(setup.url, observer=Silent())
    try:
        for model, table in (("z-image", {"title": "Edited"}), ("gone/model", {"title": "Gone"})):
            change = NewCatalogChange(model=model, before={}, after=table, author="7", request_key=model, follows=0)
            assert await store.add_catalog_change(change)
        for instance in instances:
            await instance.wait_for_event("CATALOG_CHANGED", change=2, seconds=SECONDS_MAX)
            await instance.wait_for_event("CATALOG_EDIT_LEFT_OUT", model="gone/model")
    finally:
        await store.close()
    later = await setup.start()
    assert later.events("CATALOG_CHANGED", change=2, models="gone/model,z-image"), "an instance starts with all edits"

    user = setup.telegram.add_user("Ann", language="en")
    await user.say("/gen z-image a fox")
    await user.sees(lambda message: "Edited" in message.text)
