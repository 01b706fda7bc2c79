"""The fal adapter against the simulator: every answer is classified, and only what was not accepted may be repeated."""

import json
from collections.abc import AsyncIterator
from functools import partial
from time import time

import pytest

from genlock.domain.catalog import Output
from genlock.domain.errors import ProviderBusy, ProviderError
from genlock.domain.result import Outcome, PartKind
from genlock.domain.task import CancelOutcome, Handle
from genlock.providers.fal.client import Fal
from genlock.providers.fal.signature import SIGNATURE, TIMESTAMP
from genlock.providers.key_cache import REFETCH_SECONDS
from genlock.sandbox.fal.simulator import FalSimulator, running_fal
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import SimulatedInput, SimulatedModel
from tests.providers.conftest import IMPATIENT_SECONDS, SLOW_SECONDS, TIMEOUT_SECONDS
from tests.providers.simulated_orders import ANSWERS, REFUSALS, create_word, order_of, status_word
from tests.sandbox.webhook_receiver import receiving_webhooks

PICTURE = "fal-ai/flux/dev"
MODELS = {
    model.id: model
    for model in (
        SimulatedModel(
            id=PICTURE,
            output=Output.IMAGE,
            inputs=(SimulatedInput(name="prompt", required=True),),
            count_input="num_images",
        ),
        SimulatedModel(id="fal-ai/kling/v2/video", output=Output.VIDEO),
        SimulatedModel(id="fal-ai/music", output=Output.AUDIO),
        SimulatedModel(id="fal-ai/whisper", output=Output.TEXT),
        SimulatedModel(id="fal-ai/birefnet", output=Output.IMAGE, single=True),
    )
}


@pytest.fixture
async def simulator() -> AsyncIterator[FalSimulator]:
    async with running_fal(MODELS, speed=2000.0, slow_seconds=SLOW_SECONDS) as fal:
        yield fal


@pytest.fixture
async def fal(simulator: FalSimulator) -> AsyncIterator[Fal]:
    adapter = Fal(key=simulator.key, api_url=simulator.url, rest_url=simulator.url, timeout_seconds=TIMEOUT_SECONDS)
    yield adapter
    await adapter.close()


@pytest.fixture
async def impatient(simulator: FalSimulator) -> AsyncIterator[Fal]:
    adapter = Fal(key=simulator.key, api_url=simulator.url, rest_url=simulator.url, timeout_seconds=IMPATIENT_SECONDS)
    yield adapter
    await adapter.close()


async def ended(simulator: FalSimulator, handle: Handle) -> None:
    await simulator.service.generations[handle.task_id].has_ended.wait()


async def test_each_kind_of_result_is_found(fal: Fal, simulator: FalSimulator) -> None:
    found = {}
    for model in MODELS:
        order = order_of("fal", model, {"prompt": "a fox", "num_images": 2})
        handle = await fal.create(order)
        await ended(simulator, handle)
        report = await fal.status(handle, order)
        assert (report.outcome, report.task_id) == (Outcome.SUCCESS, handle.task_id)
        found[model] = [(piece.kind, piece.value.rpartition(".")[2][:3]) for piece in report.pieces]

    assert found == {
        PICTURE: [(PartKind.FILE, "png")] * 2,
        "fal-ai/kling/v2/video": [(PartKind.FILE, "mp4")],
        "fal-ai/music": [(PartKind.FILE, "mp3")],
        "fal-ai/whisper": [(PartKind.TEXT, "fal")],
        "fal-ai/birefnet": [(PartKind.FILE, "png")],
    }


async def test_only_an_order_that_was_provably_not_accepted_is_refused_or_busy(
    fal: Fal, impatient: Fal, simulator: FalSimulator
) -> None:
    found = {}
    for fault in REFUSALS:
        simulator.faults.order(fault)
        adapter = impatient if fault is Fault.CREATE_SLOW else fal
        found[fault] = await create_word(partial(adapter.create, order_of("fal", PICTURE)))

    assert found == REFUSALS


