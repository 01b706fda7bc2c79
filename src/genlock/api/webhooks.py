"""Webhook endpoints of an account: create, list, change, delete, rotate the secret, test, and send events again."""

import re
from collections.abc import Sequence
from typing import NoReturn

from pydantic import BaseModel
from starlette.responses import Response

from genlock.api.operation import Answered, Call, Handler, Operation
from genlock.api.parts import ApiParts
from genlock.api.problems import Fault, conflict, invalid, not_found, too_many
from genlock.api.types import (
    DeliveryAnswer,
    DeliveryList,
    DeliveryPageQuery,
    NewWebhookRequest,
    RedeliverAnswer,
    RedeliverRequest,
    WebhookAnswer,
    WebhookChange,
    WebhookList,
    WebhookWithSecret,
)
from genlock.domain.api_key import ApiScope
from genlock.domain.webhook import (
    ENDPOINT_PREFIX,
    ENDPOINTS_MAX,
    MESSAGE_PREFIX,
    OVERLAP_SECONDS,
    DeliveryState,
    NewWebhook,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    show_secret,
)
from genlock.media.download import AddressRefused, check_target, parse_url

REDELIVER_MAX = 10_000
#: tests of an account, and its requests to send the events of a time again
SENT_PER_MINUTE = 10
MINUTE = 60.0
_ONE = "/v1/webhooks/{webhook_id}"
_TAG = "webhooks"
_WEBHOOK_ID = re.compile(rf"{ENDPOINT_PREFIX}[0-9a-f]{{1,57}}")
_DELIVERY_ID = re.compile(rf"{MESSAGE_PREFIX}[0-9a-f]{{1,56}}")


