"""Sends the events of the outbox to the endpoints of API clients, as Standard Webhooks, at least once."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from genlock.api.job_view import JobView
from genlock.api.webhook_secrets import SecretUnreadable, WebhookSecrets
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.domain.webhook import (
    DeliveryState,
    Webhook,
    WebhookAttempt,
    WebhookDelivery,
    retry_after,
    sign,
)
from genlock.media.download import AddressRefused, FetchFailed
from genlock.media.post import PostAnswer, Posts
from genlock.ports import Database, Observer

PERIOD_SECONDS = 1.0
#: endpoints that one instance serves at the same time
ENDPOINTS_AT_ONCE = 20
#: events that are sent to one endpoint before it is another one's turn, and how many of them at the same time
BATCH = 20
SENDS_AT_ONCE = 5
#: longer than a batch of time-outs takes
HOLD_SECONDS = 90.0
#: pause of an endpoint to which nothing could be delivered
PAUSE_SECONDS = 5.0
#: pause of an endpoint whose secret cannot be read
UNREADABLE_PAUSE_SECONDS = 60.0
RETRY_AFTER_MAX = 86_400.0
BODY_BYTES_MAX = 20_000
GONE = 410
_OK = range(200, 300)

#: tells the owner of an account; returns whether that reached anyone
TellOwner = Callable[[int, Webhook, str], Awaitable[None]]


@dataclass(kw_only=True)
class WebhookSender:
    store: Database
    posts: Posts
    view: JobView
    secrets: WebhookSecrets
    #: our address as clients see it
    base_url: str
    observer: Observer
    now: Callable[[], datetime]
    rng: Random
    tell_owner: TellOwner
    _running: set[asyncio.Task[None]] = field(default_factory=set)

    async def round(self) -> None:
        """Take endpoints with due events and begin to serve them. A slow one does not delay the next round."""
        free = ENDPOINTS_AT_ONCE - len(self._running)
        for webhook in await self.store.claim_webhooks(free, HOLD_SECONDS) if free > 0 else ():
            task = asyncio.get_running_loop().create_task(self._serve(webhook))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until the endpoints that were claimed have been served."""
        while self._running:
            await asyncio.wait(self._running)

    async def _serve(self, webhook: Webhook) -> None:
        pause = PAUSE_SECONDS
        try:
            pause = await self._send_batch(webhook)
        except Exception as error:  # noqa: BLE001 - what was not settled is sent again
            self.observer.event(Event.STAGE_ERROR, step="send webhooks", error=repr(error))
        finally:
            await self._release(webhook, pause)

    async def _release(self, webhook: Webhook, pause: float) -> None:
        try:
            await self.store.release_webhook(webhook.id, pause)
        except StoreError as error:  # any instance claims it again when the hold has passed
            self.observer.event(Event.STAGE_ERROR, step="release a webhook", error=repr(error))

    async def _send_batch(self, webhook: Webhook) -> float:
        """Send due events; return the seconds until the endpoint is served again."""
        slots = asyncio.Semaphore(SENDS_AT_ONCE)

        async def attempt(delivery: WebhookDelivery) -> WebhookAttempt:
            async with slots:
                return await self._attempt(webhook, delivery, signing)

        try:
            signing = self.secrets.signing(webhook, self.now())
        except SecretUnreadable:  # its receiver could not verify anything; the check of secrets reports it
            return UNREADABLE_PAUSE_SECONDS
        due = self.store.due_webhook_deliveries if webhook.enabled else self.store.due_webhook_tests
        deliveries = await due(webhook.id, BATCH)
        attempts = await asyncio.gather(*map(attempt, deliveries))
        await self.store.settle_webhook_deliveries(attempts)
        await self._disable_if_needed(webhook, attempts)
        is_delivered = any(one.state is DeliveryState.DELIVERED for one in attempts)
        return 0.0 if is_delivered or not attempts else PAUSE_SECONDS

    async def _disable_if_needed(self, webhook: Webhook, attempts: list[WebhookAttempt]) -> None:
        reason = ""
        if any(one.status == GONE for one in attempts):
            reason = "it answered 410 Gone"
        elif failed := next((one for one in attempts if one.state is DeliveryState.FAILED), None):
            reason = f"it has not taken an event for days: {failed.error}"
        if reason and await self.store.disable_webhook(webhook.id, reason[:300]):
            self.observer.event(Event.API_WEBHOOK_DISABLED, account=webhook.account_id, reason=reason)
            await self.tell_owner(webhook.account_id, webhook, reason)

    async def _attempt(self, webhook: Webhook, delivery: WebhookDelivery, signing: list[bytes]) -> WebhookAttempt:
        body = await self._body(delivery)
        try:
            answer = await self.posts.post(webhook.url, body, self._headers(delivery, body, signing))
        except (AddressRefused, FetchFailed) as error:
            return self._failure(delivery, None, str(error))
        if answer.status in _OK:
            return WebhookAttempt(
                delivery_id=delivery.id, state=DeliveryState.DELIVERED, status=answer.status, answer=answer.text
            )
        return self._failure(delivery, answer, f"the endpoint answered {answer.status}")

    def _failure(self, delivery: WebhookDelivery, answer: PostAnswer | None, error: str) -> WebhookAttempt:
        after = retry_after(delivery.attempts + 1, self.rng.random())
        status, text = (answer.status, answer.text) if answer else (None, "")
        if after is None or status == GONE:
            return WebhookAttempt(
                delivery_id=delivery.id, state=DeliveryState.FAILED, status=status, error=error[:300], answer=text
            )
        wished = _seconds(answer.headers.get("Retry-After", "")) if answer else 0.0
        return WebhookAttempt(
            delivery_id=delivery.id,
            state=DeliveryState.PENDING,
            after=max(after, min(wished, RETRY_AFTER_MAX)),
            status=status,
            error=error[:300],
            answer=text,
        )

    async def _body(self, delivery: WebhookDelivery) -> bytes:
        data: dict[str, object] = {}
        if delivery.job_id is not None and (job := await self.store.api_job(delivery.job_id)) is not None:
            data = self.view.answer(job, self.base_url).model_dump(mode="json", exclude={"input"})
            for result in data["results"]:  # type: ignore[attr-defined]
                result.pop("text")
        content = _dump(delivery, data)
        if len(content) > BODY_BYTES_MAX:
            content = _dump(delivery, {**data, "results": [], "metadata": {}})
        return content

    def _headers(self, delivery: WebhookDelivery, body: bytes, signing: list[bytes]) -> dict[str, str]:
        timestamp = int(self.now().timestamp())
        signatures = [sign(secret, delivery.public_id, timestamp, body) for secret in signing]
        return {
            "Content-Type": "application/json",
            "webhook-id": delivery.public_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": " ".join(signatures),
        }


def _dump(delivery: WebhookDelivery, data: dict[str, object]) -> bytes:
    body = {"type": delivery.event.value, "timestamp": delivery.event_at.isoformat(), "data": data}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _seconds(text: str) -> float:
    """Return the seconds of a Retry-After header; 0 for a date or anything else."""
    return float(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0.0  # noqa: PLR2004
