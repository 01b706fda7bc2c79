"""Results: ranges, links for browsers, and what a deleted copy says."""

import asyncio
import shutil
from dataclasses import replace
from random import Random

import pytest

from genlock.api.stored_copies import read_whole
from genlock.domain.errors import MediaStoreError
from genlock.domain.events import Event
from genlock.domain.job import Delivery
from genlock.domain.stored_file import StoredFile
from genlock.sandbox.kie.faults import Fault
from tests.api.world import ApiWorld, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def delivered(client: Client) -> dict[str, str]:
    answer = await client.order(wait=60)
    assert answer.json["status"] == "succeeded", answer.json
    [result] = answer.json["results"]
    assert isinstance(result, dict)
    return result


async def test_a_range_is_answered_with_exactly_its_bytes(world: ApiWorld) -> None:
    client = await world.client()
    url = (await delivered(client))["url"]
    whole = (await client.get(url)).content
    size = len(whole)
    etag = (await client.get(url)).headers["ETag"]

    for given, first, last in (
        ("bytes=0-9", 0, 9), ("bytes=5-", 5, size - 1), ("bytes=-7", size - 7, size - 1),
        (f"bytes=0-{size + 99}", 0, size - 1), (f"bytes=-{size + 99}", 0, size - 1),
    ):  # fmt: skip
        part = await client.get(url, Range=given)
        assert (part.status, part.content) == (206, whole[first : last + 1]), given
        assert part.headers["Content-Range"] == f"bytes {first}-{last}/{size}", given
        assert part.headers["Content-Length"] == str(last - first + 1), given
    for ignored in ("bytes=9-5", "bytes=0-1,3-4", "lines=0-1", "bytes=-", "bytes=a-b", "bytes=" + "9" * 30 + "-"):
        assert (await client.get(url, Range=ignored)).status == 200, ignored
    for outside in (f"bytes={size}-", "bytes=-0"):
        refused = await client.get(url, Range=outside)
        assert (refused.status, refused.headers["Content-Range"]) == (416, f"bytes */{size}"), outside
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        unchanged = await client.get(url, If_None_Match=known)
        assert (unchanged.status, unchanged.content) == (304, b""), known
        assert unchanged.headers["ETag"] == etag
        assert "max-age" in unchanged.headers["Cache-Control"], "else a cache would drop the file"
    assert (await client.get(url, If_None_Match='"other"')).status == 200
    assert (await client.get(url, Range="bytes=0-9", If_Range='"another"')).status == 200
    head = await client.request("HEAD", url)
    assert (head.status, head.content, head.headers["Content-Length"]) == (200, b"", str(size))


async def test_a_damaged_copy_is_not_served_as_the_result(world: ApiWorld) -> None:
    client = await world.client()
    result = await delivered(client)
    [copy] = world.media_folder.glob(f"*/{client.key.account_id}/*")
    content = copy.read_bytes()
    copy.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))

    refused = await client.get(result["url"])

    assert (refused.status, refused.code) == (503, "unavailable")
    assert world.recorder.of(Event.MEDIA_DAMAGED)
    assert (await client.get(result["url"], Range="bytes=0-3")).content == content[:4], "the hash is of the whole"


async def test_a_damaged_copy_of_many_pieces_is_cut_off_before_its_end(world: ApiWorld) -> None:
    client = await world.client()
    result = await delivered(client)
    [copy] = world.media_folder.glob(f"*/{client.key.account_id}/*")
    job_id = world.job_id(result["url"].split("/")[-3])
    long = Random(1).randbytes(700_000)
    copy.write_bytes(long)
    job = await world.store.api_job(job_id)
    assert job is not None
    stored = StoredFile.parse(job.parts[0].file or "")
    received = list[bytes]()

    async def read_until_cut() -> None:
        async for chunk in read_whole(world.api._parts, replace(stored, size=len(long))):
            received.append(chunk)

    with pytest.raises(MediaStoreError):
        await read_until_cut()
    assert 0 < sum(map(len, received)) < len(long)


async def test_a_signed_link_works_without_a_key_and_a_changed_one_does_not(world: ApiWorld) -> None:
    client = await world.client()
    result = await delivered(client)
    browser = Client(url=world.url, session=world.session, secret="", key=client.key)
    browser_headers = {"Authorization": ""}

    opened = await browser.request("GET", result["link"], headers=browser_headers)
    assert opened.status == 200
    assert opened.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    other = await delivered(client)
    query = result["link"].partition("?")[2]
    for wrong in (
        result["link"][:-1] + ("0" if result["link"][-1] != "0" else "1"),
        f"{other['url']}?{query}",
        result["link"].replace("expires=", "expires=1"),
        f"{result['url']}?expires=٣&signature=a",
        f"{result['url']}?signature=",
        result["url"],
    ):
        refused = await browser.request("GET", wrong, headers=browser_headers)
        assert refused.status == 401, wrong


async def test_a_deleted_copy_is_gone_and_the_job_stays_readable(world: ApiWorld) -> None:
    client = await world.client()
    url = (await delivered(client))["url"]
    for folder in world.media_folder.glob(f"*/{client.key.account_id}"):
        shutil.rmtree(folder)

    gone = await client.get(url)
    assert (gone.status, gone.json["code"]) == (410, "gone")
    for wrong in ("1", "99", "x", "-1", "00000000000000"):
        assert (await client.get(url[:-1] + wrong)).status == 404, wrong


async def test_a_result_whose_file_is_a_web_page_fails_the_job_and_costs_nothing(world: ApiWorld) -> None:
    client = await world.client()
    await world.fault_of_next_order(Fault.FILE_HTML)
    job = (await client.order(wait=60)).json

    assert (job["status"], job["charged"], job["results"]) == ("failed", False, [])
    assert await world.available(client) == 1_000_000


async def test_a_media_store_that_fails_for_a_moment_delays_the_delivery_and_is_charged_once(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await world.client()
    fails, put = [2], world.media.put
    tried = asyncio.Event()

    async def failing(file, content):  # type: ignore[no-untyped-def]
        tried.set()
        if fails[0]:
            fails[0] -= 1
            from genlock.domain.errors import MediaStoreError  # noqa: PLC0415

            raise MediaStoreError
        await put(file, content)

    monkeypatch.setattr(world.media, "put", failing)
    job = (await client.order(wait=30)).json

    assert (job["status"], job["charged"]) == ("succeeded", True)
    stored = (await world.store.api_jobs(client.key.account_id, before=None, limit=1))[0]
    assert stored.delivery is Delivery.DELIVERED
    assert await world.available(client) == 1_000_000 - stored.price
