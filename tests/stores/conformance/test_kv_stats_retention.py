"""Key-value entries, stats and retention."""

import asyncio

import pytest

from genlock.domain.draft import SavedDraft
from genlock.domain.inbox import InboxState
from genlock.domain.job import State, hash_secret
from genlock.domain.money import EntryKind
from genlock.domain.promo import Promo
from genlock.domain.update import Received, UpdateState
from genlock.domain.upload import Upload
from genlock.engine.retention import ROLLING
from genlock.metrics import GAUGES, STATS_NAMES
from genlock.ports import Role
from genlock.stores.database import SqlDatabase
from tests.stores.builders import ME, SECRET, ManualClock, account_with, end, ended, finish, queued, running, update
from tests.stores.conftest import Raw

DAY = 86_400.0


async def test_concurrent_writers_of_an_absent_entry_agree_on_one_value(store: SqlDatabase, clock: ManualClock) -> None:
    values = await asyncio.gather(*(store.kv_put_if_absent("secret", f"value {number}") for number in range(5)))
    assert len(set(values)) == 1
    clock.advance(60)
    assert await store.kv_put_if_absent("secret", "late") == values[0]
    entry = await store.kv_get("secret")
    assert entry is not None
    assert (entry.value, entry.age) == (values[0], 60.0)


async def test_an_entry_can_be_changed_and_deleted(store: SqlDatabase) -> None:
    assert await store.kv_get("alarm:a") is None
    await store.kv_put("alarm:a", "1")
    await store.kv_put("alarm:a", "2")
    await store.kv_put("other", "3")
    assert [(entry.key, entry.value) for entry in await store.kv_list("alarm:")] == [("alarm:a", "2")]
    await store.kv_delete("alarm:a")
    assert await store.kv_list("alarm:") == []


async def test_the_clock_is_the_stores(store: SqlDatabase, clock: ManualClock) -> None:
    assert await store.read_clock() == clock.now()


async def test_live_instances_are_those_with_a_recent_heartbeat(store: SqlDatabase, clock: ManualClock) -> None:
    await store.heartbeat("old", 3.0)
    clock.advance(5)
    await store.heartbeat("new", 3.0)
    assert await store.live_instances(3.0) == ["new"]
    assert await store.live_instances(10.0) == ["old", "new"]


async def test_every_gauge_has_a_figure(store: SqlDatabase) -> None:
    await store.kv_put("money_check", "")
    await store.kv_put("ledger_violations", "0")
    missing = {STATS_NAMES.get(name, name) for name in GAUGES} - (await store.stats()).keys()
    assert not missing, "the gauge would be 0 and its alarm silent"


async def test_stats_count_open_work_and_its_age(store: SqlDatabase, clock: ManualClock) -> None:
    assert {name: value for name, value in (await store.stats()).items() if value} == {}
    await queued(store)
    undelivered = await ended(store)
    clock.advance(100)
    await store.store_update(update(1))
    await store.store_callback("kie", None, "", b"{}")
    await store.heartbeat("me", 3.0)
    clock.advance(1)
    stats = await store.stats()
    assert (stats["queued"], stats["queued_age"]) == (1, 101)
    assert (stats["undelivered"], stats["undelivered_age"]) == (1, 101)
    assert (stats["due"], stats["due_age"]) == (2, 101 - ME.seconds)
    assert (stats["callbacks"], stats["callback_age"]) == (1, 1)
    assert (stats["updates"], stats["update_age"], stats["instances"]) == (1, 1, 1)
    await finish(store, undelivered)
    assert (await store.stats())["undelivered"] == 0


async def test_stats_count_orphans_and_dead_updates(store: SqlDatabase, clock: ManualClock) -> None:
    for _ in range(2):
        callback = await store.store_callback("kie", None, "", b"{}")
        await store.settle_callback(callback.id, InboxState.ORPHAN, "task")
        clock.advance(601)
    callback = await store.store_callback("kie", None, "", b"{}")
    await store.settle_callback(callback.id, InboxState.ORPHAN, "task")
    await store.store_update(update(1))
    [queue] = await store.claim_update_queues(1, ME, bots=["bot"], urgent=False)
    await store.settle_update(queue, UpdateState.DEAD, "", ME)
    stats = await store.stats()
    assert (stats["orphans"], stats["orphans_fresh"], stats["updates_dead"]) == (3, 1, 1)


