"""An erasure deletes the copies of an API client's results and files, also when the media store fails meanwhile."""

import pytest

from genlock.domain.errors import MediaStoreError
from genlock.engine.erasure import Erasure
from genlock.engine.media_erasure import MediaErasure
from tests.api.world import ApiWorld, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def erase(world: ApiWorld, client: Client) -> bool:
    """One round of the service's two tasks. Returns whether the account is erased."""
    await MediaErasure(world.store, world.media, world.recorder).round()
    return client.key.account_id in await Erasure(world.store).run("", older_than=0.0)


async def files_of(world: ApiWorld, client: Client) -> list[str]:
    return sorted(file.name for file in world.media_folder.glob(f"*/{client.key.account_id}/*"))


async def test_the_files_of_an_erased_account_are_deleted_and_its_results_are_gone(
    world: ApiWorld, png: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, other = await world.client(), await world.client()
    job = (await client.order(wait=60)).json
    assert (await client.request("POST", "/v1/files", data=png)).status == 201
    assert (await other.order(wait=60)).json["status"] == "succeeded"
    link = job["results"][0]["link"]
    assert (await other.get(link, Authorization="")).status == 200
    await Erasure(world.store).request(client.key.account_id, "user", "erase")
    # one that was ordered after the request stays
    later = (await client.order(wait=60)).json
    assert len(await files_of(world, client)) == 3

    async def fail(*_: object) -> int:
        raise MediaStoreError("the bucket does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(world.media, "delete_account_files", fail)
        assert [await erase(world, client) for _ in range(3)] == [False] * 3
        assert len(await files_of(world, client)) == 3
        gone = await other.get(link, Authorization="")
        assert (gone.status, gone.json["code"]) == (410, "gone")
        assert "erased" in gone.json["detail"]
    assert await erase(world, client)

    assert len(await files_of(world, client)) == 1
    assert (await other.get(later["results"][0]["link"], Authorization="")).status == 200
    assert len(await files_of(world, other)) == 1
    assert await world.store.kv_list("erase") == []
    assert not await erase(world, client)


async def test_a_file_that_is_sent_while_its_key_ends_is_deleted(
    world: ApiWorld, png: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await world.client()
    put = world.media.put

    async def put_and_revoke(*arguments: object) -> None:
        await put(*arguments)  # type: ignore[arg-type]
        await world.store.revoke_api_key(client.key.id)

    monkeypatch.setattr(world.media, "put", put_and_revoke)
    answer = await client.request("POST", "/v1/files", data=png)

    assert (answer.status, answer.json["code"]) == (401, "unauthorized")
    assert await files_of(world, client) == []
