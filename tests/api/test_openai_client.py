"""The official `openai` client, unchanged, against the running API: images, videos, models, files and errors."""

import asyncio
import base64
import io
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from genlock.domain.api_key import ApiScope
from genlock.media.sniff import recognise
from genlock.sandbox.kie.faults import Fault
from tests.api.lossy_proxy import running_lossy_proxy
from tests.api.world import ApiWorld, Client

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.process,  # the client runs `uname` for one of its headers
    # the client's makers give up their own videos; the calls work
    pytest.mark.filterwarnings("ignore:The Sora API is scheduled:DeprecationWarning"),
]
IMAGE_MODEL, MANY_IMAGES, VIDEO_MODEL, FROM_IMAGE = (
    "z-image",
    "wan/2-7-image",
    "bytedance/v1-lite-text-to-video",
    "bytedance/v1-lite-image-to-video",
)
PROMPT = "a cat in a space suit"


@asynccontextmanager
async def connected(client: Client, *, url: str | None = None, **options: Any) -> AsyncIterator[AsyncOpenAI]:
    options = {"max_retries": 0, "timeout": 30.0, **options}
    async with AsyncOpenAI(base_url=f"{url or client.url}/v1", api_key=client.secret, **options) as made:
        yield made


async def jobs_of(client: Client) -> list[Any]:
    found: list[Any] = (await client.get("/v1/jobs?limit=100")).json["data"]
    return found


async def test_images_come_as_base64_and_as_links_and_say_what_they_cost(world: ApiWorld) -> None:
    client = await world.client()
    async with connected(client) as api:
        both = await api.images.generate(model=IMAGE_MODEL, prompt=PROMPT, size="1536x864", user="user-17")
        coded = await api.images.generate(model=IMAGE_MODEL, prompt=PROMPT, response_format="b64_json")
        linked = await api.images.generate(model=IMAGE_MODEL, prompt=PROMPT, response_format="url")

    jobs = await jobs_of(client)
    assert [job["input"]["aspect_ratio"] for job in jobs] == ["1:1", "1:1", "16:9"]
    assert len(jobs) == 3, "the same request, made three times on purpose, is three orders"
    assert jobs[2]["metadata"] == {"user": "user-17"}
    assert both.data is not None
    [image] = both.data
    assert image.b64_json is not None
    assert image.url is not None
    content = base64.b64decode(image.b64_json, validate=True)
    assert recognise(content).media[0].value == "image"
    assert (await client.request("GET", image.url, headers={"Authorization": ""})).content == content
    extra = both.model_extra
    assert extra is not None
    assert (extra["price"], extra["charged"], extra["job"]) == (jobs[2]["price"], True, jobs[2]["id"])
    assert coded.data is not None
    assert linked.data is not None
    assert (coded.data[0].url, linked.data[0].b64_json) == (None, None)
    assert coded.data[0].b64_json
    assert linked.data[0].url
    assert await world.available(client) == 1_000_000 - round(sum(job["price"] for job in jobs) * 1000)


async def test_parameters_are_mapped_to_the_models_own_fields(world: ApiWorld) -> None:
    client = await world.client()
    async with connected(client) as api:
        images = await api.images.generate(
            model=MANY_IMAGES,
            prompt=PROMPT,
            n=3,
            size="2048x2048",
            response_format="url",
            extra_body={"seed": 7, "metadata": {"order": "17"}},
        )
    [job] = await jobs_of(client)

    assert images.data is not None
    assert len(images.data) == 3
    wanted = {"n": 3, "aspect_ratio": "1:1", "resolution": "2K", "seed": 7}
    assert {name: job["input"][name] for name in wanted} == wanted
    assert job["metadata"] == {"order": "17"}


