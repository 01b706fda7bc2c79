"""After the erasure of an API client no column of any table holds its texts, but for the keys of its requests."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from genlock.domain.api_key import ALL_SCOPES
from genlock.engine.api_keys import create_api_key
from genlock.engine.erasure import Erasure
from genlock.engine.media_erasure import MediaErasure
from tests.api.world import MODEL, ApiWorld, Client, running_api
from tests.databases import new_sqlite
from tests.marker import places_of
from tests.media.file_server import FileServer, running_file_server

MARKER = "zqxsecret"
#: where the marker must be before the erasure, so that the test proves something
BEFORE = {
    "api_keys.name",
    "jobs.address",
    "jobs.input",
    "webhook_deliveries.last_answer",
    "webhooks.description",
    "webhooks.url",
}
#: An idempotency key is kept, so that a repeated request orders nothing; clients are told to use random ones.
KEPT = {"jobs.request_key"}


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{new_sqlite(tmp_path)}"
    return str(request.getfixturevalue("migrated_postgres_url"))


@asynccontextmanager
async def refusing_receiver() -> AsyncIterator[FileServer]:
    """A receiver of webhooks that answers every one with an error."""

    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=500, text=f"{MARKER} is not known here")

    async with running_file_server() as server:
        server.serve("hook", refuse)
        yield server


async def leave_texts(world: ApiWorld, account: int, receiver: str, png: bytes) -> None:
    """Write the marker wherever a client can."""
    key, secret = await create_api_key(
        world.store,
        account,
        name=MARKER,
        scopes=ALL_SCOPES,
        spend_limit=None,
        request_key="marked",
        author="test",
        random_bytes=os.urandom,
    )
    assert secret is not None
    client = Client(url=world.url, session=world.session, secret=secret, key=key)
    hook = {"url": f"{receiver}?{MARKER}", "description": MARKER}
    assert (await client.post("/v1/webhooks", hook)).status == 201
    order = {"model": MODEL, "input": {"prompt": f"{MARKER} fox"}, "metadata": {MARKER: MARKER}}
    for number in range(2):
        ordered = await client.order(f"{MARKER}-{number}", wait=60, **order)
        assert ordered.json["status"] == "succeeded"
    assert (await client.request("POST", "/v1/files", data=png, headers={"X-File-Name": MARKER})).status == 201
    await world.webhooks.round()
    await world.webhooks.settled()


async def test_after_an_erasure_no_column_holds_a_text_of_the_client(
    database_url: str, tmp_path: Path, png: bytes
) -> None:
    async with (
        refusing_receiver() as receiver,
        running_api(database_url, tmp_path / "media", private_hosts=(receiver.host,)) as world,
    ):
        client = await world.client()
        await leave_texts(world, client.key.account_id, f"{receiver.url}/hook", png)
        assert await places_of(MARKER, database_url) >= BEFORE

        await Erasure(world.store).request(client.key.account_id, "operator", "erase")
        assert await Erasure(world.store).run("", older_than=0.0) == [], "the files are deleted first"
        await MediaErasure(world.store, world.media, world.recorder).round()
        assert await Erasure(world.store).run("", older_than=0.0) == [client.key.account_id]
        assert await places_of(MARKER, database_url) == KEPT
