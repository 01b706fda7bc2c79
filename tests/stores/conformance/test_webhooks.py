"""Webhooks: events are written in the commit of what they tell and sent in order; a dead endpoint delays no other."""

from datetime import timedelta
from typing import Any

import pytest

from genlock.domain.job import State
from genlock.domain.webhook import DeliveryState, NewWebhook, Webhook, WebhookAttempt, WebhookEvent
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with, delivered, end, ended, new_key, running

HOUR = 3600.0
DONE = DeliveryState.DELIVERED


async def endpoint(store: SqlDatabase, account_id: int, name: str = "we_1", **changes: Any) -> Webhook:
    webhook = await store.add_webhook(
        NewWebhook(account_id=account_id, public_id=name, url="https://example.org/hook", **changes), most=20
    )
    assert webhook is not None
    return webhook


async def client(store: SqlDatabase, number: int = 1) -> tuple[int, int]:
    """Return an account with credits and the id of its API key."""
    account_id = await account_with(store, 10**6)
    key, _ = await store.add_api_key(new_key(account_id, number))
    return account_id, key.id


async def events(store: SqlDatabase, webhook: Webhook) -> list[str]:
    found = await store.webhook_deliveries(webhook.id, state=None, before=None, limit=100)
    return [delivery.event.value for delivery in reversed(found)]


async def due(store: SqlDatabase, webhook: Webhook) -> list[tuple[int | None, str]]:
    return [(delivery.job_id, delivery.event.value) for delivery in await store.due_webhook_deliveries(webhook.id, 100)]


async def settle(store: SqlDatabase, webhook: Webhook, state: DeliveryState = DONE, **more: Any) -> None:
    found = await store.due_webhook_deliveries(webhook.id, 100)
    await store.settle_webhook_deliveries(
        [
            WebhookAttempt(delivery_id=delivery.id, webhook_id=delivery.webhook_id, state=state, **more)
            for delivery in found
        ]
    )


async def claim(store: SqlDatabase, limit: int, hold_seconds: float, owner: str = "me") -> list[Webhook]:
    return list(await store.claim_webhooks(owner, limit=limit, degraded=limit, hold_seconds=hold_seconds))


async def test_each_public_state_of_a_job_is_one_event(store: SqlDatabase) -> None:
    account_id, key_id = await client(store)
    webhook = await endpoint(store, account_id)
    of_api: dict[str, Any] = {"account_id": account_id, "api_key_id": key_id}
    await running(store, "t1", request_key="a", **of_api)
    assert await events(store, webhook) == ["job.started"]
    await delivered(store, request_key="b", **of_api)
    assert (await events(store, webhook))[-1] == "job.succeeded"
    for state, event in (
        (State.FAILED, "job.failed"),
        (State.CANCELLED, "job.canceled"),
        (State.EXPIRED, "job.expired"),
    ):
        await ended(store, state, request_key=state.value, **of_api)
        assert (await events(store, webhook))[-1] == event


async def test_what_was_sent_about_a_job_is_found_by_the_job(store: SqlDatabase) -> None:
    account_id, key_id = await client(store)
    first, second = await endpoint(store, account_id), await endpoint(store, account_id, "we_2")
    of_api: dict[str, Any] = {"account_id": account_id, "api_key_id": key_id}
    job = await delivered(store, request_key="a", **of_api)
    await delivered(store, request_key="b", **of_api)

    found = await store.job_webhook_deliveries(job.id, 10)

    assert [(delivery.webhook_id, delivery.event) for delivery in found] == [
        (webhook.id, event)
        for event in (WebhookEvent.JOB_STARTED, WebhookEvent.JOB_SUCCEEDED)
        for webhook in (first, second)
    ]
    assert await store.job_webhook_deliveries(job.id, 1) == found[:1]


async def test_only_enabled_endpoints_of_the_account_with_a_fitting_filter_get_an_event(store: SqlDatabase) -> None:
    (account_id, key_id), (other_id, _) = await client(store), await client(store, 2)
    ends = frozenset({WebhookEvent.JOB_SUCCEEDED, WebhookEvent.JOB_FAILED})
    everything = await endpoint(store, account_id)
    filtered = await endpoint(store, account_id, "we_2", events=ends)
    disabled = await endpoint(store, account_id, "we_3")
    foreign = await endpoint(store, other_id, "we_4")
    assert await store.disable_webhook(disabled.id, "gone")
    assert not await store.disable_webhook(disabled.id, "gone")

    await ended(store, State.FAILED, account_id=account_id, api_key_id=key_id)
    await ended(store, State.FAILED, account_id=account_id, request_key="by chat")

    assert (await events(store, everything))[-1:] == ["job.failed"]
    assert await events(store, filtered) == ["job.failed"]
    assert await events(store, disabled) == await events(store, foreign) == []


