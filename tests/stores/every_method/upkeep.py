"""Call every method that keeps settings, prunes old rows and counts figures."""

from datetime import timedelta

from genlock.domain.figures import hour_number, hour_start
from genlock.domain.queued_message import QueuedMessage
from genlock.domain.upload import Upload
from genlock.engine.retention import KEEP_SECONDS, ROLLING
from genlock.ports import SetKey
from genlock.stores.database import SqlDatabase
from genlock.stores.hourly_figures import BLOCK_JOBS
from genlock.stores.parking import Parking


async def use_kv_and_retention(store: SqlDatabase) -> None:
    assert await store.kv_put_if_absent("key", "value") == "value"
    message = QueuedMessage(key="tell:1:a", account_id=1, text="text", after=1.0)
    assert not await store.kv_replace_by_message("no such key", message)
    await store.kv_put("key", "other")
    assert await store.kv_get("key")
    assert await store.kv_list("k")
    await store.kv_delete("key")
    await store.read_clock()
    await store.live_instances(3.0)
    await store.stats()
    await store.save_ledger_checkpoints(0, 10)
    await store.aged_jobs(0, 60.0, 10)
    role = await store.take_role("active", "me", 3.0)
    await store.add_upload(Upload(key="old", account_id=1, file="f", kind="image", seconds=None, age_seconds=0))
    for what in KEEP_SECONDS:
        await (store.prune_next if what in ROLLING else store.prune)(what, -1.0, 10, role)
    after = await store.last_callback_id()
    await store.store_callback("kie", None, "", b"marked")
    assert await store.find_callbacks(after, b"mark") == [(None, "new")]
    assert await store.delete_callbacks(after, b"mark") == 1
    await Parking(store.session).park("restored")
    await store.session.one("recount_open_api_jobs")


async def use_figures(store: SqlDatabase) -> None:
    """Count the newest jobs, accounts and payments, and read the figures of three days."""
    role = await store.take_role("active", "me", 3.0)
    job = (await store.jobs(limit=1))[0]
    await store.due_job_blocks(2)
    await store.fold_jobs((job.id - 1) // BLOCK_JOBS, role)
    await store.changed_topup_hours(2)
    hour = hour_number(await store.read_clock())
    await store.fold_topups(hour, role)
    position = await store.figure_position("orders")
    await store.orders_after(job.id - 1, 10)
    await store.accounts_after(job.account_id - 1, 10)
    await store.payments_after(hour * 3_600_000_000, 10)
    key = SetKey(kind="active", span="hour", start=hour, bot="bot", piece=0)
    await store.account_sets([key])
    of_parts = [SetKey(kind=kind, span="hour", start=hour, bot="bot", piece=0) for kind in ("started", "first_order")]
    assert await store.save_account_sets("orders", position, "5", dict.fromkeys((key, *of_parts), 1), role)
    span = (hour - 72, hour + 1)
    await store.period_figures(*span)
    await store.provider_figures(*span)
    await store.model_figures(*span)
    half = (hour_start(hour), hour_start(hour) + timedelta(minutes=30))
    await store.part_orders([half])
    await store.part_models([half])
    await store.count_started([half])
    for accounts in (store.part_active, store.part_started, store.part_first_orders):
        await accounts([half])
    await store.model_durations(*span)
    await store.delivery_durations(*span)
    await store.topup_figures(*span)
    await store.account_set_sizes("active", *span)
    await store.account_sets_of_days("active", [hour // 24 - 1, hour // 24])
    await store.account_set_days("active", hour // 24 - 3, hour // 24 + 1)
    assert 0 in await store.account_set("active", *span)
    await store.heartbeat("me", 3.0)
    await store.describe_instance("me", "1.0")
    assert [instance.version for instance in await store.instances() if instance.id == "me"] == ["1.0"]