async def test_stats_say_for_ten_minutes_that_the_bot_was_refused(store: SqlDatabase, clock: ManualClock) -> None:
    assert (await store.stats())["bot_refused"] == 0
    await store.kv_put("bot_refused", "BotFrozen")
    assert (await store.stats())["bot_refused"] == 1
    clock.advance(601)
    assert (await store.stats())["bot_refused"] == 0


async def test_stats_do_not_count_errors_of_the_user_as_failures(store: SqlDatabase, clock: ManualClock) -> None:
    for code in ("provider_failed", "moderation"):
        await end(store, await running(store, code), State.FAILED, error_code=code)
    await end(store, await running(store, "t"), State.CANCELLED, error_code="cancelled")
    await ended(store)
    stats = await store.stats()
    assert (stats["lately_ended"], stats["lately_failed"]) == (3, 1)
    clock.advance(601)
    assert (await store.stats())["lately_ended"] == 0


async def test_balances_that_do_not_match_the_ledger_are_found(store: SqlDatabase, raw: Raw) -> None:
    account = await account_with(store, 500)
    assert await store.wallet_violations(0, account) == []
    await raw(f"UPDATE accounts SET available = 600 WHERE id = {account}")  # noqa: S608
    assert [violation.subject for violation in await store.wallet_violations(0, account)] == [str(account)]
    assert await store.wallet_violations(account, account + 1) == []