async def test_events_of_one_job_are_due_one_after_the_other(store: SqlDatabase, clock: ManualClock) -> None:
    account_id, key_id = await client(store)
    webhook = await endpoint(store, account_id)
    of_api: dict[str, Any] = {"account_id": account_id, "api_key_id": key_id}
    job = await ended(store, State.FAILED, request_key="a", **of_api)
    other = await running(store, "t2", request_key="b", **of_api)

    assert await due(store, webhook) == [(job.id, "job.started"), (other.id, "job.started")]
    await settle(store, webhook, DeliveryState.PENDING, after=60.0, status=500)
    assert await due(store, webhook) == [], "a later event waits for the earlier one"
    await end(store, other, State.FAILED)
    waiting = await store.webhook_deliveries(webhook.id, state=None, before=None, limit=10)
    assert {delivery.due_at for delivery in waiting} == {clock.now() + timedelta(seconds=60)}, (
        "none is read needlessly until then"
    )
    clock.advance(61)
    await settle(store, webhook)
    assert await due(store, webhook) == [(job.id, "job.failed"), (other.id, "job.failed")]
    await settle(store, webhook)
    assert await due(store, webhook) == []


async def test_an_endpoint_is_claimed_by_one_instance_while_it_has_due_events(
    store: SqlDatabase, clock: ManualClock
) -> None:
    account_id, key_id = await client(store)
    webhook, idle = (
        await endpoint(store, account_id),
        await endpoint(store, account_id, "we_2", events=frozenset({WebhookEvent.JOB_EXPIRED})),
    )
    assert await claim(store, 10, 30.0) == []
    await ended(store, State.FAILED, account_id=account_id, api_key_id=key_id)

    assert [claimed.id for claimed in await claim(store, 10, 30.0)] == [webhook.id]
    assert await claim(store, 10, 30.0) == []
    clock.advance(31)
    assert [claimed.id for claimed in await claim(store, 10, 30.0)] == [webhook.id], "its instance died"
    await store.release_webhook(webhook.id, "me", 5.0, failed=False)
    assert await claim(store, 10, 30.0) == []
    clock.advance(6)
    assert [claimed.id for claimed in await claim(store, 10, 30.0)] == [webhook.id]
    await store.release_webhook(webhook.id, "me", 0.0, failed=False)
    while await due(store, webhook):
        await settle(store, webhook)
    assert await claim(store, 10, 30.0) == []
    assert await events(store, idle) == []


async def test_a_disabled_endpoint_gets_only_tests_and_its_events_wait(store: SqlDatabase) -> None:
    account_id, key_id = await client(store)
    webhook = await endpoint(store, account_id)
    await ended(store, State.FAILED, account_id=account_id, api_key_id=key_id)
    await store.disable_webhook(webhook.id, "answered 410")
    assert await claim(store, 10, 1.0) == []
    assert await store.add_test_delivery(webhook.id, "msg_test") is not None

    assert [claimed.id for claimed in await claim(store, 10, 1.0)] == [webhook.id]
    assert await store.add_test_delivery(webhook.id, "msg_test") is None, "it is there already"
    assert [delivery.event for delivery in await store.due_webhook_tests(webhook.id, 10)] == [WebhookEvent.TEST]
    changed = await store.change_webhook(webhook.id, enabled=True)
    assert changed is not None
    assert (changed.enabled, changed.disabled_reason) == (True, "")
    assert len(await due(store, webhook)) == 2


async def test_deliveries_are_sent_again_one_by_one_or_by_time(store: SqlDatabase, clock: ManualClock) -> None:
    account_id, key_id = await client(store)
    webhook = await endpoint(store, account_id, events=frozenset({WebhookEvent.JOB_FAILED}))
    start = clock.now()
    for number in range(3):
        await ended(store, State.FAILED, request_key=f"{number}", account_id=account_id, api_key_id=key_id)
        await settle(store, webhook, DONE if number else DeliveryState.FAILED, status=200)
        clock.advance(HOUR)
    newest, _, _ = await store.webhook_deliveries(webhook.id, state=None, before=None, limit=10)

    assert await store.webhook_delivery(webhook.id, newest.public_id) == newest
    assert await store.webhook_delivery(webhook.id + 1, newest.public_id) is None
    again = await store.redeliver(webhook.id, newest.public_id)
    assert again is not None
    assert (again.state, again.attempts, again.public_id) == (DeliveryState.PENDING, 0, newest.public_id)
    assert await store.redeliver(webhook.id + 1, newest.public_id) is None
    assert await store.redeliver_between(webhook.id, start, clock.now(), failed_only=True, limit=10) == 1
    assert await store.redeliver_between(webhook.id, start, clock.now(), failed_only=False, limit=10) == 1
    assert len(await due(store, webhook)) == 3
    assert [await store.count_waiting_deliveries(webhook.id, limit) for limit in (2, 10)] == [2, 3]
    pages = await store.webhook_deliveries(webhook.id, state=DeliveryState.PENDING, before=None, limit=1)
    assert [delivery.id for delivery in pages] == [newest.id]
    for size in (1, 1, 0):
        page = await store.webhook_deliveries(
            webhook.id, state=DeliveryState.PENDING, before=pages[-1].public_id, limit=1
        )
        assert len(page) == size
        pages = [*pages, *page]
    assert len({delivery.id for delivery in pages}) == 3