async def test_a_wrong_key_and_a_server_that_is_away_are_told_apart(simulator: FalSimulator) -> None:
    unauthorized = Fal(key="wrong", api_url=simulator.url, timeout_seconds=TIMEOUT_SECONDS)
    absent = Fal(key="any", api_url="http://127.0.0.1:9", timeout_seconds=TIMEOUT_SECONDS)

    assert await create_word(lambda: unauthorized.create(order_of("fal", PICTURE))) == "provider_key"
    assert await create_word(lambda: absent.create(order_of("fal", PICTURE))) == "busy"
    assert not (await unauthorized.health()).ok
    for adapter in (unauthorized, absent):
        await adapter.close()


async def test_a_status_query_is_classified(fal: Fal, impatient: Fal, simulator: FalSimulator) -> None:
    order = order_of("fal", PICTURE)
    handle = await fal.create(order)
    await ended(simulator, handle)
    found = {}
    for fault in ANSWERS:
        simulator.service.generations[handle.task_id].faults.add(fault)
        adapter = impatient if fault is Fault.STATUS_SLOW else fal
        found[fault] = await status_word(partial(adapter.status, handle, order))

    assert found == ANSWERS
    assert await status_word(lambda: fal.status(handle, order)) == "success"


async def test_a_failed_request_says_why_and_what_it_costs(fal: Fal, simulator: FalSimulator) -> None:
    found = {}
    for faults, values in (
        ((Fault.TASK_FAIL,), None),
        ((Fault.TASK_MODERATED,), None),
        ((), {"num_images": 1}),
        ((Fault.RESULT_BAD_URLS,), None),
    ):
        simulator.faults.order(*faults)
        order = order_of("fal", PICTURE, values)
        handle = await fal.create(order)
        await ended(simulator, handle)
        report = await fal.status(handle, order)
        found[faults] = (report.outcome, report.error_code, report.cost, report.pieces)

    assert found == {
        (Fault.TASK_FAIL,): (Outcome.FAILURE, "provider_failed", 0, ()),
        (Fault.TASK_MODERATED,): (Outcome.FAILURE, "moderation", None, ()),
        (): (Outcome.FAILURE, "bad_input", None, ()),
        (Fault.RESULT_BAD_URLS,): (Outcome.SUCCESS, "", None, ()),
    }


async def test_a_gateways_error_in_place_of_a_result_is_not_the_end_of_the_task(
    fal: Fal, simulator: FalSimulator
) -> None:
    """The result is there and billed: another provider must not make it again."""
    order = order_of("fal", PICTURE)
    handle = await fal.create(order)
    await ended(simulator, handle)
    found = []
    for fault in (Fault.RESULT_500, Fault.RESULT_502):
        simulator.service.generations[handle.task_id].faults.add(fault)
        found.append(await status_word(lambda: fal.status(handle, order)))

    assert found == ["error", "error"]
    assert await status_word(lambda: fal.status(handle, order)) == "success"


async def test_a_request_is_cancelled_unless_it_has_ended(simulator: FalSimulator) -> None:
    simulator.service.speed, simulator.service.runners = 0.001, 1
    fal = Fal(key=simulator.key, api_url=simulator.url)
    order = order_of("fal", PICTURE)
    running, queued = await fal.create(order), await fal.create(order)

    assert await fal.cancel(queued, order) is CancelOutcome.CANCELLED
    assert await fal.cancel(running, order) is CancelOutcome.CANCELLED
    assert await fal.cancel(running, order) is CancelOutcome.TOO_LATE
    simulator.faults.switch(Fault.CANCEL_500)
    assert await fal.cancel(running, order) is CancelOutcome.UNKNOWN
    await fal.close()


