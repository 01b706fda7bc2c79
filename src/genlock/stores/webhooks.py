"""Webhooks of API clients, and the outbox of what is sent to them."""

from collections.abc import Sequence
from datetime import datetime
from time import monotonic
from typing import Any

from genlock.domain.place import microseconds
from genlock.domain.queued_message import QueuedMessage
from genlock.domain.webhook import DeliveryState, NewWebhook, Webhook, WebhookAttempt, WebhookDelivery, WebhookEvent
from genlock.stores.batch import Item
from genlock.stores.due_scan import FULL_SCAN_SECONDS
from genlock.stores.rows import Row, message_params, not_null
from genlock.stores.session import Session, Subject

#: deliveries that one statement makes due again
STEP = 500


#: a full search for due deliveries that takes longer is not repeated for FULL_SCAN_SECONDS
SLOW_SCAN_SECONDS = 0.1


class Webhooks(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: when the next full search is due; until then only deliveries that became due lately are found
        self._next_full_scan = 0.0
        #: the same for each endpoint whose full search was slow, with the time of its oldest due delivery
        self._first_due: dict[int, tuple[float, datetime]] = {}

    async def add_webhook(self, webhook: NewWebhook, most: int) -> Webhook | None:
        rows = await self.session.one(
            "add_webhook",
            account_id=webhook.account_id,
            public_id=webhook.public_id,
            url=webhook.url,
            events=_dump_events(webhook.events),
            description=webhook.description,
            secret=webhook.secret,
            most=most,
        )
        return self._first_webhook(rows)

    async def webhooks(self, account_id: int) -> Sequence[Webhook]:
        return [self._read_webhook(row) for row in await self.session.one("account_webhooks", account_id=account_id)]

    async def webhook(self, account_id: int, public_id: str) -> Webhook | None:
        return self._first_webhook(await self.session.one("webhook", account_id=account_id, public_id=public_id))

    async def change_webhook(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        events: frozenset[WebhookEvent] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
    ) -> Webhook | None:
        filtered = None if events is None else _dump_events(events)
        rows = await self.session.one(
            "change_webhook", id=webhook_id, url=url, events=filtered, description=description, enabled=enabled
        )
        return self._first_webhook(rows)

    async def remove_webhook(self, webhook_id: int) -> bool:
        return bool(await self.session.one("remove_webhook", id=webhook_id))

    async def rotate_webhook_secret(self, webhook: Webhook, secret: str, overlap_seconds: float) -> Webhook | None:
        rows = await self.session.one(
            "rotate_webhook_secret",
            id=webhook.id,
            secret_number=webhook.secret_number,
            secret=secret,
            overlap_seconds=overlap_seconds,
        )
        return self._first_webhook(rows)

    async def webhooks_after(self, webhook_id: int, limit: int) -> Sequence[Webhook]:
        return [
            self._read_webhook(row) for row in await self.session.one("webhooks_after", after=webhook_id, limit=limit)
        ]

    async def seal_webhook_secrets(self, webhook: Webhook, secret: str, previous_secret: str) -> bool:
        rows = await self.session.one(
            "seal_webhook_secrets",
            id=webhook.id,
            secret_number=webhook.secret_number,
            secret_before=webhook.secret,
            secret=secret,
            previous_secret=previous_secret,
        )
        return bool(rows)

    async def disable_webhook(self, webhook_id: int, reason: str, message: QueuedMessage | None = None) -> bool:
        queued = message_params(message)
        return bool(await self.session.one("disable_webhook", id=webhook_id, reason=reason, **queued))

    # the outbox

    async def claim_webhooks(self, owner: str, *, limit: int, degraded: int, hold_seconds: float) -> Sequence[Webhook]:
        """Claim endpoints with due deliveries. After a slow full search, only recent deliveries are looked for a while.

        It is slow on PostgreSQL while a transaction has been open for long: the index keeps the entries of everything
        that was delivered since (see `DueScan`). A look at each endpoint for what became due lately is still fast.
        """
        began = monotonic()
        is_full = began >= self._next_full_scan
        try:
            rows = await self.session.one(
                "claim_webhooks", owner=owner, limit=limit, degraded=degraded, hold_seconds=hold_seconds, full=is_full
            )
        finally:  # also when it was cut by its time-out
            if is_full and self._is_slow(began):
                self._next_full_scan = began + FULL_SCAN_SECONDS
        return [self._read_webhook(row) for row in rows]

    async def due_webhook_deliveries(self, webhook_id: int, limit: int) -> Sequence[WebhookDelivery]:
        """Return due deliveries. After a slow full search, the next ones begin at the first delivery that it found."""
        began = monotonic()
        full_at, since = self._first_due.get(webhook_id, (began, None))
        if began >= full_at:
            since = None
        rows = await self.session.one("due_webhook_deliveries", webhook_id=webhook_id, limit=limit, due_since=since)
        if since is None:
            self._first_due.pop(webhook_id, None)
            if rows and self._is_slow(began):
                self._first_due[webhook_id] = (began + FULL_SCAN_SECONDS, rows[0]["due_at"])
        return [self._read_webhook_delivery(row) for row in rows]

    def _is_slow(self, began: float) -> bool:
        """Whether a full search that began at this time was so slow that it is not repeated for a while."""
        spares = self.session.keeps_dead_entries and not self.session.has_own_clock
        return spares and monotonic() - began > SLOW_SCAN_SECONDS

    async def due_webhook_tests(self, webhook_id: int, limit: int) -> Sequence[WebhookDelivery]:
        rows = await self.session.one("due_webhook_tests", webhook_id=webhook_id, limit=limit)
        return [self._read_webhook_delivery(row) for row in rows]

    async def settle_webhook_deliveries(self, attempts: Sequence[WebhookAttempt]) -> None:
        items = [
            Item(
                attempt.delivery_id,
                {},
                {
                    "delivery_id": attempt.delivery_id,
                    "webhook_id": attempt.webhook_id,
                    "state": attempt.state.value,
                    "after": attempt.after,
                    "status": attempt.status,
                    "error": attempt.error,
                    "answer": attempt.answer,
                },
                None,
            )
            for attempt in attempts
        ]
        if items:
            await self.session.rows("settle_webhook_deliveries", items)

    async def release_webhook(
        self, webhook_id: int, owner: str, pause_seconds: float, *, failed: bool | None, slow: bool | None = None
    ) -> None:
        await self.session.one(
            "release_webhook", id=webhook_id, owner=owner, pause_seconds=pause_seconds, failed=failed, slow=slow
        )

    async def webhook_deliveries(
        self, webhook_id: int, *, state: DeliveryState | None, before: str | None, limit: int
    ) -> Sequence[WebhookDelivery]:
        page: dict[str, Any] = {"webhook_id": webhook_id, "limit": limit}
        if state is None:
            rows = await self.session.one("webhook_deliveries", before=before, **page)
        elif before is None:
            rows = await self.session.one("webhook_deliveries_in_state", state=state.value, **page)
        else:
            name = "webhook_deliveries_in_state_before"
            rows = await self.session.one(name, state=state.value, before=before, **page)
        return [self._read_webhook_delivery(row) for row in rows]

    async def webhook_delivery(self, webhook_id: int, public_id: str) -> WebhookDelivery | None:
        rows = await self.session.one("webhook_delivery", webhook_id=webhook_id, public_id=public_id)
        return self._read_webhook_delivery(rows[0]) if rows else None

    async def job_webhook_deliveries(self, job_id: int, limit: int) -> Sequence[WebhookDelivery]:
        rows = await self.session.one("job_webhook_deliveries", job_id=job_id, limit=limit)
        return [self._read_webhook_delivery(row) for row in rows]

    async def count_waiting_deliveries(self, webhook_id: int, limit: int) -> int:
        return int((await self.session.one("count_waiting_deliveries", webhook_id=webhook_id, limit=limit))[0]["count"])

    async def add_test_delivery(self, webhook_id: int, public_id: str) -> WebhookDelivery | None:
        rows = await self.session.one("add_test_delivery", webhook_id=webhook_id, public_id=public_id)
        await self.session.one("wake_webhook", id=webhook_id)
        return self._read_webhook_delivery(rows[0]) if rows else None

    async def redeliver(self, webhook_id: int, public_id: str) -> WebhookDelivery | None:
        rows = await self.session.one("redeliver", webhook_id=webhook_id, public_id=public_id)
        if rows:
            await self.session.one("wake_webhook", id=webhook_id)
        return self._read_webhook_delivery(rows[0]) if rows else None

    async def redeliver_between(
        self, webhook_id: int, since: datetime, until: datetime, *, failed_only: bool, limit: int
    ) -> int:
        count = 0
        for state in (DeliveryState.FAILED,) if failed_only else (DeliveryState.FAILED, DeliveryState.DELIVERED):
            count += await self._redeliver(webhook_id, state, since, until, limit - count)
        if count:
            await self.session.one("wake_webhook", id=webhook_id)
        return count

    async def _redeliver(
        self, webhook_id: int, state: DeliveryState, since: datetime, until: datetime, limit: int
    ) -> int:
        """Make deliveries due again in short statements: each takes its deliveries out of the state."""
        count, step = 0, STEP
        while count < limit and step == STEP:
            rows = await self.session.one(
                "redeliver_between",
                webhook_id=webhook_id,
                state=state.value,
                since_us=microseconds(since),
                until_us=microseconds(until),
                limit=min(STEP, limit - count),
            )
            step = len(rows)
            count += step
        return count

    def _first_webhook(self, rows: Sequence[Row]) -> Webhook | None:
        return self._read_webhook(rows[0]) if rows else None

    def _read_webhook(self, row: Row) -> Webhook:
        time = self.session.time
        return Webhook(
            id=row["id"],
            account_id=row["account_id"],
            public_id=row["public_id"],
            url=row["url"],
            events=frozenset(WebhookEvent(word) for word in row["events"].split()),
            description=row["description"],
            enabled=bool(row["enabled"]),
            disabled_reason=row["disabled_reason"],
            secret_number=row["secret_number"],
            previous_secret_until=time(row["previous_secret_until"]),
            created_at=not_null(time(row["created_at"])),
            secret=row["secret"],
            previous_secret=row["previous_secret"],
            failures=row["failures"],
            failing_since=time(row["failing_since"]),
            slow=bool(row["slow"]),
        )

    def _read_webhook_delivery(self, row: Row) -> WebhookDelivery:
        time = self.session.time
        return WebhookDelivery(
            id=row["id"],
            public_id=row["public_id"],
            webhook_id=row["webhook_id"],
            job_id=row["job_id"],
            event=WebhookEvent(row["event"]),
            event_at=not_null(time(row["event_at"])),
            state=DeliveryState(row["state"]),
            attempts=row["attempts"],
            due_at=time(row["due_at"]),
            last_status=row["last_status"],
            last_error=row["last_error"],
            delivered_at=time(row["delivered_at"]),
            last_answer=row["last_answer"],
        )


def _dump_events(events: frozenset[WebhookEvent]) -> str:
    """Return the words between spaces, so that a search for one word finds no other."""
    return " ".join(["", *sorted(events), ""]) if events else " "
