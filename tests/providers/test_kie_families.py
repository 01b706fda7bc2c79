"""The client against the simulator, over HTTP: every family from create call to result, by status and by callback."""

from collections.abc import AsyncIterator

import pytest

from genlock.domain.result import Outcome, PartKind, Report, settle_report
from genlock.domain.task import Handle
from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.simulator import KieSimulator
from tests.changes import poll_until
from tests.providers.models import CATALOG, WORKING, job, order
from tests.sandbox.webhook_receiver import WebhookReceiver, receiving_webhooks


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with receiving_webhooks() as receiver:
        yield receiver


async def asked_until_ended(kie: Kie, handle: Handle, model: str) -> Report:
    async def has_ended() -> bool:
        return (await kie.status(handle, order(job(model)))).outcome not in (Outcome.RUNNING, Outcome.UNKNOWN)

    await poll_until(has_ended)
    return await kie.status(handle, order(job(model)))


@pytest.mark.parametrize("model", WORKING)
async def test_status_and_callback_report_the_same_result(
    kie: Kie, simulator: KieSimulator, receiver: WebhookReceiver, model: str
) -> None:
    simulator.service.hold_tasks()
    handle = await kie.create(order(job(model), receiver.url))
    first = await kie.status(handle, order(job(model)))
    assert first.outcome is Outcome.RUNNING
    simulator.service.release_tasks()

    by_status = await asked_until_ended(kie, handle, model)
    await simulator.service.settled()
    reports = [kie.read_callback(callback.body) for callback in receiver.received]

    assert by_status.outcome is Outcome.SUCCESS
    assert by_status.task_id == reports[-1].task_id == handle.task_id
    assert by_status.pieces == reports[-1].pieces
    assert all(report.outcome is Outcome.RUNNING for report in reports[:-1])
    if model != "suno/midi":
        assert [
            piece.value.partition("\n\n")[2] or piece.value for piece in by_status.pieces
        ] == simulator.service.tasks[handle.task_id].results
    kind = PartKind.TEXT if CATALOG.models[model].outputs[0] == "text" else PartKind.FILE
    assert {piece.kind for piece in by_status.pieces} == {kind}


@pytest.mark.parametrize("model", WORKING)
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault.TASK_FAIL, "provider_failed"),
        (Fault.TASK_UPSTREAM, "provider_failed"),
        (Fault.TASK_MODERATED, "moderation"),
        (Fault.RESULT_EMPTY, "empty_result"),
    ],
)
async def test_status_and_callback_report_the_same_failure(
    kie: Kie, simulator: KieSimulator, receiver: WebhookReceiver, model: str, fault: Fault, code: str
) -> None:
    before = simulator.service.credits
    simulator.faults.order(fault)
    handle = await kie.create(order(job(model), receiver.url))
    by_status = settle_report(await asked_until_ended(kie, handle, model))
    await simulator.service.settled()
    by_callback = settle_report(kie.read_callback(receiver.received[-1].body))

    assert by_status.outcome is by_callback.outcome is Outcome.FAILURE
    assert by_status.error_code == by_callback.error_code == code
    assert by_callback.task_id == handle.task_id
    assert (simulator.service.credits == before) == (fault is not Fault.RESULT_EMPTY)


async def test_a_song_has_three_callbacks(kie: Kie, simulator: KieSimulator, receiver: WebhookReceiver) -> None:
    await kie.create(order(job("suno/generate"), receiver.url))
    await simulator.service.settled()
    assert [kie.read_callback(callback.body).word for callback in receiver.received] == ["text", "first", "complete"]


async def test_a_song_can_be_ordered_without_a_callback(kie: Kie, simulator: KieSimulator) -> None:
    """Suno requires a callback URL; without a public URL it gets one that reaches no host."""
    handle = await kie.create(order(job("suno/generate")))
    simulator.service.tasks[handle.task_id].faults.add(Fault.CALLBACK_LOST)
    assert (await asked_until_ended(kie, handle, "suno/generate")).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("fault", [Fault.RESULT_BROKEN, Fault.RESULT_BAD_URLS])
async def test_an_unusable_result_is_a_failure(kie: Kie, simulator: KieSimulator, fault: Fault) -> None:
    simulator.faults.order(fault)
    handle = await kie.create(order(job()))
    report = await asked_until_ended(kie, handle, "z-image")
    assert settle_report(report).error_code == "empty_result"
    assert report.cost == 800


async def test_the_number_of_results_is_the_ordered_one(kie: Kie) -> None:
    ordered = job("many-images", {"prompt": "foxes", "max_images": 4})
    handle = await kie.create(order(ordered))
    assert len((await asked_until_ended(kie, handle, "many-images")).pieces) == 4


async def test_a_task_is_not_found_under_another_family(kie: Kie) -> None:
    handle = await kie.create(order(job("z-image")))
    report = await kie.status(handle, order(job("veo3_fast")))
    assert (report.outcome, report.word) == (Outcome.RUNNING, "The record does not exist")