async def test_parameters_that_cannot_be_used_are_refused_by_name_and_order_nothing(world: ApiWorld) -> None:
    client = await world.client()
    cases: list[tuple[str, dict[str, Any]]] = [
        ("n", {"n": 2}),
        ("size", {"size": "4000x100"}),
        ("size", {"size": "large"}),
        ("quality", {"quality": "hd"}),
        ("style", {"style": "vivid"}),
        ("background", {"background": "transparent"}),
        ("moderation", {"moderation": "low"}),
        ("stream", {"stream": True}),
        ("response_format", {"response_format": "svg"}),
        ("max_price", {"extra_body": {"max_price": -1}}),
        ("sede", {"extra_body": {"sede": 1}}),
        ("aspect_ratio", {"size": "1024x1024", "extra_body": {"aspect_ratio": "4:3"}}),
        ("prompt", {"prompt": ""}),
        ("model", {"model": VIDEO_MODEL}),
        ("model", {"model": openai.omit}),
    ]
    wrong = {}
    async with connected(client) as api:
        for parameter, given in cases:
            try:
                await api.images.generate(**{"model": IMAGE_MODEL, "prompt": PROMPT, **given})
            except openai.BadRequestError as error:
                if error.param != parameter or f" {parameter}: " not in str(error):
                    wrong[str(given)] = (error.param, str(error))
            else:
                wrong[str(given)] = (None, "accepted")
        # what means "as the model does it" is not refused
        fine = await api.images.generate(
            model=IMAGE_MODEL, prompt=PROMPT, n=1, size="auto", quality="auto", background="auto", response_format="url"
        )
    assert wrong == {}
    assert fine.data
    assert len(await jobs_of(client)) == 1


async def test_a_video_is_ordered_polled_listed_and_downloaded(world: ApiWorld) -> None:
    client = await world.client()
    async with connected(client) as api:
        video = await api.videos.create_and_poll(
            model=VIDEO_MODEL,
            prompt=PROMPT,
            seconds="10",  # type: ignore[arg-type]  # lengths that OpenAI's own models do not have
            size="1280x720",
            poll_interval_ms=100,
        )
        await api.images.generate(model=IMAGE_MODEL, prompt=PROMPT, response_format="url")
        assert (video.status, video.progress, video.error) == ("completed", 100, None)
        assert (video.seconds, video.size, video.prompt, video.model) == ("10", "1280x720", PROMPT, VIDEO_MODEL)
        assert video.completed_at is not None
        assert video.expires_at is not None
        assert video.expires_at > video.created_at
        listed = [listed_video async for listed_video in await api.videos.list(limit=1)]
        content = await api.videos.download_content(video.id)
        with pytest.raises(openai.BadRequestError) as refused:
            await api.videos.download_content(video.id, variant="thumbnail")

    assert [listed_video.id for listed_video in listed] == [video.id]
    assert recognise(content.content).media[0].value == "video"
    assert refused.value.param == "variant"
    job = (await client.get(f"/v1/jobs/{video.id}")).json
    wanted = {"duration": "10", "aspect_ratio": "16:9", "resolution": "720p"}
    assert {name: job["input"][name] for name in wanted} == wanted
    assert video.model_extra is not None
    assert (video.model_extra["price"], video.model_extra["charged"]) == (job["price"], True)


async def test_a_video_of_another_account_is_not_found(world: ApiWorld) -> None:
    owner, other = await world.client(), await world.client()
    async with connected(owner) as api, connected(other) as foreign:
        video = await api.videos.create(model=VIDEO_MODEL, prompt=PROMPT)
        assert (await api.videos.retrieve(video.id)).id == video.id
        for read in (foreign.videos.retrieve, foreign.videos.download_content):
            with pytest.raises(openai.NotFoundError):
                await read(video.id)
        assert [listed_video async for listed_video in await foreign.videos.list()] == []


async def test_a_video_begins_from_an_image_that_is_sent_along_or_was_sent_before(world: ApiWorld, png: bytes) -> None:
    client = await world.client()
    async with connected(client) as api:
        sent = await api.files.create(file=("cat.png", png), purpose="vision")
        reference = {"input_reference": {"file_id": sent.id}}  # the client itself refuses a dictionary as this argument
        named = await api.videos.create(model=FROM_IMAGE, prompt=PROMPT, extra_body=reference)
        first = await api.videos.create(model=FROM_IMAGE, prompt=PROMPT, input_reference=("cat.png", png))
        with pytest.raises(openai.BadRequestError) as refused:
            await api.videos.create(model=VIDEO_MODEL, prompt=PROMPT, input_reference=("cat.png", png))
        with pytest.raises(openai.BadRequestError) as no_image:
            await api.videos.create(model=FROM_IMAGE, prompt=PROMPT, input_reference=io.BytesIO(b"no image"))

    assert refused.value.param == "input_reference"
    assert no_image.value.code == "not_media"
    jobs = {job["id"]: job for job in await jobs_of(client)}
    assert set(jobs) == {named.id, first.id}
    assert jobs[first.id]["input"]["image_url"].startswith("http")
    assert jobs[first.id]["input"]["image_url"] != jobs[named.id]["input"]["image_url"]


