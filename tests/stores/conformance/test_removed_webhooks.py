"""A removed endpoint leaves nothing to the next one: neither its events, nor its sender, nor the outcome of a call."""

from genlock.domain.webhook import DeliveryState, NewWebhook, Webhook, WebhookAttempt
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ManualClock, account_with


async def endpoint(store: SqlDatabase, name: str) -> Webhook:
    """Return a new endpoint of a new account."""
    url = f"https://{name}.example.org"
    new = NewWebhook(account_id=await account_with(store), public_id=f"we_{name}", url=url)
    webhook = await store.add_webhook(new, most=20)
    assert webhook is not None
    return webhook


async def test_the_next_endpoint_gets_no_event_of_a_removed_one_and_its_sender_finds_none(
    store: SqlDatabase, clock: ManualClock
) -> None:
    removed = await endpoint(store, "ann")
    await store.add_test_delivery(removed.id, "msg_ann")
    await store.remove_webhook(removed.id)
    clock.advance(0.001)
    other = await endpoint(store, "bob")
    assert await store.webhook_deliveries(other.id, state=None, before=None, limit=10) == []

    await store.add_test_delivery(other.id, "msg_bob")
    # a call to the removed endpoint was under way: its sender looks for more, and may disable the endpoint
    assert "msg_bob" not in [found.public_id for found in await store.due_webhook_deliveries(removed.id, 10)]
    assert not await store.disable_webhook(removed.id, "it answered 410 Gone")
    assert await store.webhook(other.account_id, other.public_id) == other


async def test_the_outcome_of_a_call_to_a_removed_endpoint_is_not_that_of_another_ones_event(
    store: SqlDatabase,
) -> None:
    role = await store.take_role("active", "me", 10**9)
    other, removed = await endpoint(store, "bob"), await endpoint(store, "ann")
    await store.add_test_delivery(removed.id, "msg_ann")
    [called] = await store.due_webhook_deliveries(removed.id, 10)
    await store.remove_webhook(removed.id)
    assert await store.prune("webhook_deliveries", 3600.0, 10, role) == 1
    await store.add_test_delivery(other.id, "msg_bob")

    outcome = WebhookAttempt(
        delivery_id=called.id, webhook_id=called.webhook_id, state=DeliveryState.DELIVERED, status=200
    )
    await store.settle_webhook_deliveries([outcome])

    [waiting] = await store.due_webhook_deliveries(other.id, 10)
    assert (waiting.public_id, waiting.state) == ("msg_bob", DeliveryState.PENDING)
