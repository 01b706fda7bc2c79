"""`genlock.client` against the running API: orders once whatever the network does, and names every failure."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from genlock.client import (
    ApiError,
    AsyncClient,
    Client,
    Conflict,
    ConnectionLost,
    DamagedDownload,
    Forbidden,
    InvalidRequest,
    InvalidWebhook,
    Job,
    JobNotDelivered,
    NotEnoughCredits,
    NotFound,
    Unauthorized,
    verify_webhook,
)
from genlock.client.protocol import Lost, Pause, Protocol, Received, Send
from genlock.domain.api_key import ApiScope
from genlock.domain.webhook import sign
from genlock.sandbox.kie.faults import Fault
from tests.api.lossy_proxy import running_lossy_proxy
from tests.api.world import MODEL, PROMPT, ApiWorld
from tests.api.world import Client as KeyHolder

pytestmark = pytest.mark.asyncio(loop_scope="module")
FROM_IMAGE = "recraft/remove-background"


@asynccontextmanager
async def connected(holder: KeyHolder, url: str | None = None, retries: int = 3) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(url or holder.url, holder.secret, retries=retries) as client:
        yield client


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def jobs_of(holder: KeyHolder) -> list[str]:
    return [job["id"] for job in (await holder.get("/v1/jobs?limit=100")).json["data"]]


async def test_an_order_is_quoted_made_watched_and_downloaded(world: ApiWorld, tmp_path: Path) -> None:
    holder = await world.client()
    async with connected(holder) as client:
        model = await client.model(MODEL)
        assert model in await client.models()
        quote = await client.quote(MODEL, PROMPT)
        assert quote.sufficient
        job = await client.order(MODEL, PROMPT, metadata={"order": "17"}, max_price=quote.price)
        seen = [state async for state in client.watch(job, every=1)]
        balance = await client.balance()
        [result] = seen[-1].results
        file = await client.download(result, tmp_path / "cat.png")
        listed = [listed_job async for listed_job in client.jobs()]

    assert (seen[-1].status, seen[-1].charged, seen[-1].progress) == ("succeeded", True, 1.0)
    assert not any(state.is_final for state in seen[:-1])
    assert (job.price, job.metadata, job.replayed) == (quote.price, {"order": "17"}, False)
    assert balance.available == quote.available - quote.price
    assert file.read_bytes() == (await holder.get(result.url)).content
    assert names(tmp_path) == ["cat.png"]
    assert [listed_job.id for listed_job in listed] == [job.id]


async def test_the_client_without_asyncio_does_the_same(world: ApiWorld, tmp_path: Path, png: bytes) -> None:
    holder = await world.client()
    (tmp_path / "photo.png").write_bytes(png)

    def use() -> tuple[Job, bytes, float]:
        with Client(holder.url, holder.secret) as client:
            file = client.upload(tmp_path / "photo.png")
            job = client.run(FROM_IMAGE, {"image": file.id}, key="photo-1")
            assert client.run(FROM_IMAGE, {"image": file.id}, key="photo-1").id == job.id
            assert [listed_job.id for listed_job in client.jobs()] == [job.id]
            assert list(client.watch(job))[-1].is_final
            assert client.wait(job).is_delivered
            with pytest.raises(Conflict):
                client.cancel(job)
            content = client.download(job.results[0], tmp_path / "out.png").read_bytes()
            return job, content, client.balance().available

    job, content, available = await asyncio.to_thread(use)
    assert (job.status, len(content)) == ("succeeded", job.results[0].bytes)
    assert available == 1000 - job.price


async def test_orders_whose_answers_are_lost_are_repeated_and_made_once(world: ApiWorld) -> None:
    holder = await world.client()

    def order(url: str) -> Job:
        with Client(url, holder.secret) as client:
            return client.order(MODEL, PROMPT, wait=60)

    async with running_lossy_proxy(world.url) as proxy, connected(holder, proxy.url) as client:
        proxy.losses, proxy.bytes_before_loss = 2, 0
        first = await client.order(MODEL, PROMPT)
        proxy.losses, proxy.bytes_before_loss = 1, 700  # in the middle of the body
        second = await client.run(MODEL, PROMPT)
        proxy.losses, proxy.bytes_before_loss = 1, 20
        third = await asyncio.to_thread(order, proxy.url)

    assert proxy.lost == 4
    assert (first.replayed, third.is_final, second.is_delivered) == (True, True, True)
    assert await jobs_of(holder) == [third.id, second.id, first.id]


async def test_an_order_without_any_answer_names_the_key_with_which_it_can_be_repeated(world: ApiWorld) -> None:
    holder = await world.client()
    async with running_lossy_proxy(world.url) as proxy, connected(holder, proxy.url, retries=1) as client:
        proxy.losses = 2
        with pytest.raises(ConnectionLost) as lost:
            await client.order(MODEL, PROMPT)
        assert lost.value.idempotency_key
        assert f"no answer from {proxy.url}: " in str(lost.value)
        again = await client.order(MODEL, PROMPT, key=lost.value.idempotency_key)
    assert again.replayed
    assert await jobs_of(holder) == [again.id]


async def test_a_cut_download_is_continued_and_a_wrong_one_refused(world: ApiWorld, tmp_path: Path) -> None:
    holder = await world.client()
    async with connected(holder) as client:
        job = await client.run(MODEL, PROMPT)
    [result] = job.results
    whole = (await holder.get(result.url)).content
    elsewhere = replace(result, url=result.url.replace(world.url, "http://192.0.2.1"))
    async with running_lossy_proxy(world.url) as proxy, connected(holder, proxy.url) as client:
        proxy.losses, proxy.bytes_before_loss = 2, 5000
        file = await client.download(elsewhere, tmp_path / "cat.png")
        with pytest.raises(DamagedDownload):
            await client.download(replace(result, sha256="0" * 64), tmp_path / "other.png")
        with pytest.raises(NotFound):
            await client.download(replace(result, url=result.url[:-1] + "9"), tmp_path / "none.png")
    assert proxy.lost == 2
    assert file.read_bytes() == whole
    assert proxy.sent.lower().count(b"\r\nrange: bytes=") == 2, "what was there is not read again"
    assert names(tmp_path) == ["cat.png"]


async def test_every_refusal_is_an_exception_of_its_own_with_the_problem_document(world: ApiWorld) -> None:
    holder, poor = await world.client(), await world.client(credits_=0)
    reader = await world.client(scopes=frozenset({ApiScope.READ}))
    await holder.order("used")
    cases: list[tuple[KeyHolder, type[ApiError], str, dict[str, Any]]] = [
        (poor, NotEnoughCredits, "no_credits", {}),
        (reader, Forbidden, "forbidden", {}),
        (holder, NotFound, "model_unavailable", {"model": "no/such"}),
        (holder, InvalidRequest, "invalid_input", {"values": {"prompt": "a cat", "aspect_ratio": "7:1"}}),
        (holder, InvalidRequest, "idempotency_key_reused", {"key": "used", "values": {**PROMPT, "prompt": "a dog"}}),
        (holder, Conflict, "dearer", {"max_price": 0.001}),
    ]
    for caller, kind, code, given in cases:
        async with connected(caller) as client:
            with pytest.raises(kind) as refused:
                await client.order(**{"model": MODEL, "values": PROMPT, **given})
        assert (refused.value.code, refused.value.problem["charged"]) == (code, False)
        assert refused.value.idempotency_key
        if isinstance(refused.value, NotEnoughCredits):
            assert refused.value.price > refused.value.available == 0
        if code == "invalid_input":
            assert isinstance(refused.value, InvalidRequest)
            assert refused.value.errors[0]["pointer"] == "/input/aspect_ratio"
    async with AsyncClient(world.url, "glk_wrong") as unknown:
        with pytest.raises(Unauthorized):
            await unknown.balance()
    await world.fault_of_next_order(Fault.TASK_MODERATED)
    async with connected(holder) as client:
        with pytest.raises(JobNotDelivered) as failed:
            await client.run(MODEL, PROMPT)
    assert (failed.value.code, failed.value.job.charged) == ("moderation", False)


def received(status: int, **headers: str) -> Received:
    problem = b'{"code": "unavailable", "detail": "later", "retry_after": 3}'
    return Received(
        status=status, headers={name.replace("_", "-"): value for name, value in headers.items()}, content=problem
    )


async def test_a_request_is_repeated_unchanged_after_the_pause_that_the_service_asks_for() -> None:
    steps = Protocol(retries=3, rng=Random(1)).order(MODEL, PROMPT, key=None, metadata=None, max_price=None, wait=0)
    first = next(steps)
    assert isinstance(first, Send)
    pauses = []
    for answer in (received(503, retry_after="3"), received(429, retry_after="7"), Lost(reason="cut")):
        pause = steps.send(answer)
        assert isinstance(pause, Pause)
        pauses.append(pause.seconds)
        assert steps.send(None) == first
    assert [3 <= pauses[0] <= 3.5, 7 <= pauses[1] <= 7.5, 1 <= pauses[2] <= 2] == [True] * 3
    with pytest.raises(ApiError) as given_up:
        steps.send(received(503, retry_after="3"))
    assert (given_up.value.code, given_up.value.retry_after) == ("unavailable", 3.0)
    assert given_up.value.idempotency_key == first.headers["Idempotency-Key"]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_request_is_repeated_after_an_answer_that_says_nothing_about_it(status: int) -> None:
    steps = Protocol(retries=3).order(MODEL, PROMPT, key="k", metadata=None, max_price=None, wait=0)
    first = next(steps)
    assert isinstance(steps.send(received(status)), Pause)
    assert steps.send(None) == first


async def test_a_request_that_is_refused_for_good_or_for_long_is_not_repeated() -> None:
    for answer in (received(402), received(409), received(422), received(429, retry_after="3600")):
        steps = Protocol(retries=3).order(MODEL, PROMPT, key="k", metadata=None, max_price=None, wait=0)
        next(steps)
        with pytest.raises(ApiError):
            steps.send(answer)


async def test_a_webhook_is_verified_by_its_signature_and_its_time() -> None:
    key, sent_at = b"0123456789abcdef0123456789abcdef", 1767225600
    secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    body = b'{"type":"job.delivered","timestamp":"2026-01-01T00:00:00Z","data":{"id":"job_1"}}'
    good = "v1,BDboVDNkA/8AkU4RlwVV50T9A5kwOAsHW1Dy1R72k3k="
    headers = {"Webhook-Id": "msg_1", "Webhook-Timestamp": str(sent_at), "Webhook-Signature": good}

    def verify(body: bytes = body, now: float = sent_at, **changed: str) -> str:
        given = {**headers, **{name.replace("_", "-"): value for name, value in changed.items()}}
        return verify_webhook(secret, given, body, now=lambda: now).id

    assert sign(key, "msg_1", sent_at, body) == good
    assert verify() == verify(now=sent_at + 299) == verify(Webhook_Signature=f"v1,AAAA v1a,xx {good}") == "msg_1"
    wrong: list[dict[str, Any]] = [
        {"body": body + b" "},
        {"now": sent_at + 301},
        {"now": sent_at - 301},
        {"Webhook_Id": "msg_2"},
        {"Webhook_Timestamp": f"{sent_at + 1}"},
        {"Webhook_Timestamp": "soon"},
        {"Webhook_Signature": ""},
        {"Webhook_Signature": good.replace("v1,", "v2,")},
        {"Webhook_Signature": "v1,не Base64"},
    ]
    for change in wrong:
        with pytest.raises(InvalidWebhook):
            verify(**change)