class WebhookRoutes:
    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts

    def operations(self) -> list[Operation]:
        return [
            _operation("create_webhook", "POST", "/v1/webhooks", "Add an endpoint", self.create,
                       body=NewWebhookRequest, status=201, kind=WebhookWithSecret, problems=(409, 422)),
            _operation("list_webhooks", "GET", "/v1/webhooks", "List the endpoints", self.list, kind=WebhookList,
                       problems=()),
            _operation("get_webhook", "GET", _ONE, "Read an endpoint", self.get, kind=WebhookAnswer),
            _operation("change_webhook", "PATCH", _ONE, "Change an endpoint", self.change,
                       body=WebhookChange, kind=WebhookAnswer, problems=(404, 422)),
            _operation("delete_webhook", "DELETE", _ONE, "Delete an endpoint", self.delete, status=204),
            _operation("rotate_webhook_secret", "POST", f"{_ONE}/rotate-secret", "Make a new secret", self.rotate,
                       kind=WebhookWithSecret),
            _operation("test_webhook", "POST", f"{_ONE}/test", "Send a test event", self.test,
                       status=202, kind=DeliveryAnswer),
            _operation("list_deliveries", "GET", f"{_ONE}/deliveries", "List deliveries, newest first",
                       self.deliveries, query=DeliveryPageQuery, kind=DeliveryList, problems=(404, 422)),
            _operation("redeliver", "POST", f"{_ONE}/deliveries/{{delivery_id}}/redeliver", "Send an event again",
                       self.redeliver, status=202, kind=DeliveryAnswer),
            _operation("redeliver_range", "POST", f"{_ONE}/redeliver", "Send the events of a time again",
                       self.redeliver_range, body=RedeliverRequest, status=202, kind=RedeliverAnswer,
                       problems=(404, 422)),
        ]  # fmt: skip

    async def create(self, call: Call) -> Response:
        body = call.body
        assert isinstance(body, NewWebhookRequest)
        self._check_url(body.url)
        public_id = f"{ENDPOINT_PREFIX}{self._parts.new_id()}"
        secret, sealed = self._parts.webhook_secrets.make(public_id, 1)
        webhook = await self._parts.store.add_webhook(
            NewWebhook(
                account_id=call.account_id,
                public_id=public_id,
                url=body.url,
                events=frozenset(map(WebhookEvent, body.events)),
                description=body.description,
                secret=sealed,
            ),
            most=ENDPOINTS_MAX,
        )
        if webhook is None:
            raise conflict("too_many_webhooks", f"an account has at most {ENDPOINTS_MAX} endpoints; delete one first")
        return _json(_with_secret(webhook, secret), 201)

    async def list(self, call: Call) -> Response:
        found = await self._parts.store.webhooks(call.account_id)
        return _json(WebhookList(data=[_answer(webhook) for webhook in found]))

    async def get(self, call: Call) -> Response:
        return _json(_answer(await self._find(call)))

    async def change(self, call: Call) -> Response:
        body, webhook = call.body, await self._find(call)
        assert isinstance(body, WebhookChange)
        if body.url is not None:
            self._check_url(body.url)
        changed = await self._parts.store.change_webhook(
            webhook.id,
            url=body.url,
            events=None if body.events is None else frozenset(map(WebhookEvent, body.events)),
            description=body.description,
            enabled=body.enabled,
        )
        return _json(_answer(changed or _missing()))

    async def delete(self, call: Call) -> Response:
        await self._parts.store.remove_webhook((await self._find(call)).id)
        return Response(status_code=204)

    async def rotate(self, call: Call) -> Response:
        while True:
            webhook = await self._find(call)
            secret, sealed = self._parts.webhook_secrets.make(webhook.public_id, webhook.secret_number + 1)
            rotated = await self._parts.store.rotate_webhook_secret(webhook, sealed, OVERLAP_SECONDS)
            if rotated is not None:  # else another request has rotated it meanwhile
                return _json(_with_secret(rotated, secret))

    async def test(self, call: Call) -> Response:
        webhook = await self._find(call)
        await self._check_quota(call, "webhook-test", "a test")
        public_id = f"{MESSAGE_PREFIX}{self._parts.new_id()}{self._parts.new_id()}"
        delivery = await self._parts.store.add_test_delivery(webhook.id, public_id)
        return _json(self._delivery(delivery or _missing()), 202)

    async def deliveries(self, call: Call) -> Response:
        query, webhook = call.query, await self._find(call)
        assert isinstance(query, DeliveryPageQuery)
        state = None if query.state is None else DeliveryState(query.state)
        found = await self._parts.store.webhook_deliveries(
            webhook.id, state=state, before=query.cursor, limit=query.limit + 1
        )
        page = found[: query.limit]
        cursor = page[-1].public_id if len(found) > query.limit else None
        return _json(DeliveryList(data=[self._delivery(delivery) for delivery in page], next_cursor=cursor))

    async def redeliver(self, call: Call) -> Response:
        webhook = await self._find(call)
        public_id = call.path("delivery_id")
        delivery = (
            await self._parts.store.redeliver(webhook.id, public_id) if _DELIVERY_ID.fullmatch(public_id) else None
        )
        if delivery is None:
            raise not_found("this endpoint has no delivery with this id")
        return _json(self._delivery(delivery), 202)

    async def redeliver_range(self, call: Call) -> Response:
        body, webhook = call.body, await self._find(call)
        assert isinstance(body, RedeliverRequest)
        await self._check_quota(call, "webhook-redeliver", "the events of a time range")
        count = await self._parts.store.redeliver_between(
            webhook.id, body.since, body.until, failed_only=body.failed_only, limit=REDELIVER_MAX
        )
        return _json(RedeliverAnswer(count=count), 202)

    async def _check_quota(self, call: Call, what: str, name: str) -> None:
        """Limit requests that send events without an order: the receiver may be anyone's address. Raises Problem."""
        pause = MINUTE / SENT_PER_MINUTE
        [wait] = await self._parts.store.take_permits(
            [f"{what}:{call.account_id}"], pause, 1, -(SENT_PER_MINUTE - 1) * pause
        )
        if wait > 0:
            raise too_many(
                "too_many_deliveries",
                f"{name} may be sent {SENT_PER_MINUTE} times a minute; nothing was sent",
                wait,
            )

    async def _find(self, call: Call) -> Webhook:
        public_id = call.path("webhook_id")
        if not _WEBHOOK_ID.fullmatch(public_id):
            _missing()
        return await self._parts.store.webhook(call.account_id, public_id) or _missing()

    def _check_url(self, url: str) -> None:
        """Refuse an address that could never be called. Names are resolved when an event is sent. Raises Problem."""
        if not url.isprintable() or " " in url:
            raise invalid([Fault(pointer="/url", detail="must not contain spaces or control characters")])
        try:
            target = parse_url(url)
            check_target(target, self._parts.private_hosts)
        except AddressRefused as error:
            raise invalid([Fault(pointer="/url", detail=str(error))]) from None
        is_private = f"{target.raw_host}:{target.port}" in self._parts.private_hosts
        if target.scheme != "https" and not is_private:
            raise invalid([Fault(pointer="/url", detail="must begin with https://")])
        if target.user or target.password:
            raise invalid([Fault(pointer="/url", detail="must not contain a user name or a password")])

    def _delivery(self, delivery: WebhookDelivery) -> DeliveryAnswer:
        return DeliveryAnswer(
            id=delivery.public_id,
            event=delivery.event,
            job=None if delivery.job_id is None else self._parts.view.id_of(delivery.job_id),
            created_at=delivery.event_at,
            state=delivery.state.value,
            attempts=delivery.attempts,
            next_attempt_at=delivery.due_at,
            last_status=delivery.last_status,
            last_error=delivery.last_error,
            delivered_at=delivery.delivered_at,
        )


def _operation(  # noqa: PLR0913 - one argument per part of an operation
    name: str,
    method: str,
    path: str,
    summary: str,
    handle: Handler,
    *,
    body: type[BaseModel] | None = None,
    query: type[BaseModel] | None = None,
    kind: type[BaseModel] | None = None,
    status: int = 200,
    problems: Sequence[int] = (404,),
) -> Operation:
    answered = Answered(description=f"{summary}: done.", kind=kind)
    return Operation(
        name=name,
        method=method,
        path=path,
        summary=summary,
        handle=handle,
        scope=ApiScope.WEBHOOKS,
        tag=_TAG,
        query=query,
        body=body,
        answers={status: answered},
        problems=problems if body is None else (400, 413, 415, *problems),
    )


def _missing() -> NoReturn:
    raise not_found("this account has no webhook with this id")


def _answer(webhook: Webhook) -> WebhookAnswer:
    return WebhookAnswer(
        id=webhook.public_id,
        url=webhook.url,
        events=sorted(webhook.events or (event for event in WebhookEvent if event is not WebhookEvent.TEST)),
        description=webhook.description,
        enabled=webhook.enabled,
        disabled_reason=webhook.disabled_reason,
        created_at=webhook.created_at,
    )


def _with_secret(webhook: Webhook, secret: bytes) -> WebhookWithSecret:
    return WebhookWithSecret(**_answer(webhook).model_dump(), secret=show_secret(secret))


def _json(answer: BaseModel, status: int = 200) -> Response:
    return Response(answer.model_dump_json(), status, media_type="application/json")
