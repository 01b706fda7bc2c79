"""Webhooks in the dashboard: what was sent and answered, sent again, tested, enabled and disabled, by who may."""

from typing import Any

from genlock.domain.operator import OperatorRole
from genlock.domain.webhook import DeliveryState, NewWebhook, Webhook, WebhookAttempt
from tests.dashboard.world import DashboardWorld

URL = "https://shop.example/hook?token=secret-path"
ATTACK = "<script>alert(1)</script>"


async def endpoint(dashboard: DashboardWorld, name: str = "shop", events: int = 0) -> Webhook:
    """An endpoint of an API client with some deliveries: even ones delivered, odd ones failed."""
    store = dashboard.store
    account_id = await store.ensure_account("api", "", name)
    webhook = await store.add_webhook(NewWebhook(account_id=account_id, public_id=f"we_{name}", url=URL), most=5)
    assert webhook is not None
    for number in range(events):
        delivery = await store.add_test_delivery(webhook.id, f"msg_{name}{number}")
        assert delivery is not None
        state = DeliveryState.FAILED if number % 2 else DeliveryState.DELIVERED
        attempt = WebhookAttempt(
            delivery_id=delivery.id,
            webhook_id=delivery.webhook_id,
            state=state,
            status=500,
            error="no",
            answer=f"{ATTACK} {number}",
        )
        await store.settle_webhook_deliveries([attempt])
    return webhook


def path(webhook: Webhook, action: str = "") -> str:
    return f"/users/{webhook.account_id}/webhooks{action and f'/{action}'}"


def form(webhook: Webhook, **fields: Any) -> dict[str, Any]:
    return {"endpoint": webhook.public_id, "request_key": "form", **fields}


async def states(dashboard: DashboardWorld, webhook: Webhook) -> list[str]:
    found = await dashboard.store.webhook_deliveries(webhook.id, state=None, before=None, limit=100)
    return [delivery.state.value for delivery in reversed(found)]


async def test_endpoints_and_deliveries_are_shown_page_by_page_and_answers_stay_text(dashboard: DashboardWorld) -> None:
    webhook = await endpoint(dashboard, events=40)
    owner = await dashboard.log_in()
    page = (await owner.get(path(webhook))).text

    assert URL in page
    assert ATTACK not in page
    assert page.count("&lt;script&gt;alert(1)") == 30
    older = await owner.get(f"{path(webhook)}?endpoint=we_shop&before=msg_shop10")
    assert older.text.count("&lt;script&gt;alert(1)") == 10
    failed = await owner.get(f"{path(webhook)}?endpoint=we_shop&state=failed")
    assert failed.text.count("&lt;script&gt;alert(1)") == 20
    assert "Webhooks" in (await owner.get(f"/users/{webhook.account_id}")).text
    assert "cannot be read" not in page


async def test_a_viewer_acts_on_nothing_and_sees_no_answers_where_prompts_are_hidden(dashboard: DashboardWorld) -> None:
    webhook = await endpoint(dashboard, events=2)
    viewer = await dashboard.log_in(OperatorRole.VIEWER)
    for action in ("test", "enable", "disable", "redeliver", "redeliver-failed"):
        assert (await viewer.post(path(webhook, action), form(webhook))).status == 403
    page = (await viewer.get(path(webhook))).text
    assert "Send a test" not in page
    assert await states(dashboard, webhook) == ["delivered", "failed"]


async def test_support_sends_a_test_once_per_form(dashboard: DashboardWorld) -> None:
    webhook = await endpoint(dashboard)
    support = await dashboard.log_in(OperatorRole.SUPPORT)
    for _ in range(2):
        assert "on its way" in (await support.follow(path(webhook, "test"), form(webhook))).text
    assert await states(dashboard, webhook) == ["pending"]
    await support.follow(path(webhook, "test"), form(webhook, request_key="another form"))
    assert await states(dashboard, webhook) == ["pending"] * 2
    owner = await dashboard.log_in()
    assert (await owner.get("/audit")).text.count("sent a test to a webhook") == 2


