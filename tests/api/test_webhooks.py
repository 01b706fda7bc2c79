"""Webhooks out: signed as Standard Webhooks, sent at least once, in order per job, and never to private addresses."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from genlock.api.webhook_secrets import WebhookSecrets
from genlock.client import verify_webhook
from genlock.domain.webhook import FAILING_SECONDS_MAX, RETRY_SECONDS, sign
from genlock.stores.database import SqlDatabase
from tests.api.world import ApiWorld, Client, running_api
from tests.sandbox.webhook_receiver import ReceivedWebhook, WebhookReceiver, receiving_webhooks


@pytest.fixture
async def receiver() -> AsyncIterator[WebhookReceiver]:
    async with receiving_webhooks() as running:
        yield running


@pytest.fixture
async def world(tmp_path: Path, receiver: WebhookReceiver) -> AsyncIterator[ApiWorld]:
    host = receiver.url.removeprefix("http://")
    async with running_api(f"sqlite:///{tmp_path}/g.db", tmp_path / "media", private_hosts=(host,)) as running:
        yield running


async def add(client: Client, url: str, **changes: Any) -> dict[str, Any]:
    answer = await client.post("/v1/webhooks", {"url": url, **changes})
    assert answer.status == 201, answer
    body: dict[str, Any] = answer.json
    return body


async def send(world: ApiWorld) -> None:
    """Send what is due."""
    await world.webhooks.round()
    await world.webhooks.settled()


def verify(webhook: ReceivedWebhook, secret: str) -> Any:
    return Verifier(secret).verify(webhook.body, {name.lower(): value for name, value in webhook.headers.items()})


def types(receiver: WebhookReceiver) -> list[str]:
    return [json.loads(request.body)["type"] for request in receiver.received]


async def test_the_events_of_a_job_arrive_in_order_and_the_official_library_verifies_them(
    world: ApiWorld, receiver: WebhookReceiver
) -> None:
    client = await world.client()
    secret = (await add(client, f"{receiver.url}/hook"))["secret"]
    job = (await client.order(wait=60)).json
    assert job["status"] == "succeeded"
    await send(world)

    assert types(receiver) == ["job.started", "job.succeeded"]
    for request in receiver.received:
        verify(request, secret)
    [started, succeeded] = [verify_webhook(secret, request.headers, request.body) for request in receiver.received]
    assert started.job is not None
    assert succeeded.job is not None
    assert (started.job.id, succeeded.job.charged, len(succeeded.job.results)) == (job["id"], True, 1)
    data = json.loads(receiver.received[1].body)["data"]
    assert (data["id"], data["status"], data["charged"]) == (job["id"], "succeeded", True)
    assert data["results"][0]["url"].endswith(f"/v1/jobs/{job['id']}/results/0")
    assert "input" not in data
    with pytest.raises(WebhookVerificationError):
        verify(receiver.received[0], "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")


def test_the_signature_is_that_of_the_published_test_vector() -> None:
    body = b'{"type":"job.delivered","timestamp":"2026-01-01T00:00:00Z","data":{"id":"job_1"}}'

    found = sign(b"0123456789abcdef0123456789abcdef", "msg_1", 1767225600, body)

    assert found == "v1,BDboVDNkA/8AkU4RlwVV50T9A5kwOAsHW1Dy1R72k3k="


async def test_nothing_is_sent_with_a_secret_that_cannot_be_read_and_a_rotation_sends_what_waits(
    world: ApiWorld, receiver: WebhookReceiver
) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    stored = await _stored(world, client, webhook)
    _, foreign = WebhookSecrets.of_installation(["another key of the settings"], "").make(webhook["id"], 1)
    assert await world.store.seal_webhook_secrets(stored, foreign, "")
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    await send(world)
    assert receiver.received == []
    rotated = (await client.post(f"/v1/webhooks/{webhook['id']}/rotate-secret")).json
    await world.store.change_webhook(stored.id, enabled=True)  # ends its pause
    await send(world)

    [received] = receiver.received
    verify(received, rotated["secret"])


async def test_what_an_endpoint_answers_is_kept_in_part_as_text(world: ApiWorld, receiver: WebhookReceiver) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    await send(world)
    stored = await _stored(world, client, webhook)
    [delivery] = await world.store.webhook_deliveries(stored.id, state=None, before=None, limit=5)
    assert delivery.last_answer.isprintable()
    assert len(delivery.last_answer) <= 500


async def test_both_secrets_sign_after_a_rotation(world: ApiWorld, receiver: WebhookReceiver) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    rotated = (await client.post(f"/v1/webhooks/{webhook['id']}/rotate-secret")).json
    assert rotated["secret"] != webhook["secret"]
    assert (await client.post(f"/v1/webhooks/{webhook['id']}/test")).status == 202
    await send(world)

    [received] = receiver.received
    for secret in (webhook["secret"], rotated["secret"]):
        verify(received, secret)


async def test_a_failed_delivery_is_repeated_with_the_same_id_and_heeds_retry_after(
    world: ApiWorld, receiver: WebhookReceiver
) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    receiver.statuses = [500]
    await send(world)
    [delivery] = (await client.get(f"/v1/webhooks/{webhook['id']}/deliveries")).json["data"]
    assert (delivery["state"], delivery["attempts"], delivery["last_status"]) == ("pending", 1, 500)
    waits = datetime.fromisoformat(delivery["next_attempt_at"]) - datetime.now(UTC)
    assert timedelta(0) < waits < timedelta(seconds=RETRY_SECONDS[0] * 1.2)

    answer = await client.post(f"/v1/webhooks/{webhook['id']}/deliveries/{delivery['id']}/redeliver")
    assert answer.status == 202
    await send(world)
    assert [request.headers["webhook-id"] for request in receiver.received] == [delivery["id"]] * 2
    assert (await client.get(f"/v1/webhooks/{webhook['id']}/deliveries?state=delivered")).json["data"]


async def test_an_endpoint_that_is_gone_is_disabled_and_no_redirect_is_followed(
    world: ApiWorld, receiver: WebhookReceiver
) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    receiver.statuses = [302, 410]
    await send(world)
    [delivery] = (await client.get(f"/v1/webhooks/{webhook['id']}/deliveries")).json["data"]
    assert (delivery["state"], delivery["last_status"], len(receiver.received)) == ("pending", 302, 1)
    await client.post(f"/v1/webhooks/{webhook['id']}/deliveries/{delivery['id']}/redeliver")
    await send(world)

    found = (await client.get(f"/v1/webhooks/{webhook['id']}")).json
    assert (found["enabled"], "410" in found["disabled_reason"]) == (False, True)
    enabled = (await client.request("PATCH", f"/v1/webhooks/{webhook['id']}", json={"enabled": True})).json
    assert (enabled["enabled"], enabled["disabled_reason"]) == (True, "")


async def test_an_instance_that_dies_after_a_send_leads_to_a_second_one_with_the_same_id(
    world: ApiWorld, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    with monkeypatch.context() as patched:
        patched.setattr(world.store, "settle_webhook_deliveries", _die)
        await send(world)
    await world.store.change_webhook((await _stored(world, client, webhook)).id, enabled=True)
    await send(world)

    assert len({request.headers["webhook-id"] for request in receiver.received}) == 1
    assert len(receiver.received) == 2


async def test_private_addresses_are_refused_when_they_are_added_and_when_they_are_called(world: ApiWorld) -> None:
    client = await world.client()
    refused = {}
    for url in (
        "http://example.org/hook",
        "https://127.0.0.1/hook",
        "https://[::1]/hook",
        "https://169.254.169.254/latest",
        "https://user:pass@example.org/",
        "ftp://example.org/file",
        "https://",
        "not an address",
        "https://a..example.org/",
        f"https://{'a' * 64}.example.org/",
        "https://example.org/a b",
        "https://example.org/\r\nX-Header: y",
    ):
        refused[url] = (await client.post("/v1/webhooks", {"url": url})).status
    assert set(refused.values()) == {422}, refused

    webhook = await add(client, "https://localhost/hook")
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    await send(world)
    [delivery] = (await client.get(f"/v1/webhooks/{webhook['id']}/deliveries")).json["data"]
    assert "not a public address" in delivery["last_error"]


async def test_other_accounts_see_and_change_nothing(world: ApiWorld, receiver: WebhookReceiver) -> None:
    owner, other = await world.client(), await world.client()
    webhook = await add(owner, f"{receiver.url}/hook")
    delivery = (await owner.post(f"/v1/webhooks/{webhook['id']}/test")).json
    base = f"/v1/webhooks/{webhook['id']}"
    range_ = {"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"}
    calls: list[tuple[str, str, Any]] = [
        ("GET", base, None),
        ("PATCH", base, {"enabled": False}),
        ("DELETE", base, None),
        ("POST", f"{base}/rotate-secret", None),
        ("POST", f"{base}/test", None),
        ("GET", f"{base}/deliveries", None),
        ("POST", f"{base}/deliveries/{delivery['id']}/redeliver", None),
        ("POST", f"{base}/redeliver", range_),
    ]
    statuses = [(await other.request(method, path, json=body)).status for method, path, body in calls]

    assert statuses == [404] * len(calls)
    assert (await other.get("/v1/webhooks")).json["data"] == []
    assert (await owner.get(base)).json["enabled"]


async def test_events_of_a_time_are_sent_again(world: ApiWorld, receiver: WebhookReceiver) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook", events=["job.succeeded"])
    await client.order(wait=60)
    await send(world)
    assert types(receiver) == ["job.succeeded"]
    range_ = {"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z", "failed_only": False}

    assert (await client.post(f"/v1/webhooks/{webhook['id']}/redeliver", range_)).json == {"count": 1}
    await send(world)
    assert types(receiver) == ["job.succeeded"] * 2
    assert (await client.request("DELETE", f"/v1/webhooks/{webhook['id']}")).status == 204
    assert (await client.get("/v1/webhooks")).json["data"] == []


async def test_a_slow_endpoint_does_not_delay_another_one(world: ApiWorld, receiver: WebhookReceiver) -> None:
    client = await world.client()
    receiver.gate.clear()
    slow = await add(client, f"{receiver.url}/slow")
    await client.post(f"/v1/webhooks/{slow['id']}/test")
    await world.webhooks.round()
    await receiver.wait_for(1)
    receiver.gate.set()
    quick = await add(client, f"{receiver.url}/quick")
    await client.post(f"/v1/webhooks/{quick['id']}/test")
    await world.webhooks.round()

    assert (await receiver.wait_for(2))[1].path == "/quick"


async def test_one_event_probes_an_endpoint_that_fails_repeatedly_and_its_return_sends_all(
    world: ApiWorld, receiver: WebhookReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.domain.webhook.RETRY_SECONDS", (0,) * 9)
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    for number in range(25):
        await world.store.add_test_delivery((await _stored(world, client, webhook)).id, f"msg_{number}")
    receiver.statuses = [500] * 1000
    sent = []
    for _ in range(4):
        before = len(receiver.received)
        await send(world)
        sent.append(len(receiver.received) - before)
        await end_pause(world, client, webhook)
    assert sent == [20, 20, 1, 1]
    stored = await _stored(world, client, webhook)
    assert (stored.failures, stored.is_degraded) == (4, True)

    receiver.statuses = []
    before = len(receiver.received)
    await send(world)
    assert len(receiver.received) - before == 25, "full batches follow at once"
    assert (await _stored(world, client, webhook)).failures == 0


async def test_an_endpoint_that_took_nothing_for_days_is_disabled_though_no_single_event_was_tried_so_long(
    world: ApiWorld, receiver: WebhookReceiver
) -> None:
    client = await world.client()
    webhook = await add(client, f"{receiver.url}/hook")
    receiver.statuses = [500] * 10
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    await send(world)
    world.webhooks.now = lambda: datetime.now(UTC) + timedelta(seconds=FAILING_SECONDS_MAX + 60)
    await client.post(f"/v1/webhooks/{webhook['id']}/test")
    await send(world)

    found = (await client.get(f"/v1/webhooks/{webhook['id']}")).json
    assert (found["enabled"], found["disabled_reason"][:41]) == (False, "it has not taken an event for days: the e")


async def end_pause(world: ApiWorld, client: Client, webhook: dict[str, Any]) -> None:
    """Do what a test or a repeated delivery does, without either."""
    stored = await _stored(world, client, webhook)
    await cast(SqlDatabase, world.store).session.one("wake_webhook", id=stored.id)


async def _die(*_: object) -> None:
    raise ConnectionError("the instance died")


async def _stored(world: ApiWorld, client: Client, webhook: dict[str, Any]) -> Any:
    return await world.store.webhook(client.key.account_id, webhook["id"])
