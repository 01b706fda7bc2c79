"""The simulator behaves like Kie.ai: envelopes, codes, texts, limits and callbacks."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from time import time
from typing import Any

import aiohttp
import pytest

from genlock.catalog import load
from genlock.domain.task import TaskOrder
from genlock.providers.kie.client import Kie
from genlock.providers.kie.signature import is_signed
from genlock.sandbox.kie.faults import Fault
from genlock.sandbox.kie.simulator import KieSimulator, running_kie
from tests.providers.conftest import FAST
from tests.providers.models import CATALOG, job, order
from tests.sandbox.webhook_receiver import ReceivedWebhook, WebhookReceiver, receiving_webhooks

INPUT = {"prompt": "a cat", "aspect_ratio": "1:1"}


class Caller:
    """A plain HTTP client of the simulator."""

    def __init__(self, simulator: KieSimulator, session: aiohttp.ClientSession) -> None:
        self.simulator = simulator
        self._session = session

    async def __call__(self, method: str, path: str, key: str | None = None, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {key or self.simulator.key}"}
        async with self._session.request(method, self.simulator.url + path, headers=headers, **more) as response:
            assert response.status == 200
            assert response.headers["Content-Type"] == "application/json;charset=UTF-8"
            return await response.json(content_type=None)

    async def create(self, model: str = "z-image", input_: Any = INPUT, **more: Any) -> Any:
        return await self("POST", "/api/v1/jobs/createTask", json={"model": model, "input": input_, **more})

    async def record(self, task_id: str) -> Any:
        return await self("GET", f"/api/v1/jobs/recordInfo?taskId={task_id}")


@pytest.fixture
async def ask(simulator: KieSimulator) -> AsyncIterator[Caller]:
    async with aiohttp.ClientSession() as session:
        yield Caller(simulator, session)


async def test_a_create_answer_has_the_task_id_under_two_keys(ask: Caller) -> None:
    answer = await ask.create()
    assert (answer["code"], answer["msg"]) == (200, "success")
    assert re.fullmatch("[0-9a-f]{32}", answer["data"]["taskId"])
    assert answer["data"]["recordId"] == answer["data"]["taskId"]


async def test_errors_have_http_200_and_the_exact_texts(ask: Caller) -> None:
    unauthorized = await ask("POST", "/api/v1/jobs/createTask", key="wrong", json={})
    assert unauthorized["code"] == 401
    assert unauthorized["msg"].startswith("Unauthorized \u2013 Authentication failed. Please check that your")
    assert "data" not in unauthorized
    unknown = await ask.create("no-such-model")
    assert (unknown["code"], unknown["data"]) == (422, None)
    assert unknown["msg"].endswith("use one of the supported models provided by KIE.")
    assert await ask.create(input_={}) == {"code": 500, "msg": "prompt is required", "data": None}
    assert (await ask.create(input_=INPUT | {"aspect_ratio": "9"}))["code"] == 422
    assert (await ask.create("sora-2"))["msg"] == "This interface is temporarily paused."
    assert await ask.record("0" * 32) == {"code": 422, "msg": "recordInfo is null", "data": None}
    assert (await ask.record(""))["code"] == 400
    assert (await ask("GET", "/api/v1/jobs/getTask"))["code"] == 404


async def test_the_older_families_have_their_own_texts(ask: Caller) -> None:
    song = await ask("POST", "/api/v1/generate", json={"prompt": "la"})
    assert (song["code"], song["msg"]) == (422, "Please enter callBackUrl.")
    nothing = {"code": 422, "msg": "The record does not exist", "data": None}
    assert await ask("GET", "/api/v1/gpt4o-image/record-info?taskId=x") == nothing
    assert await ask("GET", "/api/v1/generate/record-info?taskId=x") == {"code": 200, "msg": "success", "data": None}
    film = await ask("POST", "/api/v1/veo/generate", json={"prompt": "a cat", "model": "veo3_fast"})
    assert list(film["data"]) == ["taskId"]


async def test_a_record_has_the_same_form_as_the_real_one(ask: Caller) -> None:
    ask.simulator.service.hold_tasks()
    task_id = (await ask.create(callBackUrl="http://127.0.0.1:1/x"))["data"]["taskId"]
    before = (await ask.record(task_id))["data"]
    assert before["state"] in ("waiting", "queuing", "generating")
    assert before["resultJson"] == ""
    assert before["creditsConsumed"] == 0.8
    assert before["costTime"] is before["completeTime"] is before["failCode"] is None
    param = json.loads(before["param"])
    assert json.loads(param["input"]) == INPUT, "JSON inside JSON"
    assert param["callBackUrl"] == "http://127.0.0.1:1/x"

    ask.simulator.service.tasks[task_id].faults.add(Fault.CALLBACK_LOST)
    ask.simulator.service.release_tasks()
    await ask.simulator.service.settled()
    after = (await ask.record(task_id))["data"]
    assert after["state"] == "success"
    assert json.loads(after["resultJson"])["resultUrls"][0].startswith(ask.simulator.files_url)
    assert 8 <= after["costTime"] <= 12, "seconds, and those of the real model"
    assert after["completeTime"] >= after["createTime"] > 1_000_000_000_000
    assert "updateTime" not in after


async def test_a_failed_record_costs_nothing(ask: Caller) -> None:
    ask.simulator.faults.order(Fault.TASK_FAIL)
    task_id = (await ask.create())["data"]["taskId"]
    await ask.simulator.service.settled()
    record = (await ask.record(task_id))["data"]
    assert (record["state"], record["failCode"], record["creditsConsumed"]) == ("fail", "500", 0)
    assert record["failMsg"] == "Internal Error, Please try again later."


async def test_the_balance_is_a_bare_decimal(ask: Caller) -> None:
    await ask.create()
    assert (await ask("GET", "/api/v1/chat/credit"))["data"] == 99_999.2


async def test_an_upload_is_answered_like_the_real_one(ask: Caller) -> None:
    body = {"base64Data": "data:image/png;base64,iVBORw0KGgo=", "uploadPath": "a"}
    answer = await ask("POST", "/api/file-base64-upload", json=body)
    assert answer["success"] is answer["data"]["success"] is True
    assert re.fullmatch(r"\d{13}-[0-9a-z]{11}\.png", answer["data"]["fileName"])
    assert answer["data"]["mimeType"] == "image/png"
    broken = await ask("POST", "/api/file-base64-upload", json=body | {"base64Data": "%"})
    assert broken["msg"] == "Base64 decoding failed: Invalid Base64 format"
    assert (await ask("POST", "/api/file-base64-upload", key="x", json=body))["code"] == 401


async def test_more_than_the_limit_is_refused_and_not_queued() -> None:
    async with (
        running_kie(catalog=CATALOG, create_limit=(20, 10.0), status_limit=(10, 1.0), **FAST) as simulator,
        aiohttp.ClientSession() as session,
    ):
        ask = Caller(simulator, session)
        creates = [await ask.create() for _ in range(22)]
        queries = [await ask.record(creates[0]["data"]["taskId"]) for _ in range(11)]
    assert [answer["code"] for answer in creates] == [200] * 20 + [429] * 2
    assert [answer["code"] for answer in queries] == [200] * 10 + [429]
    assert creates[-1]["msg"] == "Your call frequency is too high. Please try again later."
    assert len(simulator.service.tasks) == 20


async def test_a_record_may_take_a_moment_to_appear() -> None:
    async with (
        running_kie(catalog=CATALOG, null_seconds=60.0, **FAST) as simulator,
        aiohttp.ClientSession() as session,
    ):
        ask = Caller(simulator, session)
        task_id = (await ask.create())["data"]["taskId"]
        assert (await ask.record(task_id))["msg"] == "recordInfo is null"
        simulator.service.tasks[task_id].created -= 60.0
        assert (await ask.record(task_id))["code"] == 200


# callbacks


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with receiving_webhooks() as receiver:
        yield receiver


@pytest.fixture
async def signing() -> AsyncIterator[KieSimulator]:
    async with running_kie(catalog=CATALOG, webhook_key="hmac", **FAST) as kie:
        yield kie


async def called(simulator: KieSimulator, receiver: WebhookReceiver, *faults: Fault) -> list[ReceivedWebhook]:
    """Order with a callback, and return all callbacks that have arrived."""
    simulator.faults.order(*faults)
    async with aiohttp.ClientSession() as session:
        await Caller(simulator, session).create(callBackUrl=f"{receiver.url}/callbacks/kie/7.secret")
    await simulator.service.settled()
    return receiver.received


def signed(callback: ReceivedWebhook) -> bool:
    return is_signed(callback.headers, callback.body, "hmac", time())


async def test_a_callback_is_a_signed_record_with_times_in_whole_seconds(
    signing: KieSimulator, receiver: WebhookReceiver
) -> None:
    [request] = await called(signing, receiver)
    assert signed(request)
    answer = json.loads(request.body)
    assert (answer["code"], answer["msg"]) == (200, "Playground task completed successfully.")
    assert answer["data"]["completeTime"] % 1000 == answer["data"]["updateTime"] % 1000 == 0
    assert json.loads(json.loads(answer["data"]["param"])["input"]) == INPUT


async def test_a_failure_is_called_back_with_501(signing: KieSimulator, receiver: WebhookReceiver) -> None:
    [request] = await called(signing, receiver, Fault.TASK_FAIL)
    answer = json.loads(request.body)
    assert (answer["code"], answer["msg"], answer["data"]["resultJson"]) == (501, "Playground task failed.", None)


async def test_a_callback_is_repeated_up_to_three_times_until_it_is_accepted(
    signing: KieSimulator, receiver: WebhookReceiver
) -> None:
    receiver.statuses = [503, 500]
    assert len(await called(signing, receiver)) == 3
    receiver.received.clear()
    receiver.statuses = [503] * 9
    assert len(await called(signing, receiver)) == 4


@pytest.mark.parametrize(
    ("fault", "bodies"),
    [
        (Fault.CALLBACK_LOST, 0),
        (Fault.CALLBACK_TWICE, 2),
        (Fault.CALLBACK_EARLY, 1),
        (Fault.CALLBACK_LATE, 1),
        (Fault.CALLBACK_CONTRADICTING, 2),
        (Fault.CALLBACK_FORGED, 3),
    ],
)
async def test_faults_of_callbacks(signing: KieSimulator, receiver: WebhookReceiver, fault: Fault, bodies: int) -> None:
    requests = await called(signing, receiver, fault)
    assert len(requests) == bodies
    if fault is Fault.CALLBACK_TWICE:
        assert requests[0].body == requests[1].body
    if fault is Fault.CALLBACK_CONTRADICTING:
        assert [json.loads(request.body)["code"] for request in requests] == [200, 501]
    if fault is Fault.CALLBACK_FORGED:
        assert [signed(request) for request in requests] == [False, False, True]
        assert [request.path for request in requests] == [
            "/callbacks/kie",
            "/callbacks/kie/7.guessed",
            "/callbacks/kie/7.secret",
        ]


@pytest.mark.parametrize("fault", [Fault.CALLBACK_STALE, Fault.CALLBACK_BAD_SIGNATURE])
async def test_signatures_can_be_wrong(signing: KieSimulator, receiver: WebhookReceiver, fault: Fault) -> None:
    assert not any(signed(request) for request in await called(signing, receiver, fault))


async def test_bodies_can_be_broken(signing: KieSimulator, receiver: WebhookReceiver) -> None:
    await called(signing, receiver, Fault.CALLBACK_EMPTY)
    await called(signing, receiver, Fault.CALLBACK_UNPARSABLE)
    empty, half = (callback.body for callback in receiver.received)
    assert empty == b""
    with pytest.raises(ValueError, match=r"."):
        json.loads(half)


# the control


async def test_the_control_endpoint_sets_faults(simulator: KieSimulator, kie: Kie) -> None:
    url = f"{simulator.url}/_control"
    async with aiohttp.ClientSession() as session:

        async def change(**answer: Any) -> Any:
            async with session.post(url, json=answer) as response:
                return response.status, await response.json()

        handle = await kie.create(order(job()))
        status, told = await change(
            on=["status_455"],
            chances={"task_fail": 0.5},
            order=["create_cut"],
            task={handle.task_id: ["task_fail"]},
            credits=5,
        )
        assert status == 200
        assert told["faults"] == {"on": ["status_455"], "chances": {"task_fail": 0.5}, "coming": [["create_cut"]]}
        assert (told["credits"], told["tasks"][0]["faults"]) == (5.0, ["task_fail"])
        assert (await change(on=["no such fault"]))[0] == 400
        assert (await change(clear=True))[1]["faults"] == {"on": [], "chances": {}, "coming": []}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({}, 200),
    ],
)
async def test_the_control_endpoint_refuses_pages_of_other_sites(
    simulator: KieSimulator, headers: dict[str, str], status: int
) -> None:
    answer = {"Content-Type": "application/json"} | headers
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{simulator.url}/_control", data='{"credits": 0}', headers=answer) as response:
            assert response.status == status
        async with session.get(f"{simulator.url}/_control", headers=headers) as response:
            assert response.status == (403 if status == 403 else 200)
    assert (simulator.service.credits == 0) is (status == 200)


async def test_the_same_seed_gives_the_same_faults() -> None:
    days = []
    for _ in range(2):
        async with running_kie(catalog=CATALOG, create_limit=(999, 1.0), seed=7, **FAST) as simulator:
            simulator.faults.set_probability(Fault.CREATE_500, 0.3)
            async with aiohttp.ClientSession() as session:
                ask = Caller(simulator, session)
                days.append([(await ask.create())["code"] for _ in range(50)])
            days.append([*simulator.service.tasks])
    assert days[:2] == days[2:]
    assert 5 < days[0].count(500) < 25


async def test_every_offered_model_can_be_ordered() -> None:
    """The simulator accepts the smallest input of every offered model from the real client."""
    catalog = load().sold_through({"kie"})
    async with running_kie(catalog=catalog, create_limit=(999, 1.0), credits_=1e9, speed=1e6) as simulator:
        kie = Kie(key=simulator.key, api_url=simulator.url)
        for model in catalog.offered():
            least = json.dumps(model.minimal_input())
            await kie.create(TaskOrder(job=replace(job(), model=model.id, input=least), offer=model.offers[0]))
        assert len(simulator.service.tasks) == len(catalog.offered()) >= 130
        await kie.close()