async def test_models_are_listed_and_read(world: ApiWorld) -> None:
    client = await world.client()
    async with connected(client) as api:
        listed = [model async for model in api.models.list()]
        one = await api.models.retrieve(MANY_IMAGES)
    ids = [model.id for model in listed]
    assert {IMAGE_MODEL, MANY_IMAGES, VIDEO_MODEL} <= set(ids)
    assert (one.id, one.object) == (MANY_IMAGES, "model")
    assert one.owned_by


async def test_errors_raise_the_clients_own_classes_with_their_reasons(world: ApiWorld) -> None:
    client, poor = await world.client(), await world.client(credits_=0)
    reader = await world.client(scopes=frozenset({ApiScope.READ}))

    async def refused(one: Client, kind: type[openai.APIStatusError], secret: str = "", **given: Any) -> Any:
        async with connected(one) as api:
            with pytest.raises(kind) as caught:
                await api.with_options(api_key=secret or one.secret).images.generate(
                    **{"model": IMAGE_MODEL, "prompt": PROMPT, **given}
                )
        return caught.value

    unknown = await refused(client, openai.AuthenticationError, secret="glk_wrong")
    assert unknown.code == "invalid_api_key"
    assert (await refused(reader, openai.PermissionDeniedError)).code == "forbidden"
    missing = await refused(client, openai.NotFoundError, model="gpt-image-1")
    assert (missing.code, missing.param) == ("model_not_found", "model")
    short = await refused(poor, openai.RateLimitError)
    assert (short.code, short.type, short.body["available"]) == ("insufficient_quota", "insufficient_quota", 0)
    assert short.body["price"] > 0
    assert (await refused(client, openai.ConflictError, extra_body={"max_price": 0.001})).code == "dearer"
    await world.fault_of_next_order(Fault.TASK_MODERATED)
    moderated = await refused(client, openai.BadRequestError)
    assert (moderated.code, moderated.body["charged"]) == ("moderation_blocked", False)
    await world.fault_of_next_order(Fault.TASK_FAIL)
    failed = await refused(client, openai.InternalServerError)
    assert failed.body["job"].startswith("job_")
    async with connected(client) as api:
        with pytest.raises(openai.NotFoundError) as no_video:
            await api.videos.retrieve("job_ZZZZZZ")
        with pytest.raises(openai.NotFoundError):
            await api.videos.download_content("job_ZZZZZZ")
        with pytest.raises(openai.APIStatusError) as not_offered:
            await api.videos.delete("job_ZZZZZZ")
    assert no_video.value.code == "not_found"
    assert not_offered.value.status_code == 405
    assert await world.available(client) == 1_000_000


async def test_a_failed_video_says_why_and_costs_nothing(world: ApiWorld) -> None:
    client = await world.client()
    await world.fault_of_next_order(Fault.TASK_MODERATED)
    async with connected(client) as api:
        video = await api.videos.create_and_poll(model=VIDEO_MODEL, prompt=PROMPT, poll_interval_ms=100)
        with pytest.raises(openai.NotFoundError, match="failed"):
            await api.videos.download_content(video.id)
    assert video.status == "failed"
    assert video.error is not None
    assert video.error.code == "moderation"
    assert video.model_extra is not None
    assert video.model_extra["charged"] is False
    assert await world.available(client) == 1_000_000


async def test_an_attempt_that_the_client_repeats_after_a_lost_answer_orders_once(world: ApiWorld) -> None:
    client = await world.client()
    async with running_lossy_proxy(world.url) as proxy, connected(client, url=proxy.url, max_retries=2) as api:
        proxy.losses, proxy.bytes_before_loss = 2, 40
        images = await api.images.generate(model=IMAGE_MODEL, prompt="lost", response_format="url")
        proxy.losses = 1
        video = await api.videos.create(model=VIDEO_MODEL, prompt="lost")
        await api.images.generate(model=IMAGE_MODEL, prompt="lost", response_format="url")
    assert proxy.lost == 3
    jobs = await jobs_of(client)
    assert [job["model"] for job in jobs] == [IMAGE_MODEL, VIDEO_MODEL, IMAGE_MODEL]
    assert images.model_extra is not None
    assert images.model_extra["job"] == jobs[2]["id"]
    assert video.id == jobs[1]["id"]


