"""Sends the events of the outbox to the endpoints of API clients, as Standard Webhooks, at least once."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from genlock.api.job_view import JobView
from genlock.api.webhook_owners import WebhookOwners
from genlock.api.webhook_secrets import SecretUnreadable, WebhookSecrets
from genlock.domain.errors import StoreError
from genlock.domain.events import Event
from genlock.domain.webhook import (
    FAILING_SECONDS_MAX,
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
#: endpoints that one instance serves at the same time; those that are slow or fail repeatedly have their own few places
ENDPOINTS_AT_ONCE = 20
DEGRADED_AT_ONCE = 5
#: events that are read at once for an endpoint, and how many of them are sent at the same time
BATCH = 20
SENDS_AT_ONCE = 5
#: no further event is sent to an endpoint after this time before it is another one's turn
SERVE_SECONDS = 5.0
#: longer than SERVE_SECONDS and the longest answer take
HOLD_SECONDS = 60.0
#: pause of an endpoint to which nothing could be delivered, doubled with each further failure
PAUSE_SECONDS = 5.0
PAUSE_SECONDS_MAX = 300.0
#: an endpoint that takes longer than this to answer is slow
SLOW_SECONDS = 3.0
#: pause of an endpoint whose secret cannot be read
UNREADABLE_PAUSE_SECONDS = 60.0
RETRY_AFTER_MAX = 86_400.0
BODY_BYTES_MAX = 20_000
GONE = 410
_OK = range(200, 300)


@dataclass(kw_only=True)
class _Served:
    """What was sent to an endpoint while an instance held it."""

    sent: int = 0
    delivered: int = 0
    longest: float = 0.0

    @property
    def failed(self) -> bool | None:
        return self.delivered == 0 if self.sent else None

    @property
    def slow(self) -> bool | None:
        return self.longest > SLOW_SECONDS if self.sent else None


@dataclass(kw_only=True)
class WebhookSender:
    store: Database
    #: the id of this instance, under which it holds endpoints
    instance: str
    posts: Posts
    view: JobView
    secrets: WebhookSecrets
    #: our address as clients see it
    base_url: str
    observer: Observer
    now: Callable[[], datetime]
    rng: Random
    owners: WebhookOwners
    #: whether the endpoint is degraded, by the task that serves it
    _running: dict[asyncio.Task[None], bool] = field(default_factory=dict)

    async def round(self) -> None:
        """Take endpoints with due events and begin to serve them. A slow one does not delay the next round."""
        degraded = sum(self._running.values())
        free, free_degraded = ENDPOINTS_AT_ONCE - (len(self._running) - degraded), DEGRADED_AT_ONCE - degraded
        if free <= 0 and free_degraded <= 0:
            return
        for webhook in await self.store.claim_webhooks(
            self.instance, limit=max(0, free), degraded=max(0, free_degraded), hold_seconds=HOLD_SECONDS
        ):
            task = asyncio.get_running_loop().create_task(self._serve(webhook))
            self._running[task] = webhook.is_degraded
            task.add_done_callback(self._running.pop)

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until the endpoints that were claimed have been served."""
        while self._running:
            await asyncio.wait(self._running)

    async def _serve(self, webhook: Webhook) -> None:
        served = _Served()
        until = asyncio.get_running_loop().time() + SERVE_SECONDS
        pause = PAUSE_SECONDS
        try:
            signing = self.secrets.signing(webhook, self.now())
            while await self._send_batch(webhook, signing, served, until):
                pass
            pause = min(PAUSE_SECONDS * 2 ** min(webhook.failures, 10), PAUSE_SECONDS_MAX) if served.failed else 0.0
        except SecretUnreadable:  # its receiver could not verify anything; the check of secrets reports it
            pause = UNREADABLE_PAUSE_SECONDS
        except Exception as error:  # noqa: BLE001 - what was not settled is sent again
            self.observer.event(Event.STAGE_ERROR, step="send webhooks", error=repr(error))
        finally:
            await self._release(webhook, pause, served)

    async def _release(self, webhook: Webhook, pause: float, served: _Served) -> None:
        try:
            await self.store.release_webhook(webhook.id, self.instance, pause, failed=served.failed, slow=served.slow)
        except StoreError as error:  # any instance claims it again when the hold has passed
            self.observer.event(Event.STAGE_ERROR, step="release a webhook", error=repr(error))

    async def _send_batch(self, webhook: Webhook, signing: list[bytes], served: _Served, until: float) -> bool:
        """Send due events until a time; return whether to look for more: the next events of these jobs are due now."""
        slots, clock = asyncio.Semaphore(SENDS_AT_ONCE), asyncio.get_running_loop().time

        async def attempt(delivery: WebhookDelivery) -> WebhookAttempt | None:
            async with slots:
                if (began := clock()) >= until:
                    return None
                made = await self._attempt(webhook, delivery, signing)
                served.longest = max(served.longest, clock() - began)
                return made

        # One event shows whether an endpoint that failed repeatedly is back.
        limit = 1 if webhook.failures > 1 and not served.delivered else BATCH
        due = self.store.due_webhook_deliveries if webhook.enabled else self.store.due_webhook_tests
        deliveries = await due(webhook.id, limit)
        attempts = [outcome for outcome in await asyncio.gather(*map(attempt, deliveries)) if outcome is not None]
        await self.store.settle_webhook_deliveries(attempts)
        delivered = sum(outcome.state is DeliveryState.DELIVERED for outcome in attempts)
        served.sent += len(attempts)
        served.delivered += delivered
        await self._disable_if_needed(webhook, attempts, has_failed=bool(served.failed))
        return delivered > 0 and clock() < until

    async def _disable_if_needed(self, webhook: Webhook, attempts: list[WebhookAttempt], *, has_failed: bool) -> None:
        reason = ""
        if any(attempt.status == GONE for attempt in attempts):
            reason = "it answered 410 Gone"
        elif failed := next((attempt for attempt in attempts if attempt.state is DeliveryState.FAILED), None):
            reason = f"it has not taken an event for days: {failed.error}"
        elif has_failed and self._has_failed_for_days(webhook):
            reason = f"it has not taken an event for days: {attempts[0].error}"
        if reason:
            await self.owners.disable(webhook, reason)

    def _has_failed_for_days(self, webhook: Webhook) -> bool:
        since = webhook.failing_since
        return since is not None and (self.now() - since).total_seconds() > FAILING_SECONDS_MAX

    async def _attempt(self, webhook: Webhook, delivery: WebhookDelivery, signing: list[bytes]) -> WebhookAttempt:
        body = await self._body(delivery)
        try:
            answer = await self.posts.post(webhook.url, body, self._headers(delivery, body, signing))
        except (AddressRefused, FetchFailed) as error:
            return self._failure(delivery, None, str(error))
        if answer.status in _OK:
            return WebhookAttempt(
                delivery_id=delivery.id,
                webhook_id=delivery.webhook_id,
                state=DeliveryState.DELIVERED,
                status=answer.status,
                answer=answer.text,
            )
        return self._failure(delivery, answer, f"the endpoint answered {answer.status}")

    def _failure(self, delivery: WebhookDelivery, answer: PostAnswer | None, error: str) -> WebhookAttempt:
        after = retry_after(delivery.attempts + 1, self.rng.random())
        status, text = (answer.status, answer.text) if answer else (None, "")
        if after is None or status == GONE:
            return WebhookAttempt(
                delivery_id=delivery.id,
                webhook_id=delivery.webhook_id,
                state=DeliveryState.FAILED,
                status=status,
                error=error[:300],
                answer=text,
            )
        wished = _seconds(answer.headers.get("Retry-After", "")) if answer else 0.0
        return WebhookAttempt(
            delivery_id=delivery.id,
            webhook_id=delivery.webhook_id,
            state=DeliveryState.PENDING,
            after=max(after, min(wished, RETRY_AFTER_MAX)),
            status=status,
            error=error[:300],
            answer=text,
        )

    async def _body(self, delivery: WebhookDelivery) -> bytes:
        data: dict[str, Any] = {}
        if delivery.job_id is not None and (job := await self.store.api_job(delivery.job_id)) is not None:
            data = self.view.answer(job, self.base_url).model_dump(mode="json", exclude={"input"})
            for result in data["results"]:
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