async def test_an_account_with_many_entries_is_checked_from_its_last_checkpoint(
    store: SqlDatabase, raw: Raw, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("genlock.stores.invariants.CHECKPOINT_ENTRIES_MIN", 3)
    account, small = await account_with(store, 500), await account_with(store, 5)
    for number in range(3):
        assert await store.transfer(account, EntryKind.GRANT, 1, f"old-{number}")
    clock.advance(3601)
    assert await store.transfer(account, EntryKind.GRANT, 1, "new")
    await store.save_ledger_checkpoints(0, 10**9)

    assert await raw("SELECT account_id, available, held FROM ledger_checkpoints") == [(account, 503, 0)]
    assert await store.wallet_violations(0, 10**9) == []

    await raw("UPDATE ledger SET amount = 9 WHERE key = 'new'")
    assert [violation.subject for violation in await store.wallet_violations(0, 10**9)] == [str(account)]
    await raw("UPDATE ledger SET amount = 1 WHERE key = 'new'")
    await raw("UPDATE ledger SET amount = 9 WHERE key = 'old-0'")
    assert await store.wallet_violations(0, 10**9) == []  # only the check of everything reads it again
    assert [violation.subject for violation in await store.violations(settled=False)] == [str(account)]
    await raw("UPDATE ledger SET amount = 1 WHERE key = 'old-0'")
    clock.advance(7200)
    for number in range(3):
        assert await store.transfer(account, EntryKind.GRANT, 1, f"newer-{number}")
    clock.advance(3601)
    await store.save_ledger_checkpoints(0, 10**9)
    assert await raw("SELECT account_id, available, held FROM ledger_checkpoints") == [(account, 507, 0)]
    assert await store.wallet_violations(0, 10**9) == []
    assert small != account


# retention


async def old_rows(store: SqlDatabase, clock: ManualClock) -> Role:
    for number in range(3):
        assert await store.store_update(update(number)) is Received.FRESH
        callback = await store.store_callback("kie", None, "", b"{}")
        await store.settle_callback(callback.id, InboxState.UNREADABLE)
    [queue] = await store.claim_update_queues(1, ME, bots=["bot"], urgent=False)
    await store.settle_update(queue, UpdateState.DONE, "", ME)
    await sent(store, "left")
    clock.advance(DAY)
    return await store.take_role("active", "me", 3.0)


async def test_old_rows_are_pruned_a_few_at_a_time(store: SqlDatabase, clock: ManualClock, raw: Raw) -> None:
    role = await old_rows(store, clock)
    for what in ("updates", "callbacks"):
        assert await store.prune(what, DAY + 1, 10, role) == 0, "not old enough"
    assert await store.prune("updates", DAY - 1, 10, role) == 1
    assert await raw("SELECT count(*) FROM updates WHERE state = 'new'") == [(2,)], "waiting updates are not pruned"
    assert [await store.prune("callbacks", DAY - 1, 2, role) for _ in range(3)] == [2, 1, 0]


async def test_rows_that_must_stay_do_not_keep_old_ones_behind_them(
    store: SqlDatabase, clock: ManualClock, raw: Raw
) -> None:
    """Updates for a bot whose token was removed wait without end."""
    role = await old_rows(store, clock)
    await raw("UPDATE updates SET state = CASE WHEN id = (SELECT max(id) FROM updates) THEN 'done' ELSE 'new' END")
    await raw("UPDATE inbox SET state = CASE WHEN id = (SELECT max(id) FROM inbox) THEN 'done' ELSE 'orphan' END")
    for what in ("updates", "callbacks"):
        assert [await store.prune(what, DAY - 1, 2, role) for _ in range(2)] == [1, 0]


async def test_orphans_wait_until_they_expire(store: SqlDatabase, clock: ManualClock) -> None:
    callback = await store.store_callback("kie", None, "", b"{}")
    await store.settle_callback(callback.id, InboxState.ORPHAN, "task")
    clock.advance(DAY)
    role = await store.take_role("active", "me", 3.0)
    assert await store.prune("callbacks", DAY - 1, 10, role) == 0
    await store.expire_orphans(1.0, role)
    assert await store.prune("callbacks", DAY - 1, 10, role) == 1


async def test_unauthenticated_callbacks_are_counted_and_pruned_first(
    store: SqlDatabase, clock: ManualClock, raw: Raw
) -> None:
    job = await running(store, "task")
    known = await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")
    await store.settle_callback(known.id, InboxState.DONE)
    for state in (InboxState.UNREADABLE, InboxState.ORPHAN):
        callback = await store.store_callback("kie", None, "", b"{}")
        await store.settle_callback(callback.id, state)
    assert [await store.count_unauthenticated_callbacks(60.0, limit) for limit in (1, 10)] == [1, 2]
    clock.advance(DAY)
    assert await store.count_unauthenticated_callbacks(60.0, 10) == 0
    role = await store.take_role("active", "me", 3.0)
    assert await store.prune("unauthenticated_callbacks", DAY + 1, 10, role) == 0, "not old enough"
    assert await store.prune("unauthenticated_callbacks", DAY - 1, 10, role) == 1
    assert sorted(await raw("SELECT state FROM inbox")) == [("done",), ("orphan",)]


async def test_only_the_beginning_of_an_unauthenticated_callback_is_stored(store: SqlDatabase) -> None:
    job = await running(store, "task")
    long = b"x" * 60_000
    for job_id, task in ((None, "task"), (None, "other"), (None, ""), (job.id, "")):
        callback = await store.store_callback("kie", job_id, hash_secret(SECRET), long)
        if task:
            await store.note_untrusted_callback(callback.id, "kie", task)
        else:
            await store.settle_callback(callback.id, InboxState.UNREADABLE)
    states = (InboxState.MATCHED, InboxState.ORPHAN, InboxState.UNREADABLE)
    lengths = [len(stored_callback.body) for state in states for stored_callback in await store.callbacks(state, 10)]
    assert lengths == [2000, 2000, 60_000, 2000]


async def sent(store: SqlDatabase, address: str, account: int = 1) -> None:
    await store.add_upload(
        Upload(key=address, account_id=account, file="id", kind="image", seconds=None, age_seconds=0)
    )


async def test_uploads_that_no_order_and_no_draft_uses_are_pruned(
    store: SqlDatabase, clock: ManualClock, raw: Raw
) -> None:
    for name in ("left", "left-too", "ordered", "begun"):
        await sent(store, name)
    await sent(store, "elsewhere", account=2)
    await store.mark_upload_used("ordered")
    await store.save_draft(1, 7, SavedDraft(version=0, message=None, body="{}", uploads=("begun", "elsewhere")))
    clock.advance(DAY)
    await sent(store, "young")
    role = await store.take_role("active", "me", 3.0)
    assert await store.prune_next("uploads", DAY + 1, 10, role) == 0, "not old enough"
    assert [await store.prune_next("uploads", DAY - 1, 2, role) for _ in range(3)] == [2, 1, 0]

    assert sorted(await raw("SELECT address FROM uploads")) == [("begun",), ("ordered",), ("young",)]
    await store.save_draft(1, 7, SavedDraft(version=1, message=None, body="{}"))
    assert await store.prune_next("uploads", DAY - 1, 10, role) == 1, "no draft uses it any more"


async def test_stats_count_models_that_cost_more_than_was_charged_for(store: SqlDatabase, clock: ManualClock) -> None:
    await store.kv_put("cost_above_price:old", "3")
    clock.advance(3601)
    assert (await store.stats())["costs_above_price"] == 0
    await store.kv_put("cost_above_price:one", "11")
    await store.kv_put("cost_above_price:one", "12")
    await store.kv_put("cost_above_price:two", "9")
    stats = await store.stats()

    assert (stats["costs_above_price"], stats["cost_above_price_job"]) == (2, 12)


async def test_stats_count_refunds_that_are_not_confirmed(store: SqlDatabase, clock: ManualClock) -> None:
    await store.kv_put_if_absent("chat:refund:one", "op")
    await store.kv_put_if_absent("chat:refunded", "not one of them")
    clock.advance(100)
    await store.kv_put_if_absent("chat:refund:two", "op")
    await store.kv_put_if_absent("chat:refund:one", "op")
    stats = await store.stats()

    assert (stats["refunds_open"], stats["refund_age"]) == (2, 100)


@pytest.mark.parametrize("what", ["updates", "callbacks", "unauthenticated_callbacks", "uploads"])
async def test_only_the_active_instance_prunes(store: SqlDatabase, clock: ManualClock, what: str) -> None:
    await store.add_upload(Upload(key="a", account_id=1, file="f", kind="image", seconds=None, age_seconds=0))
    role = await old_rows(store, clock)
    clock.advance(10)
    leader = await store.take_role("active", "other", 3.0)
    prune = store.prune_next if what in ROLLING else store.prune
    assert await prune(what, 1.0, 10, role) == 0
    assert [await prune(what, 1.0, 10, leader) for _ in range(2)].count(0) == 1


async def test_what_is_no_longer_needed_is_pruned_by_age(store: SqlDatabase, raw: Raw, clock: ManualClock) -> None:
    account = await account_with(store, 5)
    await store.save_draft(account, 7, SavedDraft(version=0, message=8, body='{"model":"m"}', uploads=("a",)))
    await store.add_upload(Upload(key="a", account_id=account, file="f", kind="image", seconds=None, age_seconds=0))
    await store.mark_upload_used("a")
    await store.take_free_run(account, "day", 1)
    await store.add_audit(key="k", actor="me", action="look", subject="", detail="")
    for code, amount, runs in (("CREDITS", 5, 0), ("RUNS", 0, 5)):
        promo = Promo(code=code, amount=amount, runs=runs, uses_max=None, per_account=1, until=None)
        await store.create_promo(promo, lasting=None, author="op")
        await store.use_promo(code, account, code)
        await store.close_promo(code)
    await store.store_update(update(1))
    [queue] = await store.claim_update_queues(1, ME, bots=["bot"], urgent=False)
    role = await store.take_role("active", "me", 3.0)

    async def prune() -> dict[str, int]:
        rows = {}
        for what in ("ordered_uploads", "audit", "promo_uses"):
            rows[what] = await store.prune(what, 60.0, 10, role)
        for what in ("free_runs", "drafts", "update_queues"):
            rows[what] = await store.prune_next(what, 60.0, 10, role)
            assert await store.prune_next(what, 60.0, 10, role) == 0  # after the last row: the next call begins again
        return rows

    assert set((await prune()).values()) == {0}
    clock.advance(61)
    await store.settle_update(queue, UpdateState.DONE, "", ME)
    assert await prune() == {
        "ordered_uploads": 1, "audit": 1, "promo_uses": 1, "free_runs": 1, "drafts": 1, "update_queues": 1,
    }  # fmt: skip
    assert await raw("SELECT code FROM promo_uses") == [("RUNS",)]  # its free runs are not used up
    assert await store.draft(account, 7) == SavedDraft(version=2, message=None, body="{}")
    assert await store.store_update(update(2)) is Received.FRESH  # in a new queue
    assert (await store.claim_update_queues(1, ME, bots=["bot"], urgent=False))[0].update is not None


async def test_a_zombie_leader_prunes_nothing(store: SqlDatabase, clock: ManualClock) -> None:
    await store.add_audit(key="k", actor="me", action="look", subject="", detail="")
    clock.advance(61)
    await store.take_role("active", "me", 3.0)
    zombie = Role(holder="other", epoch=1)
    assert await store.prune("audit", 60.0, 10, zombie) == 0
    assert await store.prune_next("update_queues", 0.0, 10, zombie) == 0
