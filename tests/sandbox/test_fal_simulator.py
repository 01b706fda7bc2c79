"""The simulator of fal, called with fal's own Python client; its signatures are checked with the published keys."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator

import fal_client
import httpx
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from fal_client import AsyncClient
from fal_client import client as fal_module

from genlock.domain.catalog import Output
from genlock.sandbox.fal.simulator import FalSimulator, running_fal
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import SimulatedInput, SimulatedModel
from tests.sandbox.webhook_receiver import ReceivedWebhook, receiving_webhooks

PROMPT = SimulatedInput(name="prompt", required=True)
MODELS = {
    model.id: model
    for model in (
        SimulatedModel(id="fal-ai/flux/dev", output=Output.IMAGE, inputs=(PROMPT,), count_input="num_images"),
        SimulatedModel(id="fal-ai/kling/v2/video", output=Output.VIDEO, inputs=(PROMPT,), expected_seconds=60.0),
        SimulatedModel(id="fal-ai/whisper", output=Output.TEXT, inputs=(SimulatedInput(name="audio_url"),)),
    )
}
#: what a browser and Telegram send; the file host refuses the names of HTTP libraries
BROWSER = {"User-Agent": "Mozilla/5.0"}


@pytest.fixture
async def fal(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FalSimulator]:
    async with running_fal(MODELS, speed=2000.0) as simulator:
        monkeypatch.setattr(fal_module, "QUEUE_URL_FORMAT", f"{simulator.url}/")
        monkeypatch.setattr(fal_module, "REST_URL", simulator.url)
        monkeypatch.setattr(fal_module, "CDN_URL", simulator.url)
        yield simulator


@pytest.fixture
async def official(fal: FalSimulator) -> AsyncIterator[AsyncClient]:
    client = AsyncClient(key=fal.key)
    yield client
    await (await client._client).aclose()


async def test_the_official_client_orders_waits_and_gets_a_picture(official: AsyncClient) -> None:
    states: list[fal_client.Status] = []
    result = await official.subscribe(
        "fal-ai/flux/dev", {"prompt": "a cat", "num_images": 2}, on_queue_update=states.append
    )

    assert len(result["images"]) == 2
    assert isinstance(states[-1], fal_client.Completed)
    async with httpx.AsyncClient(headers=BROWSER) as http:
        picture = await http.get(result["images"][0]["url"])
    assert picture.content.startswith(b"\x89PNG")


async def test_the_three_addresses_of_an_order_use_owner_and_app_only(fal: FalSimulator, official: AsyncClient) -> None:
    handle = await official.submit("fal-ai/kling/v2/video", {"prompt": "a cat"})

    base = f"{fal.url}/fal-ai/kling/requests/{handle.request_id}"
    assert (handle.response_url, handle.status_url, handle.cancel_url) == (base, f"{base}/status", f"{base}/cancel")
    assert (await handle.get())["video"]["content_type"] == "video/mp4"


async def test_the_official_client_reads_the_errors_of_a_generation(fal: FalSimulator, official: AsyncClient) -> None:
    found = {}
    for fault in (Fault.TASK_MODERATED, Fault.TASK_FAIL):
        fal.faults.order(fault)
        handle = await official.submit("fal-ai/flux/dev", {"prompt": "a cat"})
        await fal.service.generations[handle.request_id].has_ended.wait()
        completed = await handle.status()
        assert isinstance(completed, fal_client.Completed)
        assert completed.error
        async with httpx.AsyncClient(headers={"Authorization": f"Key {fal.key}"}) as http:
            response = await http.get(handle.response_url)
        found[fault] = (response.status_code, response.json()["detail"])

    assert found[Fault.TASK_MODERATED][1][0]["type"] == "content_policy_violation"
    assert found[Fault.TASK_FAIL] == (503, "Runner disconnected")


async def test_an_input_that_is_missing_is_named_when_the_result_is_asked_for(official: AsyncClient) -> None:
    with pytest.raises(fal_client.FalClientHTTPError) as caught:
        await official.subscribe("fal-ai/flux/dev", {})

    assert caught.value.status_code == 422
    assert caught.value.response.json()["detail"][0]["loc"] == ["body", "prompt"]


async def test_orders_above_the_concurrency_wait_in_the_queue_and_can_be_taken_out_of_it() -> None:
    async with running_fal(MODELS, speed=0.001, runners=1) as fal, httpx.AsyncClient() as http:
        headers = {"Authorization": f"Key {fal.key}"}
        orders = [
            (await http.post(f"{fal.url}/fal-ai/flux/dev", json={"prompt": "a"}, headers=headers)).json()
            for _ in range(3)
        ]
        states = [(await http.get(order["status_url"], headers=headers)).json() for order in orders]
        cancelled = [await http.put(order["cancel_url"], headers=headers) for order in reversed(orders)]
        again = await http.put(orders[0]["cancel_url"], headers=headers)

    assert [state["status"] for state in states] == ["IN_PROGRESS", "IN_QUEUE", "IN_QUEUE"]
    assert [state.get("queue_position") for state in states] == [None, 0, 1]
    assert [(answer.status_code, answer.json()["status"]) for answer in cancelled] == [
        (200, "OK"),
        (200, "OK"),
        (202, "CANCELLATION_REQUESTED"),
    ]
    assert (again.status_code, again.json()["status"]) == (400, "ALREADY_COMPLETED")


async def test_the_official_client_uploads_a_file(official: AsyncClient) -> None:
    urls = [
        await official.upload(b"bytes", "image/png", "a.png", repository=repository) for repository in ("fal_v3", "fal")
    ]

    async with httpx.AsyncClient(headers=BROWSER) as http:
        files = [await http.get(url) for url in urls]
    assert [(file.content, file.headers["content-type"]) for file in files] == [(b"bytes", "image/png")] * 2


async def test_a_callback_is_signed_with_a_key_that_is_served(fal: FalSimulator, official: AsyncClient) -> None:
    async with receiving_webhooks() as receiver:
        await official.submit("fal-ai/flux/dev", {"prompt": "a"}, webhook_url=f"{receiver.url}/hook")
        [webhook] = await receiver.wait_for(1)
        assert await _is_signed(fal, webhook)
        fal.keys.rotate(drop_old=True)
        assert not await _is_signed(fal, webhook), "the key was withdrawn"
        fal.faults.order(Fault.CALLBACK_BAD_SIGNATURE)
        await official.submit("fal-ai/flux/dev", {"prompt": "a"}, webhook_url=f"{receiver.url}/hook")
        assert not await _is_signed(fal, (await receiver.wait_for(2))[1])

    body = json.loads(webhook.body)
    assert (body["status"], len(body["payload"]["images"])) == ("OK", 1)


async def test_a_callback_is_repeated_until_it_is_answered(official: AsyncClient) -> None:
    async with receiving_webhooks() as receiver:
        receiver.statuses = [500]
        await official.submit("fal-ai/flux/dev", {"prompt": "a"}, webhook_url=f"{receiver.url}/hook")
        first, second = await receiver.wait_for(2)

    assert first.body == second.body


def test_the_signature_is_that_of_the_published_test_vector() -> None:
    private = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    body = b'{"request_id":"r1","status":"OK","payload":{}}'
    message = "\n".join(("r1", "u1", "1767225600", hashlib.sha256(body).hexdigest()))

    assert private.sign(message.encode()).hex().startswith("e5a08ce6a5d8a1949f77db266e600233b5dac992")


async def _is_signed(fal: FalSimulator, webhook: ReceivedWebhook) -> bool:
    headers = webhook.headers
    names = ("X-Fal-Webhook-Request-Id", "X-Fal-Webhook-User-Id", "X-Fal-Webhook-Timestamp")
    message = "\n".join((*(headers[name] for name in names), hashlib.sha256(webhook.body).hexdigest()))
    async with httpx.AsyncClient() as http:
        keys = (await http.get(f"{fal.url}/.well-known/jwks.json")).json()["keys"]
    for key in keys:
        public = Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(key["x"] + "="))
        try:
            public.verify(bytes.fromhex(headers["X-Fal-Webhook-Signature"]), message.encode())
        except InvalidSignature:
            continue
        return True
    return False