async def test_an_event_is_sent_again_once_per_page(dashboard: DashboardWorld) -> None:
    webhook = await endpoint(dashboard, events=2)
    owner = await dashboard.log_in()
    page = (await owner.get(path(webhook))).text
    seen = page.split('name="delivery" value="msg_shop0"')[1].split('name="seen" value="')[1].split('"')[0]
    fields = form(webhook, delivery="msg_shop0", seen=seen)

    assert "is being sent again" in (await owner.follow(path(webhook, "redeliver"), fields)).text
    assert await states(dashboard, webhook) == ["pending", "failed"]
    [due] = await dashboard.store.due_webhook_deliveries(webhook.id, 5)
    await dashboard.store.settle_webhook_deliveries(
        [WebhookAttempt(delivery_id=due.id, webhook_id=due.webhook_id, state=DeliveryState.DELIVERED, status=200)]
    )
    assert "has changed since" in (await owner.follow(path(webhook, "redeliver"), fields)).text
    assert await states(dashboard, webhook) == ["delivered", "failed"]
    assert (await owner.post(path(webhook, "redeliver"), form(webhook, delivery="msg_none"))).status == 404


async def test_failed_events_of_some_days_are_sent_again(dashboard: DashboardWorld) -> None:
    webhook = await endpoint(dashboard, events=4)
    owner = await dashboard.log_in()
    for wrong in ("", "0", "32", "x", "³"):
        answer = await owner.follow(path(webhook, "redeliver-failed"), form(webhook, days=wrong))
        assert "from 1 to 31" in answer.text, wrong
    assert "2 events are" in (await owner.follow(path(webhook, "redeliver-failed"), form(webhook, days="3"))).text
    assert await states(dashboard, webhook) == ["delivered", "pending", "delivered", "pending"]


async def test_an_endpoint_is_disabled_and_enabled_and_both_are_audited(dashboard: DashboardWorld) -> None:
    webhook = await endpoint(dashboard)
    owner = await dashboard.log_in()
    for _ in range(2):
        assert "is disabled" in (await owner.follow(path(webhook, "disable"), form(webhook))).text
    [disabled] = await dashboard.store.webhooks(webhook.account_id)
    assert (disabled.enabled, disabled.disabled_reason) == (False, "an operator has disabled it")
    for _ in range(2):
        assert "is enabled" in (await owner.follow(path(webhook, "enable"), form(webhook))).text
    audit = (await owner.get("/audit")).text
    assert (audit.count("disabled a webhook"), audit.count("enabled a webhook")) == (1, 1)


async def test_another_account_s_endpoint_is_not_found(dashboard: DashboardWorld) -> None:
    webhook, other = await endpoint(dashboard), await endpoint(dashboard, "other")
    owner = await dashboard.log_in()
    for action in ("test", "disable", "redeliver", "redeliver-failed"):
        assert (await owner.post(path(other, action), form(webhook, days="3"))).status == 404
    assert "we_other" not in (await owner.get(f"{path(webhook)}?endpoint=we_other")).text


async def test_a_secret_that_cannot_be_read_is_named(dashboard: DashboardWorld) -> None:
    account_id = await dashboard.store.ensure_account("api", "", "lost")
    new = NewWebhook(account_id=account_id, public_id="we_1", url=URL, secret="v1.1.other.AAAA")
    assert await dashboard.store.add_webhook(new, most=5)
    await dashboard.store.kv_put("webhook_secret_lost:1", str(account_id))
    owner = await dashboard.log_in()

    page = (await owner.get(f"/users/{account_id}/webhooks")).text.replace("&#39;", "'")
    assert "secret can't be read" in page
    keys = (await owner.get("/system/api-keys")).text
    assert f"/dashboard/users/{account_id}/webhooks" in keys
