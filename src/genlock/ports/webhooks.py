"""Webhooks of API clients: their endpoints, and the outbox of what is sent to them.

The events of a job are written in the transaction that changes the job.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from genlock.domain.queued_message import QueuedMessage
from genlock.domain.webhook import DeliveryState, NewWebhook, Webhook, WebhookAttempt, WebhookDelivery, WebhookEvent


class WebhookStore(Protocol):
    async def add_webhook(self, webhook: NewWebhook, most: int) -> Webhook | None:
        """Store an endpoint. None: the account has `most` endpoints."""

    async def webhooks(self, account_id: int) -> Sequence[Webhook]: ...

    async def webhook(self, account_id: int, public_id: str) -> Webhook | None: ...

    async def change_webhook(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        events: frozenset[WebhookEvent] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
    ) -> Webhook | None:
        """Change what is given. Enabling clears the reason for which it was disabled."""

    async def remove_webhook(self, webhook_id: int) -> bool:
        """Delete an endpoint. Its deliveries are pruned later. False: it was deleted before."""

    async def rotate_webhook_secret(self, webhook: Webhook, secret: str, overlap_seconds: float) -> Webhook | None:
        """Store a new sealed secret. None: the endpoint is gone, or was rotated since it was read."""

    async def webhooks_after(self, webhook_id: int, limit: int) -> Sequence[Webhook]:
        """Return endpoints of all accounts after an id, in the order of their ids."""

    async def seal_webhook_secrets(self, webhook: Webhook, secret: str, previous_secret: str) -> bool:
        """Replace the sealed secrets of an endpoint. False: something has changed them since it was read."""

    async def disable_webhook(self, webhook_id: int, reason: str, message: QueuedMessage | None = None) -> bool:
        """Disable an endpoint, and queue the message to its owner in the same commit. False: it was disabled before."""

    # the outbox

    async def claim_webhooks(self, owner: str, *, limit: int, degraded: int, hold_seconds: float) -> Sequence[Webhook]:
        """Return enabled endpoints with due deliveries, and hide them from other instances for a while.

        `degraded` is the limit for those that were slow or failed repeatedly, `limit` for all others.
        """

    async def due_webhook_deliveries(self, webhook_id: int, limit: int) -> Sequence[WebhookDelivery]:
        """Return due deliveries, oldest first, of each job only the first one that is pending."""

    async def due_webhook_tests(self, webhook_id: int, limit: int) -> Sequence[WebhookDelivery]:
        """Return due test events, oldest first: a disabled endpoint gets these only."""

    async def settle_webhook_deliveries(self, attempts: Sequence[WebhookAttempt]) -> None:
        """Record what attempts led to. Later events of the same jobs wait for the next attempt, or are due now."""

    async def release_webhook(
        self, webhook_id: int, owner: str, pause_seconds: float, *, failed: bool | None, slow: bool | None = None
    ) -> None:
        """Let any instance claim the endpoint again after a pause, if `owner` still holds it.

        `failed` tells whether nothing could be delivered, `slow` whether it answered slowly; None: nothing was sent.
        """

    async def webhook_deliveries(
        self, webhook_id: int, *, state: DeliveryState | None, before: str | None, limit: int
    ) -> Sequence[WebhookDelivery]:
        """Return deliveries, newest first, before the one with this public id."""

    async def webhook_delivery(self, webhook_id: int, public_id: str) -> WebhookDelivery | None: ...

    async def job_webhook_deliveries(self, job_id: int, limit: int) -> Sequence[WebhookDelivery]:
        """Return what was sent, or is to be sent, about a job to any endpoint, oldest first."""

    async def count_waiting_deliveries(self, webhook_id: int, limit: int) -> int:
        """Count what waits for an endpoint, up to `limit`."""

    async def add_test_delivery(self, webhook_id: int, public_id: str) -> WebhookDelivery | None:
        """Put a test event into the outbox of an endpoint, also of a disabled one, and end its pause.

        None: it is there already.
        """

    async def redeliver(self, webhook_id: int, public_id: str) -> WebhookDelivery | None:
        """Send one event again, whatever its state, and end the pause of the endpoint."""

    async def redeliver_between(
        self, webhook_id: int, since: datetime, until: datetime, *, failed_only: bool, limit: int
    ) -> int:
        """Send the settled events of a time again, oldest first, in short steps. Returns how many."""
