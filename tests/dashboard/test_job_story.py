"""The page of a job tells the whole story: every attempt and its cost, webhooks, the orders before it, API clients."""

import csv
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from genlock.dashboard.job_links import source_jobs
from genlock.dashboard.job_money import costs_usd, job_money
from genlock.domain.attempt import AttemptOutcome
from genlock.domain.events import Event
from genlock.domain.job import Job, State
from genlock.domain.operator import OperatorRole
from genlock.domain.promo import Promo
from genlock.domain.webhook import DeliveryState, NewWebhook, WebhookAttempt
from genlock.engine import job_timeline
from genlock.i18n.translator import package_texts
from genlock.ports import FailedAttempt
from tests.dashboard.job_pages import form, settled
from tests.dashboard.world import Client, DashboardWorld, running_dashboard
from tests.databases import new_sqlite
from tests.stores.builders import claimed, end, finish, new_key, running

#: what happens to the installation, not to an order
OF_THE_INSTALLATION = {
    Event.CALLBACK_REFUSED, Event.ORPHAN_STORED, Event.ORPHAN_MATCHED, Event.ORPHAN_EXPIRED, Event.INSTANCE_DEAD,
    Event.STORE_RETRY, Event.STORE_TIMEOUT, Event.UPDATE_REFUSED, Event.LOCK_ACTIVE, Event.LOCK_PASSIVE, Event.POLLING,
    Event.POLL_CONFLICT, Event.API_WEBHOOK_DISABLED, Event.WEBHOOK_SECRETS_LOST, Event.WEBHOOK_SET,
    Event.WEBHOOK_REMOVED, Event.ROWS_PRUNED, Event.BREAKER_OPEN, Event.PROVIDER_SILENT, Event.PROVIDER_ANSWERS,
    Event.BREAKER_CLOSED, Event.ALARM, Event.RECOVERED, Event.CATALOG_CHANGED, Event.CATALOG_EDIT_LEFT_OUT,
    Event.SETTING_UNKNOWN, Event.PLUGIN_LEFT_OUT, Event.READY, Event.STOPPING, Event.STOPPED,
    Event.MEDIA_DAMAGED,
}  # fmt: skip
CREDITS = {"kie": Decimal("0.005"), "other": Decimal(1)}


@pytest.fixture
async def client(dashboard: DashboardWorld) -> Client:
    return await dashboard.log_in()


async def failed_over(dashboard: DashboardWorld, **changes: Any) -> Job:
    """A job that the first provider failed, reported late and billed, and that the second one made."""
    store = dashboard.store
    job = await running(store, "first task", notice=False, **changes)
    failed = FailedAttempt(
        job_id=job.id,
        attempt=1,
        outcome=AttemptOutcome.FAILED,
        error_code="provider_failed",
        task_id="first task",
        cost=0,
    )
    assert await store.fail_over(failed)
    claim = await claimed(store, job)
    assert await store.begin_submit(job.id, claim.lease_token, "second", None, "other", "other/model")
    assert await store.mark_submitted(job.id, claim.lease_token, "second task", 5.0)
    won = (await end(store, job, State.SUCCEEDED, task_id="second task", attempt=2, cost=70)).job
    assert won
    assert await finish(store, won)
    await end(store, job, State.SUCCEEDED, task_id="first task", attempt=1, cost=30_000)
    found = await store.job(job.id)
    assert found
    return found


async def api_job(dashboard: DashboardWorld, **changes: Any) -> Job:
    """A delivered job of an API client with two endpoints: one took its events, one refused them."""
    store = dashboard.store
    account_id = await store.ensure_account("api", "", "shop")
    key, _ = await store.add_api_key(new_key(account_id))
    for name in ("taken", "refused"):
        address = f"https://{name}.example/hook?token=secret"
        assert await store.add_webhook(NewWebhook(account_id=account_id, public_id=f"we_{name}", url=address), most=5)
    address = json.dumps({"request": "hash", "metadata": {"invoice": "<2026-17>"}})
    of_api = {"channel": "api", "account_id": account_id, "api_key_id": key.id, "request_key": "api:order-17"}
    job = await settled(dashboard, price=0, address=address, **of_api, **changes)
    for webhook in await store.webhooks(account_id):
        took = webhook.public_id == "we_taken"
        for delivery in await store.due_webhook_deliveries(webhook.id, 10):
            state = DeliveryState.DELIVERED if took else DeliveryState.FAILED
            await store.settle_webhook_deliveries(
                [
                    WebhookAttempt(
                        delivery_id=delivery.id,
                        webhook_id=delivery.webhook_id,
                        state=state,
                        status=200 if took else 503,
                    )
                ]
            )
    return job


