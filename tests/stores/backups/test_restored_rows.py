"""Backups of both databases, restored into both: rehearsed with real rows of every table."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

from genlock.app.databases import open_store
from genlock.domain.draft import SavedDraft
from genlock.domain.job import AttentionCode, Notice, State
from genlock.domain.money import EntryKind
from genlock.domain.update import UpdateState
from genlock.domain.upload import Upload
from genlock.stores.database import SqlDatabase
from tests.stores.backups.copies import backed_up, restored, rewritten, rows_of
from tests.stores.builders import ManualClock, account_with, delivered, end, queued, running, see, submitting, update
from tests.stores.conftest import RecordingObserver
from tests.stores.every_method.engine import use_jobs, use_updates


async def fill(store: SqlDatabase, clock: ManualClock) -> None:
    """Put rows into every table, with texts and bytes that are hard to copy."""
    await use_jobs(store, clock)
    await use_updates(store)
    account_id = await account_with(store)
    body = json.dumps({"text": 'back\\slash "quote"\ttab\nline\r\x01 \u2028 кот 🐈 {} \\.'}, ensure_ascii=False)
    await store.save_draft(account_id, 8, SavedDraft(version=0, message=None, body=body, uploads=('a"b', "c\\d,é")))
    await store.store_callback("kie", None, "", bytes(range(256)))
    await store.transfer(account_id, EntryKind.TOPUP, 1, "stars:charge")  # the payment that use_jobs added
    await store.take_free_run(account_id, "key", 1)
    await store.add_upload(Upload(key="a", account_id=1, file="f", kind="image", seconds=None, age_seconds=0))
    await store.kv_put("key", "\\N")
    await store.kv_put("other", "")


# what is restored


async def test_a_restore_brings_every_row_back_into_either_database(
    store: SqlDatabase, clock: ManualClock, url: str, any_url: str, file: Path, tmp_path: Path
) -> None:
    await fill(store, clock)
    before = await rows_of(url, tmp_path)
    assert sum(bool(rows) for rows in before.values()) >= 19

    await backed_up(url, file)
    summary = await restored(any_url, file, resume=True)

    after = await rows_of(any_url, tmp_path)
    assert len(after["audit"]) == len(before["audit"]) + 1  # the restore itself
    assert {**after, "audit": []} == {**before, "audit": []}
    assert summary.rows == {table: len(rows) for table, rows in before.items()}
    assert summary.violations == ()
    assert summary.left_out == summary.migrated == ()


async def test_the_restored_database_works(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    job = await queued(store)
    await backed_up(url, file)
    await restored(new_url, file)

    again = await opened()
    assert again.applied == []
    new = await queued(again)
    assert new.id > job.id
    assert (await see(again, job)).price == job.price
    assert await again.violations(settled=False) == []


async def test_postgresql_does_not_give_out_ids_again_that_chats_may_still_name(
    postgres: SqlDatabase, shared_postgres_url: str, postgres_url: str, file: Path
) -> None:
    job = await queued(postgres)
    await backed_up(shared_postgres_url, file)
    later = await queued(postgres)
    await restored(postgres_url, file)

    store = await open_store(postgres_url, observer=RecordingObserver())
    new = await queued(store)
    await store.close()

    assert new.id > later.id > job.id


# what was open


async def test_open_work_waits_for_the_operator_after_a_restore(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    waiting = [await queued(store), await submitting(store), await running(store), await queued(store, None)]
    notice_due = await delivered(store, notice=Notice.WANTED)
    assert notice_due.notice is Notice.DUE
    await store.store_update(update(1))
    await store.store_callback("kie", None, "", b"{}")
    await store.begin_broadcast("text", bot="bot", author="me", request_key="key")
    await store.kv_put("tell:1:a", "{}")
    await store.kv_put("chat:refunded:charge", "op", "bot")
    await backed_up(url, file)

    summary = await restored(new_url, file)

    assert (summary.parked_jobs, summary.parked_updates, summary.stopped_broadcasts) == (4, 1, 1)
    again = await opened()
    listed = await again.jobs_needing_attention(10)
    assert [job.id for job in listed] == [job.id for job in waiting]
    assert {job.attention_code for job in listed} == {AttentionCode.PARKED}
    assert all("restored from the backup of 20" in str(job.attention_reason) for job in listed)
    assert (await see(again, notice_due)).notice is Notice.SENT
    assert [dead_update.note[:22] for dead_update in await again.updates(UpdateState.DEAD, 10)] == [
        "restored from the back"
    ]
    assert await again.running_broadcast() is None
    assert [*await again.kv_list("tell:"), *await again.kv_list("chat:refunded:", "bot")] == []
    assert await again.violations(settled=True) == []


async def test_the_operator_continues_or_cancels_a_restored_job(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    account_id = await account_with(store, 1000)
    polled = await running(store, account_id=account_id)
    dropped = await queued(store, account_id=account_id)
    await backed_up(url, file)
    await restored(new_url, file)

    again = await opened()
    assert await again.retry_job(polled.id)
    assert (await see(again, polled)).attention_reason is None
    assert (await see(again, polled)).state is State.RUNNING
    assert (await again.wallet(account_id)).held == 200
    await end(again, dropped, State.CANCELLED)
    assert (await again.wallet(account_id)).held == 100
    assert await again.violations(settled=False) == []


async def test_resume_leaves_open_work_as_it_was(
    store: SqlDatabase, url: str, new_url: str, file: Path, opened: Callable[[], Awaitable[SqlDatabase]]
) -> None:
    job = await running(store)
    await store.store_update(update(1))
    await backed_up(url, file)

    await restored(new_url, file, resume=True)

    again = await opened()
    assert (await see(again, job)).due_at == job.due_at
    assert len(await again.updates(UpdateState.NEW, 10)) == 1


# what was the operator's own


async def test_tables_and_columns_of_the_operator_are_left_out_and_named(
    store: SqlDatabase, url: str, new_url: str, file: Path
) -> None:
    account_id = await account_with(store, 700)
    await backed_up(url, file)

    def add(lines: list[bytes]) -> list[bytes]:
        header = json.loads(lines[0])
        header["tables"]["notes"] = ["id"]
        header["tables"]["accounts"].append("mine")
        rows = [json.loads(line) for line in lines[1:]]
        at = rows.index({"table": "accounts"})
        rows[at + 1].append("x")
        end = {"rows": {**rows[-1]["rows"], "notes": 1}}
        return [json.dumps(line).encode() + b"\n" for line in (header, *rows[:-1], {"table": "notes"}, [1], end)]

    rewritten(file, add)
    summary = await restored(new_url, file)

    assert summary.left_out == ("accounts.mine", "notes")
    assert summary.rows["accounts"] == 1
    assert account_id
