"""The simulator of Replicate, called with Replicate's own Python client."""

import io
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from replicate.client import Client
from replicate.exceptions import ModelError, ReplicateError
from replicate.webhook import Webhooks, WebhookSigningSecret, WebhookValidationError

from genlock.domain.catalog import Output
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import SimulatedInput, SimulatedModel
from genlock.sandbox.replicate.simulator import ReplicateSimulator, running_replicate
from tests.sandbox.webhook_receiver import ReceivedWebhook, receiving_webhooks

MODEL = "black-forest-labs/flux-dev"
MODELS = {
    model.id: model
    for model in (
        SimulatedModel(id=MODEL, output=Output.IMAGE, inputs=(SimulatedInput(name="prompt", required=True),)),
        SimulatedModel(id="openai/whisper", output=Output.TEXT, single=True),
        SimulatedModel(id="a/upscaler", output=Output.IMAGE, single=True),
    )
}


@pytest.fixture
async def replicate() -> AsyncIterator[ReplicateSimulator]:
    async with running_replicate(MODELS, speed=2000.0) as simulator:
        yield simulator


@asynccontextmanager
async def client(replicate: ReplicateSimulator, token: str = "") -> AsyncIterator[Client]:
    official = Client(api_token=token or replicate.token, base_url=replicate.url)
    yield official
    await official._async_client.aclose()


@pytest.fixture
async def official(replicate: ReplicateSimulator) -> AsyncIterator[Client]:
    async with client(replicate) as made:
        yield made


async def test_the_official_client_runs_a_model_and_gets_its_picture(official: Client) -> None:
    output: Any = await official.async_run(MODEL, {"prompt": "a cat"}, use_file_output=False)
    single: Any = await official.async_run("a/upscaler", {"image": "x"}, use_file_output=False)
    text: Any = await official.async_run("openai/whisper", {"audio": "x"}, use_file_output=False)

    async with httpx.AsyncClient(headers={"User-Agent": "Mozilla/5.0"}) as http:
        for url in (output[0], single):
            assert (await http.get(url)).content.startswith(b"\x89PNG")
    assert "".join(text).strip() == "openai/whisper was asked: audio: x"


async def test_a_failed_prediction_says_why(replicate: ReplicateSimulator, official: Client) -> None:
    for fault, text in ((Fault.TASK_MODERATED, "NSFW"), (Fault.TASK_FAIL, "interrupted")):
        replicate.faults.order(fault)
        with pytest.raises(ModelError, match=text):
            await official.async_run(MODEL, {"prompt": "a cat"})


async def test_refused_orders_say_why(replicate: ReplicateSimulator) -> None:
    for fault in (Fault.CREATE_NO_CREDIT, Fault.CREATE_UNKNOWN_MODEL, Fault.CREATE_MAINTENANCE):
        replicate.faults.order(fault)

    assert await _create_statuses(replicate, *[{"prompt": "a"}] * 3, {}) == [402, 404, 503, 422]


async def test_an_order_whose_answer_was_lost_is_in_the_list(replicate: ReplicateSimulator, official: Client) -> None:
    replicate.faults.order(Fault.CREATE_CUT)
    statuses = await _create_statuses(replicate, {"prompt": "lost"}, *[{"prompt": "other"}] * 101)
    assert statuses == [0] + [201] * 101

    first = await official.predictions.async_list()
    second = await official.predictions.async_list(first.next)

    assert [(prediction.input or {})["prompt"] for prediction in second.results] == ["other", "lost"]


async def test_a_prediction_can_be_cancelled_while_it_runs() -> None:
    async with running_replicate(MODELS, speed=0.001) as replicate, client(replicate) as official:
        prediction = await official.models.predictions.async_create(model=MODEL, input={"prompt": "a"}, wait=False)
        assert (await official.predictions.async_cancel(prediction.id)).status == "canceled"
        await prediction.async_reload()

    assert prediction.status == "canceled"


async def test_input_and_output_vanish_after_a_while(replicate: ReplicateSimulator, official: Client) -> None:
    prediction = await official.models.predictions.async_create(model=MODEL, input={"prompt": "a"}, wait=True)
    async with httpx.AsyncClient() as http:
        await http.post(f"{replicate.url}/_control", json={"expire": True})
    await prediction.async_reload()

    assert (prediction.status, prediction.output, prediction.input) == ("succeeded", None, {})


async def test_the_official_client_verifies_a_callback(replicate: ReplicateSimulator, official: Client) -> None:
    async with receiving_webhooks() as receiver:
        options: Any = {"webhook": f"{receiver.url}/hook", "webhook_events_filter": ["completed"]}
        await official.models.predictions.async_create(model=MODEL, input={"prompt": "a"}, wait=False, **options)
        [webhook] = await receiver.wait_for(1)
        secret = await official.webhooks.default.async_secret()
        _validate(webhook, secret)
        replicate.faults.order(Fault.CALLBACK_BAD_SIGNATURE)
        await official.models.predictions.async_create(model=MODEL, input={"prompt": "a"}, wait=False, **options)
        with pytest.raises(WebhookValidationError):
            _validate((await receiver.wait_for(2))[1], secret)

    assert json.loads(webhook.body)["status"] == "succeeded"


async def test_the_official_client_uploads_a_file(official: Client) -> None:
    file = await official.files.async_create(io.BytesIO(b"bytes"), filename="a.png", content_type="image/png")

    async with httpx.AsyncClient(headers={"User-Agent": "Mozilla/5.0"}) as http:
        assert (await http.get(file.urls["get"])).content == b"bytes"


async def test_orders_above_the_rate_are_throttled() -> None:
    async with running_replicate(MODELS, creates_per_minute=2) as replicate:
        assert await _create_statuses(replicate, *[{"prompt": "a"}] * 3) == [201, 201, 429]


async def test_a_wrong_token_is_refused(replicate: ReplicateSimulator) -> None:
    async with client(replicate, "wrong") as unauthorized:
        with pytest.raises(ReplicateError, match="401"):
            await unauthorized.predictions.async_list()


def _validate(webhook: ReceivedWebhook, secret: WebhookSigningSecret) -> None:
    headers = {name.lower(): value for name, value in webhook.headers.items()}
    Webhooks.validate(headers=headers, body=webhook.body.decode(), secret=secret)


async def _create_statuses(replicate: ReplicateSimulator, *values: Mapping[str, object]) -> list[int]:
    """Order once for each of the inputs. Returns the HTTP statuses; 0 if there was no answer."""
    statuses = []
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {replicate.token}"}) as http:
        for value in values:
            try:
                response = await http.post(f"{replicate.url}/v1/models/{MODEL}/predictions", json={"input": value})
            except httpx.RemoteProtocolError:
                statuses.append(0)
            else:
                statuses.append(response.status_code)
    return statuses