async def test_requests_without_any_key_are_told_apart_by_attempt_and_body(world: ApiWorld) -> None:
    client = await world.client()
    body = {"model": VIDEO_MODEL, "prompt": PROMPT}

    async def order(attempt: str | None = None, key: str | None = None, **changes: Any) -> str:
        headers = {"X-Stainless-Retry-Count": attempt or "", "Idempotency-Key": key or ""}
        answer = await client.request("POST", "/v1/videos", headers=headers, json={**body, **changes})
        assert answer.status == 200, answer.json
        return str(answer.json["id"])

    first = await order()
    assert await order() == first, "a client that numbers nothing may be repeating its request"
    second = await order("0")
    assert second != first, "a first attempt is a new order"
    assert await order("1") == second
    assert await order(prompt="a dog") not in {first, second}
    keyed = await order("0", key="mine")
    assert {await order("0", key="mine"), await order("3", key="mine"), await order(key="mine")} == {keyed}
    other_body = {**body, "size": "auto"}
    reused = await client.request("POST", "/v1/videos", headers={"Idempotency-Key": "mine"}, json=other_body)
    assert (reused.status, reused.json["error"]["code"]) == (400, "idempotency_key_reused")
    other = await world.client(account_id=client.key.account_id, credits_=0)
    elsewhere = await other.request("POST", "/v1/videos", json=body)
    assert elsewhere.json["id"] not in {first, second, keyed}, "another key of the account"
    attempts = await asyncio.gather(*(order(str(n % 2), prompt="at once") for n in range(8)))
    assert 1 <= len(set(attempts)) <= 4, "four first attempts, each with its repetition"
    unnumbered = await asyncio.gather(*(order(prompt="all at once") for _ in range(8)))
    assert len(set(unnumbered)) == 1


async def test_a_first_attempt_is_a_new_order_although_the_database_answers_slowly(
    world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order before it is older than the request, but younger than the time that the answer takes."""
    client, find = await world.client(), world.store.newest_api_job_between
    reads = itertools.count()
    body = {"model": VIDEO_MODEL, "prompt": "a slow answer"}
    first = await client.post("/v1/videos", body)

    async def find_slowly(*given: Any) -> Any:
        found = await find(*given)
        assert found is not None
        if next(reads) == 0:
            await asyncio.sleep(1.0)
        return replace(found, created_at=found.created_at - timedelta(seconds=0.7))

    monkeypatch.setattr(world.store, "newest_api_job_between", find_slowly)
    second = await client.request("POST", "/v1/videos", headers={"X-Stainless-Retry-Count": "0"}, json=body)
    assert (first.status, second.status) == (200, 200)
    assert second.json["id"] != first.json["id"]


async def test_an_order_that_failed_is_made_again_by_the_same_request(world: ApiWorld) -> None:
    client = await world.client()
    await world.fault_of_next_order(Fault.TASK_FAIL)
    body = {"model": IMAGE_MODEL, "prompt": PROMPT, "response_format": "url"}
    failed = await client.post("/v1/images/generations", body)
    again = await client.post("/v1/images/generations", body)
    assert (failed.status, again.status) == (500, 200), (failed.json, again.json)
    assert failed.json["error"]["job"] != again.json["job"]


async def test_a_request_whose_images_take_longer_than_the_client_waits_is_repeated_and_orders_once(
    world: ApiWorld,
) -> None:
    client = await world.client()
    world.kie.service.speed = 20.0
    try:
        async with connected(client, timeout=6.5, max_retries=5) as api:
            images = await api.images.generate(model=IMAGE_MODEL, prompt=PROMPT, response_format="url")
    finally:
        world.kie.service.speed = 600.0
    assert images.data
    assert len(await jobs_of(client)) == 1


async def test_the_client_without_asyncio_works_too(world: ApiWorld) -> None:
    client = await world.client()

    def order() -> Any:
        with OpenAI(base_url=f"{client.url}/v1", api_key=client.secret, max_retries=0) as api:
            return api.images.generate(model=IMAGE_MODEL, prompt=PROMPT)

    assert (await asyncio.to_thread(order)).data[0].b64_json