async def test_endpoints_are_read_changed_and_removed_by_their_account_only(store: SqlDatabase) -> None:
    account_id, other_id = await account_with(store), await account_with(store)
    webhook = await endpoint(store, account_id, description="shop")

    assert await store.webhook(other_id, webhook.public_id) is None
    assert await store.webhook(account_id, webhook.public_id) == webhook
    assert await store.webhooks(other_id) == []
    assert await store.add_webhook(NewWebhook(account_id=account_id, public_id="we_2", url="https://x"), most=1) is None
    ends = frozenset({WebhookEvent.JOB_FAILED})
    changed = await store.change_webhook(webhook.id, url="https://example.org/other", events=ends)
    assert changed is not None
    assert (changed.url, changed.events, changed.description) == ("https://example.org/other", ends, "shop")
    rotated = await store.rotate_webhook_secret(webhook, "sealed 2", HOUR)
    assert rotated is not None
    assert (rotated.secret_number, rotated.secret, rotated.previous_secret) == (2, "sealed 2", webhook.secret)
    assert await store.rotate_webhook_secret(webhook, "sealed 3", HOUR) is None, "it was rotated meanwhile"
    assert not await store.seal_webhook_secrets(webhook, "a", "b"), "it was rotated meanwhile"
    assert await store.seal_webhook_secrets(rotated, "a", "b")
    assert not await store.seal_webhook_secrets(rotated, "c", "d"), "it was sealed meanwhile"
    [sealed] = await store.webhooks_after(webhook.id - 1, 10)
    assert (sealed.secret, sealed.previous_secret) == ("a", "b")
    assert await store.webhooks_after(webhook.id, 10) == []
    assert rotated.previous_secret_until is not None
    assert await store.remove_webhook(webhook.id)
    assert not await store.remove_webhook(webhook.id)


async def test_a_dead_endpoint_with_many_waiting_events_delays_no_other(store: SqlDatabase) -> None:
    (account_id, _), (other_id, key_id) = await client(store), await client(store, 2)
    dead, alive = await endpoint(store, account_id), await endpoint(store, other_id, "we_2")
    for number in range(200):
        await store.add_test_delivery(dead.id, f"msg_{number}")
    await claim(store, 1, HOUR)
    await ended(store, State.FAILED, account_id=other_id, api_key_id=key_id)

    assert [claimed.id for claimed in await claim(store, 1, 30.0)] == [alive.id]


async def test_old_deliveries_and_those_of_removed_endpoints_are_pruned_a_few_at_a_time(
    store: SqlDatabase, clock: ManualClock
) -> None:
    role = await store.take_role("active", "me", 10**9)
    old, removed, young = [await endpoint(store, await account_with(store), f"we_{n}") for n in range(3)]
    for number in range(3):  # the first still waits: an event that could not be sent until now is not worth sending
        await store.add_test_delivery(old.id, f"msg_old_{number}")
    [*_, last] = await store.due_webhook_deliveries(old.id, 10)
    await store.settle_webhook_deliveries(
        [WebhookAttempt(delivery_id=last.id, webhook_id=last.webhook_id, state=DONE, status=200)]
    )
    clock.advance(HOUR)
    for number in range(3):
        await store.add_test_delivery(removed.id, f"msg_removed_{number}")
    await store.add_test_delivery(young.id, "msg_young")

    assert [await store.prune("webhook_deliveries", HOUR - 1, 2, role) for _ in range(3)] == [2, 1, 0]
    await store.remove_webhook(removed.id)
    assert [await store.prune("webhook_deliveries", HOUR - 1, 2, role) for _ in range(3)] == [2, 1, 0]
    assert await events(store, young) == ["webhook.test"]


async def test_the_endpoints_of_a_dead_instance_are_free_at_once_and_it_releases_none_that_another_took_over(
    store: SqlDatabase,
) -> None:
    webhook = await endpoint(store, await account_with(store))
    await store.add_test_delivery(webhook.id, "msg_1")
    assert await claim(store, 1, HOUR, "dead")
    assert await claim(store, 1, HOUR, "another") == []
    await store.release_leases("dead", crashed=True)
    assert [claimed.id for claimed in await claim(store, 1, HOUR, "another")] == [webhook.id]

    await store.release_webhook(webhook.id, "dead", 0.0, failed=True)  # it was only paused
    assert await claim(store, 1, HOUR, "third") == []