async def test_every_attempt_is_shown_with_its_provider_outcome_and_cost(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await failed_over(dashboard)

    page = (await client.get(f"/jobs/{job.id}")).text

    section = page.split("<h2>Attempts</h2>")[1].split("</section>")[0]
    first, second = section.split("<li>")[1:]
    for text in ("Kie.ai", "failed", "first task", "30 provider credits", "provider_failed", "succeeded after all"):
        assert text in first, text
    for text in ("other", "succeeded", "second task", "0.07 provider credits", "other/model"):
        assert text in second, text


async def test_the_margin_counts_what_abandoned_attempts_cost(dashboard: DashboardWorld) -> None:
    job = await failed_over(dashboard, price=1_000)
    attempts = await dashboard.store.attempts(job.id)

    found = job_money(job, attempts, refunded=False, credit_usd=10, credit_of=CREDITS.get)

    assert (found.cost_usd, found.abandoned_usd) == (Decimal("0.07") + Decimal("0.15"), Decimal("0.15"))
    assert found.margin_usd == Decimal(10) - Decimal("0.22")
    assert found.cost is None, "credits of several providers do not add up"


async def test_the_lists_show_the_cost_of_all_providers_in_dollars_as_the_page_of_the_order_does(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await failed_over(dashboard)
    billed = await running(dashboard.store)
    await end(dashboard.store, billed, State.SUCCEEDED, cost=2_000)

    assert await costs_usd(dashboard.store, [job], CREDITS.get) == {job.id: Decimal("0.22")}
    assert await costs_usd(dashboard.store, [replace(job, cost=None)], CREDITS.get) == {job.id: Decimal("0.15")}
    assert await costs_usd(dashboard.store, [job], {"kie": Decimal("0.005")}.get) == {job.id: None}
    assert "$0.0100" in (await client.get("/jobs")).text
    assert "$0.01" in (await client.get(f"/jobs/{billed.id}")).text
    rows = csv.DictReader((await client.get("/jobs/export.csv")).text.removeprefix("\ufeff").splitlines())
    costs = {row["order"]: (row["cost_provider_credits"], row["cost_usd"]) for row in rows}
    assert {number: tuple(map(float, cost)) for number, cost in costs.items() if all(cost)} == {
        str(billed.id): (2.0, 0.01)
    }


async def test_the_margin_is_unknown_while_the_current_attempt_is_not_billed(dashboard: DashboardWorld) -> None:
    job = await failed_over(dashboard)
    [first, second] = await dashboard.store.attempts(job.id)
    unbilled = replace(job, cost=None)

    found = job_money(
        unbilled, [first, replace(second, cost=None)], refunded=False, credit_usd=1, credit_of=CREDITS.get
    )

    assert (found.cost, found.cost_usd, found.is_complete, found.margin_usd) == (30_000, Decimal("0.15"), False, None)


async def test_an_api_order_shows_its_webhooks_its_key_and_the_client_s_notes(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await api_job(dashboard)

    page = (await client.get(f"/jobs/{job.id}")).text

    section = page.split("<h2>Webhooks</h2>")[1].split("</section>")[0]
    assert section.count("job.succeeded") == 2
    for text in ("https://taken.example/hook", "https://refused.example/hook", "HTTP 200", "HTTP 503", "not delivered"):
        assert text in section, text
    for text in (
        "order-17",
        "&lt;2026-17&gt;",
        "job_",
        "Result ready for the API client",
        "Client: the result appears",
    ):
        assert text in page, text
    for text in ("in the chat", "Chat:", "Delivered to the chat", "Telegram accepted"):
        assert text not in page, text


async def test_who_may_not_read_what_users_wrote_sees_hosts_only(tmp_path: Path) -> None:
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", viewers_see_prompts=False) as world:
        job = await api_job(world)
        support, viewer = await world.log_in(OperatorRole.SUPPORT), await world.log_in(OperatorRole.VIEWER)

        shown, hidden = [(await operator.get(f"/jobs/{job.id}")).text for operator in (support, viewer)]

        assert ("token=secret" in shown, "2026-17" in shown) == (True, True)
        assert ("https://taken.example/…" in hidden, "token=secret" in hidden, "2026-17" in hidden) == (
            True,
            False,
            False,
        )


async def test_only_who_answers_clients_sees_their_idempotency_keys(tmp_path: Path) -> None:
    """A viewer does not, on no page, also where viewers may read what users wrote."""
    async with running_dashboard(f"sqlite:///{new_sqlite(tmp_path)}", viewers_see_prompts=True) as world:
        job = await api_job(world)
        account = job.account_id
        paths = [f"/jobs/{job.id}", "/jobs", f"/jobs?user=%23{account}", "/jobs.csv", f"/users/{account}"]
        paths += ["/audit", "/ledger", "/webhooks", "/api-keys", "/"]
        shown = {}
        for role in OperatorRole:
            browser = await world.log_in(role)
            pages = {path: (await browser.get(path)).text for path in paths}
            assert job.model in pages["/jobs"], role
            shown[role] = [path for path, text in pages.items() if "order-17" in text]
        assert shown[OperatorRole.VIEWER] == []
        assert shown[OperatorRole.OWNER] == shown[OperatorRole.SUPPORT] == [f"/jobs/{job.id}"]


async def test_a_refund_of_an_api_order_does_not_claim_that_a_chat_refused_it(
    dashboard: DashboardWorld, client: Client
) -> None:
    job = await failed_over(dashboard, channel="api", address='{"request":"hash"}')
    fields = form((await client.get(f"/jobs/{job.id}")).text, "refund")

    answer = await client.follow(f"/jobs/{job.id}/refund", fields)

    assert "is refunded. API clients have no chat" in answer.text


async def test_an_order_names_the_orders_whose_results_it_begins_with(
    dashboard: DashboardWorld, client: Client
) -> None:
    first = await settled(dashboard)
    [part] = first.parts
    values = {"prompt": "a hat for the cat", "image_urls": [part.value], "aspect_ratio": "1:1"}
    second = await settled(dashboard, account_id=first.account_id, input=json.dumps(values), request_key="second")

    assert await source_jobs(dashboard.store, second) == [first.id]
    assert await source_jobs(dashboard.store, first) == []
    page = (await client.get(f"/jobs/{second.id}")).text
    assert f'Made from the result of</dt><dd><a href="/dashboard/jobs/{first.id}">' in page


def test_everything_that_can_happen_to_an_order_has_a_text() -> None:
    texts = package_texts()
    missing = [
        f"{language}: {event}"
        for language in ("en", "ru")
        for event in set(Event) - OF_THE_INSTALLATION - job_timeline._LEFT_OUT
        if f"dashboard.job.timeline.{event.lower()}" not in texts.translator(language)
    ]
    assert sorted(missing) == []


async def test_the_second_of_two_operators_is_told_what_the_first_did(dashboard: DashboardWorld) -> None:
    job = await running(dashboard.store, provider="fake")
    first, second = await dashboard.log_in(), await dashboard.log_in(OperatorRole.SUPPORT)
    pages = [(await operator.get(f"/jobs/{job.id}")).text for operator in (first, second)]
    assert "is cancelled" in (await first.follow(f"/jobs/{job.id}/cancel", form(pages[0], "cancel"))).text

    answer = (await second.follow(f"/jobs/{job.id}/cancel", form(pages[1], "cancel"))).text

    assert "Nothing was done: the order has changed since you opened the page." in answer
    assert "It was: running, not started, held. It is now: cancelled" in answer
    assert "Last operator action: Cancel (7, " in answer


async def test_what_operators_did_with_a_job_is_told_in_words(dashboard: DashboardWorld, client: Client) -> None:
    job = await running(dashboard.store)
    for action, detail in (
        ("resend", json.dumps({"before": "succeeded/undeliverable/held/x", "after": "succeeded/pending/held/"})),
        ("refund", "1.5"),
    ):
        await dashboard.store.add_audit(key=action, actor="token", action=action, subject=f"#{job.id}", detail=detail)

    page = (await client.get(f"/jobs/{job.id}")).text

    assert page.count("Operator (login by token):") == 2
    assert "<bdi>undeliverable → waiting</bdi>" in page
    assert "<bdi>1.5\u00a0credits</bdi>" in page


@pytest.mark.parametrize(("author", "shown"), [("command", "command line"), ("token", "login by token"), ("8", "8")])
async def test_who_did_it_is_named_on_every_page_as_in_the_audit_log(
    dashboard: DashboardWorld, client: Client, author: str, shown: str
) -> None:
    promo = Promo(code="SPRING", amount=1000, runs=0, uses_max=None, per_account=1, until=None)
    await dashboard.store.create_promo(promo, lasting=None, author=author)
    await dashboard.store.add_audit(key="a", actor=author, action="ban", subject="1", detail="")

    for path in ("/campaigns", "/audit"):
        assert f"<bdi>{shown}</bdi>" in (await client.get(path)).text, path
