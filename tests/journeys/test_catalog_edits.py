"""An operator's edit reaches every instance of a fleet within seconds, without a restart."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from genlock.app.databases import open_store
from genlock.domain.catalog_change import NewCatalogChange
from genlock.log import Silent
from tests.dashboard.world import Client
from tests.journeys.serve_setup import ServeSetup, running_setup

#: the period of an instance is 2 s; a loaded machine may take longer
SECONDS_MAX = 15.0
TOKEN = "the token of the dashboard"
DASHBOARD = {"GENLOCK_DASHBOARD_TOKEN": TOKEN}


@pytest.fixture
async def setup(postgres_url: str, tmp_path: Path) -> AsyncIterator[ServeSetup]:
    async for setup in running_setup(postgres_url, tmp_path):
        yield setup


async def test_two_instances_apply_an_edit_within_seconds_and_name_one_that_does_not_fit(setup: ServeSetup) -> None:
    instances = await asyncio.gather(setup.start(**DASHBOARD), setup.start(**DASHBOARD))
    store = await open_store(setup.url, observer=Silent())
    change = NewCatalogChange(
        model="gone/model", before={}, after={"title": "x"}, author="7", request_key="gone", follows=0
    )
    try:
        assert await store.add_catalog_change(change)
    finally:
        await store.close()
    async with aiohttp.ClientSession() as session:
        client = Client(instances[0].url, session)
        assert (await client.post("/login", {"token": TOKEN})).status == 303
        saved = await client.post("/models/z-image", {"step": "save", "follows": "0", "title": "Edited"})
        assert saved.status == 303, saved.text
    for instance in instances:
        await instance.wait_for_event("CATALOG_CHANGED", change=2, seconds=SECONDS_MAX)
        await instance.wait_for_event("CATALOG_EDIT_LEFT_OUT", model="gone/model")
    later = await setup.start()
    assert later.events("CATALOG_CHANGED", change=2, models="gone/model,z-image"), "an instance starts with all edits"

    user = setup.telegram.add_user("Ann", language="en")
    await user.say("/gen z-image a fox")
    await user.sees(lambda message: "Edited" in message.text)
