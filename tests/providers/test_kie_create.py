"""Create calls and queries: every answer is classified, and only an order that was not accepted may be repeated."""

import asyncio
import socket

import pytest

from genlock.domain.errors import ProviderBusy, ProviderError, SubmitRefused, SubmitUnknown
from genlock.domain.result import Outcome
from genlock.providers.kie.client import Kie
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.simulator import KieSimulator
from tests.providers.conftest import TIMEOUT_SECONDS
from tests.providers.models import WORKING, job, order

FAMILIES = ("z-image", "veo3_fast", "runway", "aleph", "4o", "flux-kontext-pro", "suno/generate")


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.CREATE_429, ProviderBusy),
        (Fault.CREATE_HTTP_429, ProviderBusy),
        (Fault.CREATE_433, ProviderBusy),
        (Fault.CREATE_455, ProviderBusy),
        (Fault.CREATE_PAUSED, SubmitRefused),
        (Fault.CREATE_MODERATED, SubmitRefused),
        (Fault.CREATE_500, SubmitUnknown),
        (Fault.CREATE_HTTP_500, SubmitUnknown),
        (Fault.CREATE_502, SubmitUnknown),
    ],
)
async def test_a_create_call_that_the_provider_did_not_accept(
    kie: Kie, simulator: KieSimulator, model: str, fault: Fault, error: type[ProviderError]
) -> None:
    simulator.faults.order(fault)
    with pytest.raises(error):
        await kie.create(order(job(model)))
    assert not simulator.service.tasks


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize("fault", [Fault.CREATE_CUT, Fault.CREATE_GARBLED, Fault.CREATE_NO_ID])
async def test_an_accepted_create_call_whose_answer_was_lost_is_unknown(
    kie: Kie, simulator: KieSimulator, model: str, fault: Fault
) -> None:
    simulator.faults.order(fault)
    with pytest.raises(SubmitUnknown):
        await kie.create(order(job(model)))
    assert len(simulator.service.tasks) == 1, "and it was submitted once"


async def test_an_answer_that_takes_too_long_is_unknown(impatient_kie: Kie, simulator: KieSimulator) -> None:
    simulator.faults.order(Fault.CREATE_SLOW)
    with pytest.raises(SubmitUnknown, match="Timeout"):
        await impatient_kie.create(order(job()))
    assert len(simulator.service.tasks) == 1


@pytest.mark.parametrize(
    ("model", "values", "code", "text"),
    [
        ("z-image", {}, "bad_input", "prompt is required"),
        ("z-image", {"prompt": "a", "aspect_ratio": "7:1"}, "bad_input", "Invalid aspect_ratio parameter"),
        ("sora-2", None, "model_unavailable", "This interface is temporarily paused."),
        ("gone", None, "model_unavailable", "The model name you specified is not supported."),
        ("veo3_fast", {}, "bad_input", "prompt is required"),
    ],
)
async def test_a_refused_input_or_model(
    kie: Kie, model: str, values: dict[str, object] | None, code: str, text: str
) -> None:
    with pytest.raises(SubmitRefused) as refused:
        await kie.create(order(job(model, values)))
    assert refused.value.code == code
    assert refused.value.text.startswith(text)


@pytest.mark.parametrize("faults", [(), (Fault.CREDITS_AS_500,)])
async def test_an_account_without_credits(kie: Kie, simulator: KieSimulator, faults: tuple[Fault, ...]) -> None:
    simulator.service.credits = 799
    simulator.faults.order(*faults)
    with pytest.raises(SubmitRefused) as refused:
        await kie.create(order(job()))
    assert refused.value.code == "no_provider_credits"


async def test_a_wrong_key(simulator: KieSimulator) -> None:
    wrong_key = Kie(key="wrong", api_url=simulator.url)
    with pytest.raises(SubmitRefused) as refused:
        await wrong_key.create(order(job()))
    assert refused.value.code == "provider_key"
    await wrong_key.close()


async def test_a_refused_connection_means_not_accepted() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nowhere = Kie(key="k", api_url=f"http://127.0.0.1:{port}")
    with pytest.raises(ProviderBusy):
        await nowhere.create(order(job()))
    await nowhere.close()


async def test_an_unknown_host_means_not_accepted() -> None:
    nowhere = Kie(key="k", api_url="http://no-such-host.invalid")
    with pytest.raises(ProviderBusy):
        await nowhere.create(order(job()))
    await nowhere.close()


async def _serve_bytes(answer: bytes) -> tuple[asyncio.Server, str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(65536)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", SubmitUnknown),
        (b"garbage", SubmitUnknown),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{", SubmitUnknown),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", SubmitUnknown),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", SubmitUnknown),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"code":"x"}', SubmitUnknown),
        (b"HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", SubmitUnknown),
        (b"HTTP/1.1 504 Gateway Time-out\r\nContent-Length: 0\r\n\r\n", SubmitUnknown),
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", SubmitRefused),
        (b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", ProviderBusy),
    ],
)
async def test_every_http_answer_is_classified(answer: bytes, error: type[ProviderError]) -> None:
    server, url = await _serve_bytes(answer)
    kie = Kie(key="k", api_url=url, timeout_seconds=TIMEOUT_SECONDS)
    with pytest.raises(error):
        await kie.create(order(job()))
    await kie.close()
    server.close()


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.STATUS_429, ProviderBusy),
        (Fault.STATUS_455, ProviderBusy),
        (Fault.STATUS_500, ProviderError),
        (Fault.STATUS_502, ProviderError),
        (Fault.STATUS_GARBLED, ProviderError),
    ],
)
async def test_a_failed_query_can_be_repeated(
    kie: Kie, simulator: KieSimulator, model: str, fault: Fault, error: type[ProviderError]
) -> None:
    simulator.faults.order(fault)
    handle = await kie.create(order(job(model)))
    with pytest.raises(error):
        await kie.status(handle, order(job(model)))
    await simulator.service.settled()
    assert (await kie.status(handle, order(job(model)))).outcome is Outcome.SUCCESS


@pytest.mark.parametrize("model", FAMILIES)
@pytest.mark.parametrize(
    ("fault", "outcome"), [(Fault.STATUS_NULL, Outcome.RUNNING), (Fault.STATUS_WORD, Outcome.UNKNOWN)]
)
async def test_a_record_without_a_state_does_not_end_the_task(
    kie: Kie, simulator: KieSimulator, model: str, fault: Fault, outcome: Outcome
) -> None:
    simulator.faults.order(fault)
    handle = await kie.create(order(job(model)))
    await simulator.service.settled()
    assert (await kie.status(handle, order(job(model)))).outcome is outcome
    assert (await kie.status(handle, order(job(model)))).outcome is Outcome.SUCCESS


async def test_a_query_times_out(kie: Kie, impatient_kie: Kie, simulator: KieSimulator) -> None:
    simulator.faults.order(Fault.STATUS_SLOW)
    handle = await kie.create(order(job()))
    with pytest.raises(ProviderError):
        await impatient_kie.status(handle, order(job()))


async def test_every_working_model_can_be_ordered(kie: Kie) -> None:
    assert len({await kie.create(order(job(model))) for model in WORKING}) == len(WORKING)


async def test_a_query_whose_connection_is_cut_fails(kie: Kie, simulator: KieSimulator) -> None:
    """The HTTP client may repeat the query by itself, because a query changes nothing."""
    handle = await kie.create(order(job()))
    simulator.faults.switch(Fault.STATUS_CUT)
    with pytest.raises(ProviderError):
        await kie.status(handle, order(job()))
