"""Webhooks of an account: its endpoints, what was sent to them, and what operators do about it."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

from starlette.responses import Response

from genlock.dashboard.job_links import url_host
from genlock.dashboard.page import PageContext, PageNotFound, PageRoute
from genlock.dashboard.pages.users import UsersPage
from genlock.dashboard.query import Query
from genlock.dashboard.roles import Permission
from genlock.domain.place import microseconds
from genlock.domain.user import User
from genlock.domain.webhook import MESSAGE_PREFIX, DeliveryState, Webhook, WebhookDelivery
from genlock.ports import Database

PATH = "/users/{account_id:int}/webhooks"
PAGE = 30
#: more waiting events than these are not counted
COUNTED_MAX = 1000
#: events that one press sends again
REDELIVER_MAX = 10_000
_DAYS_MAX = 31


class StateFilter(StrEnum):
    ALL = "all"
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    webhook: Webhook
    #: the whole address; only its host for viewers who may not see what users wrote
    url: str
    #: events that wait, up to COUNTED_MAX
    waiting: int
    newest: WebhookDelivery | None
    last_delivered: datetime | None
    #: no key of the settings opens its secret, so that nothing is sent
    is_secret_lost: bool


class WebhooksPage:
    def __init__(self, store: Database, users: UsersPage, is_secret_lost: Callable[[Webhook], bool]) -> None:
        self._store = store
        self._users = users
        self._is_secret_lost = is_secret_lost

    def routes(self) -> list[PageRoute]:
        post = partial(PageRoute, permission=Permission.HANDLE_USERS, method="POST")
        return [
            PageRoute(path=PATH, handler=self._show, permission=Permission.VIEW),
            post(path=f"{PATH}/test", handler=self._test),
            post(path=f"{PATH}/enable", handler=self._enable),
            post(path=f"{PATH}/disable", handler=self._disable),
            post(path=f"{PATH}/redeliver", handler=self._redeliver),
            post(path=f"{PATH}/redeliver-failed", handler=self._redeliver_failed),
        ]

    async def _show(self, context: PageContext) -> Response:
        user = await self._users.find(context)
        query = Query(context, ("endpoint", "state", "before"))
        webhooks = await self._store.webhooks(user.account_id)
        wanted, state = query.text("endpoint"), query.choice("state", StateFilter, StateFilter.ALL)
        chosen = next(
            (webhook for webhook in webhooks if webhook.public_id == wanted), webhooks[0] if webhooks else None
        )
        before = query.text("before") or None
        deliveries = await self._deliveries(chosen, state, before) if chosen else []
        return context.render(
            "user_webhooks.html",
            user=user,
            tab="webhooks",
            endpoints=[await self._endpoint(context, webhook) for webhook in webhooks],
            chosen=chosen,
            deliveries=deliveries,
            seen=_seen,
            state=state,
            states=[*StateFilter],
            older=deliveries[-1].public_id if len(deliveries) == PAGE else None,
            at_start=before is None,
            counted_max=COUNTED_MAX,
            days_max=_DAYS_MAX,
            problems=query.problems,
        )

    async def _deliveries(self, webhook: Webhook, state: StateFilter, before: str | None) -> list[WebhookDelivery]:
        wanted = None if state is StateFilter.ALL else DeliveryState(state)
        return list(await self._store.webhook_deliveries(webhook.id, state=wanted, before=before, limit=PAGE))

    async def _endpoint(self, context: PageContext, webhook: Webhook) -> Endpoint:
        read = partial(self._store.webhook_deliveries, webhook.id, before=None, limit=1)
        delivered = await read(state=DeliveryState.DELIVERED)
        return Endpoint(
            webhook=webhook,
            url=webhook.url if context.can(Permission.SEE_PROMPTS) else url_host(webhook.url),
            waiting=await self._store.count_waiting_deliveries(webhook.id, COUNTED_MAX),
            newest=next(iter(await read(state=None)), None),
            last_delivered=delivered[0].delivered_at if delivered else None,
            is_secret_lost=self._is_secret_lost(webhook),
        )

    # actions

    async def _find(self, context: PageContext) -> tuple[User, Webhook]:
        """Return the user in the address and the endpoint in the form. Raises PageNotFound."""
        user = await self._users.find(context)
        webhook = await self._store.webhook(user.account_id, context.form["endpoint"][:80])
        if webhook is None:
            raise PageNotFound("dashboard.webhooks.no_endpoint")
        return user, webhook

    async def _test(self, context: PageContext) -> Response:
        """Send a test event, once per form."""
        user, webhook = await self._find(context)
        form = f"{context.operator.id} {context.request_key} {webhook.public_id}"
        public_id = MESSAGE_PREFIX + hashlib.sha256(form.encode()).hexdigest()[:32]
        if await self._store.add_test_delivery(webhook.id, public_id) is not None:
            await self._audit(context, "test_webhook", webhook, delivery=public_id)
        return self._back(context, user, webhook, "tested")

    async def _enable(self, context: PageContext) -> Response:
        user, webhook = await self._find(context)
        if not webhook.enabled and await self._store.change_webhook(webhook.id, enabled=True) is not None:
            await self._audit(context, "enable_webhook", webhook, reason=webhook.disabled_reason)
        return self._back(context, user, webhook, "enabled")

    async def _disable(self, context: PageContext) -> Response:
        user, webhook = await self._find(context)
        if await self._store.disable_webhook(webhook.id, "an operator has disabled it"):
            await self._audit(context, "disable_webhook", webhook)
        return self._back(context, user, webhook, "disabled")

    async def _redeliver(self, context: PageContext) -> Response:
        """Send one event again, if nothing has happened to it since the page was made."""
        user, webhook = await self._find(context)
        delivery = await self._store.webhook_delivery(webhook.id, context.form["delivery"][:80])
        if delivery is None:
            raise PageNotFound("dashboard.webhooks.no_delivery")
        if _seen(delivery) != context.form["seen"]:
            return self._back(context, user, webhook, "changed", tone="bad")
        await self._store.redeliver(webhook.id, delivery.public_id)
        await self._audit(context, "redeliver_webhook", webhook, delivery=delivery.public_id)
        return self._back(context, user, webhook, "redelivered")

    async def _redeliver_failed(self, context: PageContext) -> Response:
        """Send the failed events of the last days again. Posting the form twice finds none the second time."""
        user, webhook = await self._find(context)
        given = context.form["days"]
        days = int(given) if given.isascii() and given.isdigit() and len(given) <= 2 else 0  # noqa: PLR2004
        if not 1 <= days <= _DAYS_MAX:
            return self._back(context, user, webhook, "wrong_days", tone="bad", days=_DAYS_MAX)
        now = await self._store.read_clock()
        count = await self._store.redeliver_between(
            webhook.id, now - timedelta(days=days), now, failed_only=True, limit=REDELIVER_MAX
        )
        if count:
            await self._audit(context, "redeliver_webhooks", webhook, days=days, events=count)
        return self._back(context, user, webhook, "redelivered_failed", n=count)

    async def _audit(self, context: PageContext, action: str, webhook: Webhook, **after: object) -> None:
        await context.audit(action, webhook.account_id, after={"endpoint": webhook.public_id, **after})

    def _back(
        self, context: PageContext, user: User, webhook: Webhook, text: str, tone: str = "good", **values: object
    ) -> Response:
        path = f"/users/{user.account_id}/webhooks?endpoint={webhook.public_id}"
        return context.redirect(path, f"dashboard.webhooks.done.{text}", tone=tone, **values)


def _seen(delivery: WebhookDelivery) -> str:
    """Return what tells one state of a delivery from the next."""
    delivered = 0 if delivery.delivered_at is None else microseconds(delivery.delivered_at)
    return f"{delivery.state}.{delivery.attempts}.{delivered}"
