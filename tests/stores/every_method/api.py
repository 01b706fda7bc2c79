"""Call every method that the API and its webhooks use."""

from datetime import timedelta

from genlock.domain.api_key import ALL_SCOPES, NewApiKey
from genlock.domain.webhook import DeliveryState, NewWebhook, WebhookAttempt
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, PRICE, account_with, order
from tests.stores.history import BACKLOG, HEAVY


async def use_api(store: SqlDatabase) -> None:
    account_id = await account_with(store)
    wanted = NewApiKey(
        account_id=account_id,
        name="shop",
        scopes=ALL_SCOPES,
        shown="glk_a",
        secret_hash=f"hash of {account_id}",
        spend_limit=PRICE * 2,
        request_key=f"request of {account_id}",
        author="operator",
    )
    key, _ = await store.add_api_key(wanted)
    assert await store.api_key_by_secret(wanted.secret_hash)
    assert await store.api_key(key.id)
    assert await store.api_keys(account_id, before=None, limit=10)
    assert await store.api_keys(None, before=None, limit=10)
    job = (await store.accept_job(order(account_id, api_key_id=key.id), ME)).job
    assert await store.api_job(job.id)
    assert await store.api_jobs_by_id([job.id])
    assert await store.api_job_versions([job.id])
    assert await store.api_jobs(account_id, before=None, limit=10)
    assert await store.api_jobs_after({account_id: 0}, 10)
    assert await store.newest_api_job_between(account_id, job.request_key[:-1], f"{job.request_key}0")
    assert await store.api_jobs_without_end(account_id, 10)
    await store.api_jobs_without_end(HEAVY, 10)
    assert (await store.order_state(account_id, "another")).open_api_jobs == 1
    assert await store.api_key_with_job(wanted.secret_hash, job.id)
    assert await store.api_key_with_order(wanted.secret_hash, job.request_key)
    assert (await store.take_block("api:1", 5, 1.0, 10)).granted == 5
    assert await store.revoke_api_key(key.id)
    await store.use_allowance("support", 5, 10)
    await use_webhooks(store, account_id)


async def use_webhooks(store: SqlDatabase, account_id: int) -> None:
    added = await store.add_webhook(NewWebhook(account_id=account_id, public_id="we_1", url="https://x.org"), most=5)
    assert added is not None
    assert await store.webhooks(account_id)
    assert await store.webhook(account_id, added.public_id)
    assert await store.change_webhook(added.id, description="shop")
    rotated = await store.rotate_webhook_secret(added, "sealed", 60.0)
    assert rotated is not None
    assert await store.seal_webhook_secrets(rotated, "sealed", "")
    assert await store.webhooks_after(added.id - 1, 1)
    assert await store.add_test_delivery(added.id, "msg_1")
    assert await store.claim_webhooks("me", limit=5, degraded=5, hold_seconds=60.0)
    [delivery] = await store.due_webhook_deliveries(added.id, 5)
    assert await store.due_webhook_tests(added.id, 5) == [delivery]
    await store.due_webhook_deliveries(BACKLOG, 5)
    await store.job_webhook_deliveries(1, 5)
    assert await store.count_waiting_deliveries(added.id, 5) == 1
    assert await store.webhook_delivery(added.id, delivery.public_id) == delivery
    await store.settle_webhook_deliveries(
        [WebhookAttempt(delivery_id=delivery.id, webhook_id=delivery.webhook_id, state=DeliveryState.FAILED)]
    )
    await use_delivery_lists(store, added.id, delivery.public_id)
    assert await store.redeliver(added.id, delivery.public_id)
    await store.settle_webhook_deliveries(
        [WebhookAttempt(delivery_id=delivery.id, webhook_id=delivery.webhook_id, state=DeliveryState.FAILED)]
    )
    times = delivery.event_at, delivery.event_at + timedelta(seconds=1)
    assert await store.redeliver_between(added.id, *times, failed_only=True, limit=5) == 1
    await store.release_webhook(added.id, "me", 0.0, failed=True)
    await store.release_leases("me")
    assert await store.disable_webhook(added.id, "gone")
    assert await store.remove_webhook(added.id)


async def use_delivery_lists(store: SqlDatabase, webhook_id: int, public_id: str) -> None:
    assert await store.webhook_deliveries(webhook_id, state=None, before=None, limit=5)
    for state in DeliveryState:
        await store.webhook_deliveries(HEAVY, state=None, before=None, limit=5)
        await store.webhook_deliveries(HEAVY, state=state, before=None, limit=5)
        await store.webhook_deliveries(webhook_id, state=state, before=public_id, limit=5)
    now = await store.read_clock()
    for failed_only in (True, False):
        await store.redeliver_between(HEAVY, now, now + timedelta(days=1), failed_only=failed_only, limit=5)