async def test_a_callback_is_read_and_only_one_that_fal_signed_lately_is_trusted(fal: Fal) -> None:
    async with receiving_webhooks() as receiver:
        handle = await fal.create(order_of("fal", PICTURE, callback_url=f"{receiver.url}/hook?a=b&c"))
        [webhook] = await receiver.wait_for(1)
        headers, now = dict(webhook.headers), time()

        assert await fal.verify_callback(headers, webhook.body, now)
        assert not await fal.verify_callback(headers, webhook.body + b" ", now)
        assert not await fal.verify_callback({**headers, SIGNATURE: "00" * 64}, webhook.body, now)
        assert not await fal.verify_callback({**headers, SIGNATURE: "é" * 128}, webhook.body, now)
        assert not await fal.verify_callback({}, webhook.body, now)
        assert not await fal.verify_callback(headers, webhook.body, now + 400)
        assert not await fal.verify_callback({**headers, TIMESTAMP: "9" * 30}, webhook.body, now)

    report = fal.read_callback(webhook.body)
    assert (report.outcome, report.task_id, len(report.pieces)) == (Outcome.SUCCESS, handle.task_id, 1)


async def test_keys_are_fetched_again_after_a_rotation_but_not_for_each_forged_callback(
    fal: Fal, simulator: FalSimulator
) -> None:
    now = time()
    body = b'{"request_id":"r","status":"OK","payload":{}}'
    assert await fal.verify_callback(simulator.keys.sign("r", body, int(now)), body, now)
    simulator.keys.rotate(drop_old=True)
    signed = simulator.keys.sign("r", body, int(now))

    assert not await fal.verify_callback(signed, body, now), "the keys were fetched a moment ago"
    assert await fal.verify_callback(signed, body, now + REFETCH_SECONDS + 1)
    simulator.faults.switch(Fault.KEYS_500)
    with pytest.raises(ProviderError):
        await fal.verify_callback({**signed, SIGNATURE: "00" * 64}, body, now + 2 * REFETCH_SECONDS + 2)


def test_a_callback_without_the_result_leads_to_a_query() -> None:
    found = []
    for body in (
        {"status": "OK", "payload": None},
        {"status": "OK", "payload": {}, "payload_error": "x"},
        {"status": "ERROR", "error": "Invalid status code: 503"},
        {"status": "ERROR", "error": "Invalid status code: 422"},
        {"status": "PONDERING"},
    ):
        report = Fal(key="k").read_callback(json.dumps({"request_id": "r", **body}).encode())
        found.append((report.outcome, report.error_code, report.incomplete))

    assert found == [
        (Outcome.SUCCESS, "", True),
        (Outcome.SUCCESS, "", True),
        (Outcome.FAILURE, "provider_failed", False),
        (Outcome.FAILURE, "bad_input", False),
        (Outcome.UNKNOWN, "", False),
    ]


def test_a_body_that_names_no_request_is_an_error() -> None:
    for body in (b"", b"[]", b"{}", b'{"request_id": 5}', b'{"request_id": "a\\u0000b"}', b"[" * 100_000):
        with pytest.raises(ValueError, match=r".*"):
            Fal(key="k").read_callback(body)


async def test_the_key_never_goes_to_another_host(fal: Fal, simulator: FalSimulator) -> None:
    stolen = {"request_id": "r", "status_url": "https://evil.invalid/s", "response_url": "file:///x", "cancel_url": 5}

    handle = fal._read_created(PICTURE, stolen)

    assert set(json.loads(handle.details).values()) == {
        f"{simulator.url}/fal-ai/flux/requests/r/status",
        f"{simulator.url}/fal-ai/flux/requests/r",
        f"{simulator.url}/fal-ai/flux/requests/r/cancel",
    }


async def test_a_file_is_uploaded_and_can_be_read_by_models(fal: Fal, simulator: FalSimulator) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    url = await fal.upload(content(), "a.png", "inputs")

    file = simulator.service.files.find(url)
    assert file is not None
    assert (file.make(), file.type) == (b"one two", "image/png")
    assert (await fal.health()).ok


async def test_a_busy_provider_says_when_to_come_back(fal: Fal, simulator: FalSimulator) -> None:
    simulator.faults.order(Fault.CREATE_429)
    with pytest.raises(ProviderBusy) as caught:
        await fal.create(order_of("fal", PICTURE))
    assert caught.value.after > 0
