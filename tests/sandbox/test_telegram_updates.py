"""Delivery of updates: webhooks with retries and queues, and the rules of getUpdates."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from genlock.sandbox.telegram.simulated_user import SimulatedUser
from genlock.sandbox.telegram.simulator import TelegramSimulator, running_telegram
from tests.changes import PATIENCE_SECONDS

KEYBOARD = {"inline_keyboard": [[{"text": "Menu", "callback_data": "menu"}]]}


class WebhookServer:
    """The bot's webhook: records requests and gives prepared answers."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: list[tuple[float, dict[str, Any], str]] = []
        self.answer: Callable[[dict[str, Any]], web.Response] = lambda _: web.Response()
        self._changed = asyncio.Condition()

    async def take(self, request: web.Request) -> web.Response:
        update = await request.json()
        secret = request.headers.get("X-Telegram-Bot-Api-Secret-Token", "")
        async with self._changed:
            self.seen.append((time.monotonic(), update, secret))
            self._changed.notify_all()
        return self.answer(update)

    async def wait(self, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: len(self.seen) >= count)

    @property
    def texts(self) -> list[str]:
        return [update["message"]["text"] for _, update, _ in self.seen if "message" in update]


@pytest.fixture
async def webhook() -> AsyncIterator[WebhookServer]:
    made = WebhookServer()
    app = web.Application()
    app.router.add_post("/hook", made.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield made
    await runner.cleanup()


async def call(telegram: TelegramSimulator, method: str, **arguments: Any) -> dict[str, Any]:
    url = f"{telegram.url}/bot{telegram.token}/{method}"
    async with aiohttp.ClientSession() as session, session.post(url, json=arguments) as response:
        said: dict[str, Any] = await response.json()
        return said


async def settled(telegram: TelegramSimulator) -> None:
    """Wait until nothing is pending."""
    await telegram.until(lambda: not telegram.state.updates.pending)


async def polling_begins(telegram: TelegramSimulator) -> None:
    await telegram.until(lambda: telegram.state.updates._poll)


async def test_updates_are_posted_with_the_secret_and_removed(
    telegram: TelegramSimulator, ann: SimulatedUser, webhook: WebhookServer
) -> None:
    await ann.say("before")
    said = await call(telegram, "setWebhook", url=webhook.url, secret_token="s3cret")
    await ann.say("after")
    await webhook.wait(2)
    await settled(telegram)

    assert said == {"ok": True, "result": True, "description": "Webhook was set"}
    assert webhook.texts == ["before", "after"]
    assert {secret for _, _, secret in webhook.seen} == {"s3cret"}
    assert (await call(telegram, "getWebhookInfo"))["result"]["pending_update_count"] == 0


async def test_setting_the_same_webhook_again_changes_nothing(
    telegram: TelegramSimulator, webhook: WebhookServer
) -> None:
    await call(telegram, "setWebhook", url=webhook.url)
    before = telegram.state.updates.webhook

    assert (await call(telegram, "setWebhook", url=webhook.url))["description"] == "Webhook is already set"
    assert telegram.state.updates.webhook is before
    assert (await call(telegram, "setWebhook", url=webhook.url, secret_token="x"))["description"] == "Webhook was set"
    assert (await call(telegram, "deleteWebhook"))["description"] == "Webhook was deleted"
    assert (await call(telegram, "deleteWebhook"))["description"] == "Webhook is already deleted"


async def test_a_failed_update_is_retried_with_growing_delays(
    telegram: TelegramSimulator, ann: SimulatedUser, webhook: WebhookServer
) -> None:
    webhook.answer = lambda _: web.Response(status=500 if len(webhook.seen) < 5 else 200)
    await call(telegram, "setWebhook", url=webhook.url)
    await ann.say("hello")
    await webhook.wait(5)
    await settled(telegram)

    times = [at for at, _, _ in webhook.seen]
    pauses = [(later - earlier) * 10 for earlier, later in itertools.pairwise(times)]
    assert all(pause >= least for pause, least in zip(pauses, [0, 2, 4, 8], strict=True))
    sender = telegram.state.updates.webhook
    assert sender is not None
    assert [sender.pause(attempt) for attempt in range(1, 7)] == [0, 2, 4, 8, 16, 32]
    assert all(60 <= sender.pause(attempt) <= 120 for attempt in range(8, 20))
    assert (await call(telegram, "getWebhookInfo"))["result"]["last_error_message"] == (
        "Wrong response from the webhook: 500"
    )


async def test_retry_after_is_obeyed(telegram: TelegramSimulator, ann: SimulatedUser, webhook: WebhookServer) -> None:
    webhook.answer = lambda _: (
        web.Response(status=503, headers={"Retry-After": "6"}) if len(webhook.seen) < 2 else web.Response()
    )
    await call(telegram, "setWebhook", url=webhook.url)
    await ann.say("hello")
    await webhook.wait(2)

    assert (webhook.seen[1][0] - webhook.seen[0][0]) * 10 >= 6


async def test_a_failing_update_holds_up_its_own_queue_only(
    telegram: TelegramSimulator, ann: SimulatedUser, webhook: WebhookServer
) -> None:
    """Messages of a chat wait for each other; other chats, and callback queries of the same user, do not."""
    bob = telegram.add_user("Bob")
    stuck = True
    webhook.answer = lambda update: web.Response(
        status=500 if stuck and update.get("message", {}).get("text") == "bad" else 200
    )
    sent = await call(telegram, "sendMessage", chat_id=ann.id, text="x", reply_markup=KEYBOARD)
    await call(telegram, "setWebhook", url=webhook.url)
    await ann.say("bad")
    await ann.say("behind")
    await bob.say("free")
    await ann.press(sent["result"]["message_id"], "menu")
    await webhook.wait(4)

    assert "behind" not in webhook.texts
    assert "free" in webhook.texts
    assert any("callback_query" in update for _, update, _ in webhook.seen)
    stuck = False
    await settled(telegram)
    assert webhook.texts[-2:] == ["bad", "behind"]


async def test_an_unreachable_webhook_is_reported(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    await call(telegram, "setWebhook", url="http://127.0.0.1:9/hook")
    await ann.say("hello")
    await telegram.until(lambda: "last_error_message" in telegram.state.updates.webhook_info(), seconds=30)
    info = (await call(telegram, "getWebhookInfo"))["result"]

    assert info["last_error_message"].startswith("Connection failed")
    assert info["pending_update_count"] == 1


async def test_a_webhook_response_may_contain_a_call(
    telegram: TelegramSimulator, ann: SimulatedUser, webhook: WebhookServer
) -> None:
    webhook.answer = lambda _: web.json_response({"method": "sendMessage", "chat_id": ann.id, "text": "at once"})
    await call(telegram, "setWebhook", url=webhook.url)
    await ann.say("hello")
    await ann.sees("at once")
    webhook.answer = lambda _: web.json_response({"method": "getMe"})
    await ann.say("again")
    await settled(telegram)

    assert telegram.calls("getMe") == []


async def test_callback_queries_expire_sooner_than_messages() -> None:
    now = [1_000_000.0]
    async with running_telegram(clock=lambda: now[0]) as telegram:
        ann = telegram.add_user("Ann")
        await call(telegram, "sendMessage", chat_id=ann.id, text="x", reply_markup=KEYBOARD)
        await ann.press(ann.last, "menu")
        await ann.say("hello")
        now[0] += 151
        updates = (await call(telegram, "getUpdates"))["result"]
        assert [list(update)[1] for update in updates] == ["message"]
        now[0] += 86_400
        assert (await call(telegram, "getUpdates", offset=1))["result"] == []


async def test_an_offset_confirms_earlier_updates(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    for number in range(5):
        await ann.say(str(number))
    first = (await call(telegram, "getUpdates", limit=2))["result"]
    again = (await call(telegram, "getUpdates", offset=first[0]["update_id"]))["result"]
    rest = (await call(telegram, "getUpdates", offset=first[1]["update_id"] + 1))["result"]
    last = (await call(telegram, "getUpdates", offset=-1))["result"]

    assert [update["message"]["text"] for update in first] == ["0", "1"]
    assert [update["message"]["text"] for update in again] == ["0", "1", "2", "3", "4"]
    assert [update["message"]["text"] for update in rest] == ["2", "3", "4"]
    assert [update["message"]["text"] for update in last] == ["4"]
    assert len(telegram.state.updates.pending) == 1


async def test_quick_polls_with_the_same_offset_get_one_update(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    for number in range(3):
        await ann.say(str(number))
    telegram.state.updates._speed = 0.01  # the second poll is quick on a slow machine, too
    assert len((await call(telegram, "getUpdates"))["result"]) == 3
    assert len((await call(telegram, "getUpdates"))["result"]) == 1


async def test_a_long_poll_ends_when_an_update_arrives(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    polling = asyncio.create_task(call(telegram, "getUpdates", timeout=30))
    await polling_begins(telegram)
    assert not polling.done()
    await ann.say("hello")
    async with asyncio.timeout(20):  # before the poll ends by itself
        assert len((await polling)["result"]) == 1


async def test_setting_a_webhook_ends_the_poll(telegram: TelegramSimulator) -> None:
    polling = asyncio.create_task(call(telegram, "getUpdates", timeout=30))
    await polling_begins(telegram)
    await call(telegram, "setWebhook", url="http://127.0.0.1:9/hook")

    said = await polling
    assert (said["error_code"], said["description"]) == (409, "Conflict: terminated by setWebhook request")


async def test_repeated_conflicts_are_answered_every_three_seconds(telegram: TelegramSimulator) -> None:
    await call(telegram, "setWebhook", url="http://127.0.0.1:9/hook")
    begun = time.monotonic()
    for _ in range(2):
        assert (await call(telegram, "getUpdates"))["error_code"] == 409

    assert time.monotonic() - begun >= 0.3


async def test_only_allowed_updates_are_sent(telegram: TelegramSimulator, ann: SimulatedUser) -> None:
    await call(telegram, "getUpdates", allowed_updates=["callback_query"])
    await ann.say("not allowed")
    assert telegram.state.updates.pending == {}
    await call(telegram, "getUpdates", allowed_updates=[])
    await ann.say("allowed")
    assert len(telegram.state.updates.pending) == 1


async def test_pending_updates_can_be_dropped(
    telegram: TelegramSimulator, ann: SimulatedUser, webhook: WebhookServer
) -> None:
    await ann.say("old")
    await call(telegram, "setWebhook", url=webhook.url, drop_pending_updates=True)
    await ann.say("new")
    await webhook.wait(1)

    assert webhook.texts == ["new"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"url": "ftp://example.org"}, "bad webhook: An HTTPS URL must be provided for webhook"),
        ({"url": "https://example.org", "secret_token": "a b"}, "secret token contains unallowed characters"),
        ({"url": "https://example.org", "secret_token": "a" * 257}, "secret token is too long"),
    ],
)
async def test_a_bad_webhook_is_refused(telegram: TelegramSimulator, arguments: dict[str, Any], text: str) -> None:
    assert (await call(telegram, "setWebhook", **arguments))["description"] == f"Bad Request: {text}"
