"""The Replicate adapter against the simulator: answers, callbacks, and lost orders that are found again."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from time import time

import pytest

from genlock.domain.catalog import Output
from genlock.domain.errors import ProviderError, SubmitUnknown
from genlock.domain.result import Outcome, PartKind
from genlock.domain.task import CancelOutcome, Handle
from genlock.providers.key_cache import REFETCH_SECONDS
from genlock.providers.replicate.client import Replicate
from genlock.providers.replicate.signature import SIGNATURE
from genlock.sandbox.generations.faults import Fault
from genlock.sandbox.generations.generation import SimulatedInput, SimulatedModel
from genlock.sandbox.replicate.simulator import ReplicateSimulator, running_replicate
from tests.providers.conftest import IMPATIENT_SECONDS, SLOW_SECONDS, TIMEOUT_SECONDS
from tests.providers.simulated_orders import ANSWERS, REFUSALS, create_word, order_of, status_word
from tests.sandbox.webhook_receiver import receiving_webhooks

PICTURE = "black-forest-labs/flux-dev"
MODELS = {
    model.id: model
    for model in (
        SimulatedModel(id=PICTURE, output=Output.IMAGE, inputs=(SimulatedInput(name="prompt", required=True),)),
        SimulatedModel(id="a/upscaler", output=Output.IMAGE, single=True),
        SimulatedModel(id="a/film", output=Output.VIDEO, single=True),
        SimulatedModel(id="openai/whisper", output=Output.TEXT),
    )
}


@pytest.fixture
async def simulator() -> AsyncIterator[ReplicateSimulator]:
    async with running_replicate(MODELS, speed=2000.0, slow_seconds=SLOW_SECONDS) as replicate:
        yield replicate


@pytest.fixture
async def replicate(simulator: ReplicateSimulator) -> AsyncIterator[Replicate]:
    adapter = Replicate(token=simulator.token, api_url=simulator.url, timeout_seconds=TIMEOUT_SECONDS)
    yield adapter
    await adapter.close()


@pytest.fixture
async def impatient(simulator: ReplicateSimulator) -> AsyncIterator[Replicate]:
    adapter = Replicate(token=simulator.token, api_url=simulator.url, timeout_seconds=IMPATIENT_SECONDS)
    yield adapter
    await adapter.close()


async def ended(simulator: ReplicateSimulator, handle: Handle) -> None:
    await simulator.service.generations[handle.task_id].has_ended.wait()


async def test_each_kind_of_result_is_found(replicate: Replicate, simulator: ReplicateSimulator) -> None:
    found = {}
    for model in (*MODELS, f"{PICTURE}:{'a' * 64}"):
        order = order_of("replicate", model)
        handle = await replicate.create(order)
        await ended(simulator, handle)
        report = await replicate.status(handle, order)
        assert (report.outcome, report.task_id) == (Outcome.SUCCESS, handle.task_id)
        found[model.partition(":")[0]] = [(piece.kind, piece.value.rpartition(".")[2][:3]) for piece in report.pieces]

    assert found == {
        PICTURE: [(PartKind.FILE, "png")],
        "a/upscaler": [(PartKind.FILE, "png")],
        "a/film": [(PartKind.FILE, "mp4")],
        "openai/whisper": [(PartKind.TEXT, "ope")],
    }


async def test_only_an_order_that_was_provably_not_accepted_is_refused_or_busy(
    replicate: Replicate, impatient: Replicate, simulator: ReplicateSimulator
) -> None:
    found = {}
    for fault in REFUSALS:
        simulator.faults.order(fault)
        adapter = impatient if fault is Fault.CREATE_SLOW else replicate
        found[fault] = await create_word(partial(adapter.create, order_of("replicate", PICTURE)))

    assert found == REFUSALS
    assert await create_word(lambda: replicate.create(order_of("replicate", PICTURE, {}))) == "bad_input"
    assert await create_word(lambda: replicate.create(order_of("replicate", "../account"))) == "model_unavailable"


async def test_a_wrong_token_is_named(simulator: ReplicateSimulator) -> None:
    unauthorized = Replicate(token="wrong", api_url=simulator.url)

    assert await create_word(lambda: unauthorized.create(order_of("replicate", PICTURE))) == "provider_key"
    health = await unauthorized.health()
    assert not health.ok
    assert "GENLOCK_REPLICATE_TOKEN" in health.text
    await unauthorized.close()


async def test_a_status_query_is_classified(
    replicate: Replicate, impatient: Replicate, simulator: ReplicateSimulator
) -> None:
    order = order_of("replicate", PICTURE)
    handle = await replicate.create(order)
    await ended(simulator, handle)
    found = {}
    for fault in ANSWERS:
        simulator.service.generations[handle.task_id].faults.add(fault)
        adapter = impatient if fault is Fault.STATUS_SLOW else replicate
        found[fault] = await status_word(partial(adapter.status, handle, order))

    assert found == ANSWERS
    assert await status_word(lambda: replicate.status(handle, order)) == "success"


async def test_a_failed_prediction_says_why(replicate: Replicate, simulator: ReplicateSimulator) -> None:
    found = {}
    for fault in (Fault.TASK_FAIL, Fault.TASK_MODERATED):
        simulator.faults.order(fault)
        order = order_of("replicate", PICTURE)
        handle = await replicate.create(order)
        await ended(simulator, handle)
        report = await replicate.status(handle, order)
        found[fault] = (report.outcome, report.error_code, report.cost)

    assert found == {
        Fault.TASK_FAIL: (Outcome.FAILURE, "provider_failed", None),
        Fault.TASK_MODERATED: (Outcome.FAILURE, "moderation", None),
    }


async def test_an_order_whose_answer_was_lost_is_found_and_no_other_is(
    replicate: Replicate, simulator: ReplicateSimulator
) -> None:
    order = order_of("replicate", PICTURE, {"prompt": "lost", "seed": 7})
    since = datetime.now(UTC)
    for values in ({"prompt": "lost", "seed": 8}, {"prompt": "lost"}):
        await replicate.create(order_of("replicate", PICTURE, values))
    await replicate.create(order_of("replicate", "a/upscaler", {"prompt": "lost", "seed": 7}))
    assert await replicate.find(order, since) == []

    simulator.faults.order(Fault.CREATE_CUT)
    with pytest.raises(SubmitUnknown):
        await replicate.create(order)
    for _ in range(110):
        simulator.faults.order()
        await replicate.create(order_of("replicate", PICTURE, {"prompt": "other"}))

    [found] = await replicate.find(order, since)
    assert simulator.service.generations[found.task_id].values == {"prompt": "lost", "seed": 7}
    assert await replicate.find(order, since + timedelta(minutes=1)) == []


async def test_a_prediction_is_cancelled_unless_it_has_ended(simulator: ReplicateSimulator) -> None:
    replicate = Replicate(token=simulator.token, api_url=simulator.url)
    order = order_of("replicate", PICTURE)
    done = await replicate.create(order)
    await ended(simulator, done)
    simulator.service.speed = 0.001
    running = await replicate.create(order)

    assert await replicate.cancel(running, order) is CancelOutcome.CANCELLED
    assert await replicate.cancel(done, order) is CancelOutcome.TOO_LATE
    assert await replicate.cancel(Handle(task_id="nothing"), order) is CancelOutcome.TOO_LATE
    simulator.faults.switch(Fault.CANCEL_500)
    assert await replicate.cancel(running, order) is CancelOutcome.UNKNOWN
    await replicate.close()


async def test_a_callback_is_read_and_only_one_that_replicate_signed_lately_is_trusted(
    replicate: Replicate,
) -> None:
    async with receiving_webhooks() as receiver:
        handle = await replicate.create(order_of("replicate", PICTURE, callback_url=f"{receiver.url}/hook"))
        [webhook] = await receiver.wait_for(1)
    headers, now = {name.lower(): value for name, value in webhook.headers.items()}, time()

    assert await replicate.verify_callback(headers, webhook.body, now)
    assert await replicate.verify_callback(
        {**headers, SIGNATURE: f"v1,wrong v2,x {headers[SIGNATURE]}"}, webhook.body, now
    )
    assert not await replicate.verify_callback(headers, webhook.body + b" ", now)
    assert not await replicate.verify_callback({**headers, SIGNATURE: "v1,wrong"}, webhook.body, now)
    assert not await replicate.verify_callback({}, webhook.body, now)
    assert not await replicate.verify_callback(headers, webhook.body, now + 400)
    report = replicate.read_callback(webhook.body)
    assert (report.outcome, report.task_id, len(report.pieces)) == (Outcome.SUCCESS, handle.task_id, 1)


async def test_the_secret_is_fetched_again_after_a_rotation(
    replicate: Replicate, simulator: ReplicateSimulator
) -> None:
    now, body = time(), b'{"id":"p","status":"succeeded"}'
    assert await replicate.verify_callback(simulator.secret.sign("m", body, int(now)), body, now)
    simulator.secret.rotate()
    signed = simulator.secret.sign("m", body, int(now))

    assert not await replicate.verify_callback(signed, body, now), "the secret was fetched a moment ago"
    assert await replicate.verify_callback(signed, body, now + REFETCH_SECONDS + 1)
    simulator.faults.switch(Fault.KEYS_500)
    with pytest.raises(ProviderError):
        await replicate.verify_callback({**signed, SIGNATURE: "v1,x"}, body, now + 2 * REFETCH_SECONDS + 2)


def test_states_are_read_from_predictions() -> None:
    adapter = Replicate(token="t")
    found = {}
    for word in ("starting", "processing", "succeeded", "failed", "canceled", "aborted", "pondering"):
        body = {"id": "p", "status": word, "started_at": None}
        report = adapter.read_callback(json.dumps(body).encode())
        found[word] = (report.outcome, report.cost)

    assert found == {
        "starting": (Outcome.RUNNING, None),
        "processing": (Outcome.RUNNING, None),
        "succeeded": (Outcome.SUCCESS, None),
        "failed": (Outcome.FAILURE, 0),
        "canceled": (Outcome.FAILURE, 0),
        "aborted": (Outcome.FAILURE, 0),
        "pondering": (Outcome.UNKNOWN, None),
    }


def test_a_body_that_names_no_prediction_is_an_error() -> None:
    for body in (b"", b"[]", b"{}", b'{"id": 5}', b'{"id": "a b"}', b"[" * 100_000):
        with pytest.raises(ValueError, match=r".*"):
            Replicate(token="t").read_callback(body)


async def test_a_file_is_uploaded(replicate: Replicate, simulator: ReplicateSimulator) -> None:
    async def content() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    url = await replicate.upload(content(), "a.png", "inputs")

    file = simulator.service.files.find(url)
    assert file is not None
    assert file.make() == b"one two"
    assert file.type == "image/png", "models tell the kind of a file by it"
    assert (await replicate.health()).ok