async def test_endpoints_that_are_slow_or_fail_repeatedly_share_a_few_places(store: SqlDatabase) -> None:
    account_id = await account_with(store)
    good, slow, failing, recovered = [await endpoint(store, account_id, f"we_{n}") for n in range(4)]
    every = (good, slow, failing, recovered)
    for webhook in every:
        await store.add_test_delivery(webhook.id, f"msg_{webhook.id}")

    async def serve(webhook: Webhook, **outcome: bool) -> None:
        await store.claim_webhooks("me", limit=9, degraded=9, hold_seconds=HOUR)
        await store.release_webhook(webhook.id, "me", 0.0, **{"failed": False, "slow": False, **outcome})

    await serve(slow, slow=True)
    for _ in range(2):
        await serve(failing, failed=True)
        await serve(recovered, failed=True)
    await serve(recovered)
    await store.release_leases("me")

    claimed = await store.claim_webhooks("me", limit=9, degraded=1, hold_seconds=HOUR)
    assert {webhook.id for webhook in claimed} >= {good.id, recovered.id}
    assert [webhook.is_degraded for webhook in claimed].count(True) == 1
    [other] = await store.claim_webhooks("me", limit=0, degraded=9, hold_seconds=HOUR)
    assert {webhook.id: webhook.failures for webhook in (*claimed, other)}[failing.id] == 2
    changed = await store.change_webhook(failing.id, enabled=True)
    assert changed is not None
    assert (changed.failures, changed.failing_since) == (0, None)


async def test_events_that_wait_for_an_earlier_one_do_not_hide_those_behind_them(
    store: SqlDatabase, clock: ManualClock
) -> None:
    account_id, key_id = await client(store)
    webhook = await endpoint(store, account_id)
    of_api: dict[str, Any] = {"account_id": account_id, "api_key_id": key_id}
    jobs = [await ended(store, State.FAILED, request_key=f"{n}", **of_api) for n in range(4)]
    await settle(store, webhook, DeliveryState.PENDING, after=60.0, status=500)
    await store.add_test_delivery(webhook.id, "msg_behind")

    assert await due(store, webhook) == [(None, "webhook.test")]
    await settle(store, webhook)
    clock.advance(61)
    assert await due(store, webhook) == [(job.id, "job.started") for job in jobs]
    await settle(store, webhook)
    assert await due(store, webhook) == [(job.id, "job.failed") for job in jobs]


async def test_a_delivery_that_another_instance_settled_is_not_sent_again(store: SqlDatabase) -> None:
    webhook = await endpoint(store, await account_with(store))
    await store.add_test_delivery(webhook.id, "msg_1")
    [one] = await store.due_webhook_deliveries(webhook.id, 10)
    await store.settle_webhook_deliveries(
        [WebhookAttempt(delivery_id=one.id, webhook_id=one.webhook_id, state=DONE, status=200)]
    )
    await store.settle_webhook_deliveries(
        [WebhookAttempt(delivery_id=one.id, webhook_id=one.webhook_id, state=DeliveryState.PENDING)]
    )

    assert await due(store, webhook) == []


@pytest.mark.parametrize("status", [None, 200])
async def test_what_an_attempt_led_to_is_kept(store: SqlDatabase, clock: ManualClock, status: int | None) -> None:
    webhook = await endpoint(store, await account_with(store))
    await store.add_test_delivery(webhook.id, "msg_1")
    state = DONE if status else DeliveryState.PENDING
    await settle(store, webhook, state, after=60.0, status=status, error="" if status else "no answer", answer="ok")

    [found] = await store.webhook_deliveries(webhook.id, state=None, before=None, limit=10)
    assert (found.state, found.attempts, found.last_status) == (state, 1, status)
    assert found.last_answer == "ok"
    assert (found.delivered_at == clock.now()) is (status is not None)


async def test_a_deleted_endpoint_leaves_nothing_waiting(store: SqlDatabase) -> None:
    """The search for due events steps over every endpoint with waiting ones, and an endpoint is made quickly."""
    role = await store.take_role("active", "me", 10**9)
    account_id, _ = await client(store)
    webhook, other = await endpoint(store, account_id), await endpoint(store, account_id, "we_2")
    for name, target in (("msg_1", webhook), ("msg_2", webhook), ("msg_3", other)):
        await store.add_test_delivery(target.id, name)
    assert await store.remove_webhook(webhook.id)
    assert not await store.remove_webhook(webhook.id)
    assert await store.prune("webhook_deliveries", HOUR, 10, role) == 2

    assert await events(store, webhook) == []
    assert await due(store, other) == [(None, "webhook.test")]
    assert [claimed.id for claimed in await claim(store, 10, 60.0)] == [other.id]
