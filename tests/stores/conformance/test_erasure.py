"""Erasure: nothing personal of the user is left in any column, other users keep theirs, and the money adds up."""

from typing import Any

import pytest

from genlock.domain.draft import SavedDraft
from genlock.domain.job import Delivery, Notice, State, hash_secret
from genlock.domain.job_event import EventRow
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.queued_message import ERASED, QUEUED
from genlock.domain.update import UpdateState
from genlock.domain.upload import Upload, UploadCopy
from genlock.domain.webhook import NewWebhook
from genlock.engine.erasure import AWAITED, FILES_OF, ROWS_OF, Erasure
from genlock.ports import Reschedule
from genlock.stores.database import SqlDatabase
from tests.stores.builders import (
    ME,
    SECRET,
    ManualClock,
    account_with,
    claimed,
    end,
    ended,
    ensure_profile,
    finish,
    new_key,
    queued,
    running,
    see,
    update,
)
from tests.stores.conftest import Raw

TABLES = (
    "accounts", "jobs", "attempts", "ledger", "inbox", "updates", "kv", "profiles", "drafts", "uploads",
    "upload_copies", "payments", "free_runs", "promo_uses", "broadcasts", "audit", "job_events",
)  # fmt: skip


async def user_with(store: SqlDatabase, mark: str) -> int:
    """A user whose every text contains the mark, with a delivered job and one update."""
    account_id = await store.ensure_account("chat", "bot", f"id-{mark}")
    await store.transfer(account_id, EntryKind.GRANT, 1000, f"admin:{account_id}", f"for {mark}")
    await ensure_profile(store, account_id, language="en", name=f"Ann {mark}", username=mark, referred_by=None)
    await store.set_ban(account_id, banned=True, reason=f"{mark} was rude")
    await store.save_draft(account_id, 7, SavedDraft(version=0, message=None, body=f'{{"text": "{mark}"}}'))
    await store.kv_put(f"{QUEUED}{account_id}:1", f'{{"text": "{mark}"}}')
    if mark == "annmark":  # an operator has not confirmed it
        await store.kv_put("chat:asked:9", f'{{"name": "ban", "args": ["@{mark}", "rude"]}}', "bot")
    address = f"https://files/{mark}"
    await store.add_upload(
        Upload(key=address, account_id=account_id, file=mark, kind="image", seconds=None, age_seconds=0)
    )
    for provider in ("one", "two"):
        await store.save_upload_copy(
            UploadCopy(key=address, provider=provider, url=f"https://{provider}/{mark}", left_seconds=60.0)
        )
    await store.add_audit(
        key=str(account_id), actor="op", action="ban", subject=str(account_id), detail=f"{mark} was rude"
    )
    return account_id


async def left_of(raw: Raw, mark: str) -> list[tuple[str, Any]]:
    """Where the mark still is, besides the external id of the account."""
    found = []
    for table in TABLES:
        for row in await raw(f"SELECT * FROM {table}"):  # noqa: S608
            found += [(table, value) for value in row if mark in str(value) and value != f"id-{mark}"]
    return found


async def test_an_erased_user_leaves_only_numbers_and_money(store: SqlDatabase, raw: Raw) -> None:
    ann, bob = await user_with(store, "annmark"), await user_with(store, "bobmark")
    for account_id, mark in ((ann, "annmark"), (bob, "bobmark")):
        job = await ended(store, account_id=account_id, price=10)
        await store.store_callback("kie", job.id, hash_secret(SECRET), f'{{"p": "{mark}"}}'.encode())
        await raw(f"UPDATE jobs SET input = '\"{mark}\"', error_text = '{mark}' WHERE id = {job.id}")  # noqa: S608
        await raw(f"UPDATE attempts SET sent_input = '{mark}', handle = '{mark}' WHERE job_id = {job.id}")  # noqa: S608
        row = EventRow(correlation_id=job.correlation_id, number=1, events=f'[[0,"DELIVER_FAIL",{{"by":"{mark}"}}]]')
        await store.add_job_events("me", [row])
        assert await finish(store, job, Delivery.DELIVERED)
        assert await store.begin_notice(job.id, job.lease_token)
    await raw("UPDATE jobs SET due_at = NULL, lease_owner = NULL")
    await raw("UPDATE inbox SET state = 'done', due_at = NULL")
    for number, (name, mark) in enumerate((("id-annmark", "annmark"), ("id-bobmark", "bobmark"))):
        await store.store_update(update(number + 1))
        change = f"UPDATE updates SET state = 'dead', ordering_key = '{name}', body = '{mark}' WHERE state = 'new'"  # noqa: S608
        await raw(change)
    await raw("UPDATE update_queues SET waiting = 0, due_at = NULL")
    assert {table for table, _ in await left_of(raw, "annmark")} >= {
        "jobs", "attempts", "inbox", "updates", "profiles", "drafts", "uploads", "upload_copies", "audit", "ledger",
        "job_events", "kv",
    }  # fmt: skip
    before, bobs = await store.wallet(ann), await left_of(raw, "bobmark")
    erasure = Erasure(store)
    await erasure.request(ann, "op", "erase 1")

    assert await erasure.run("bot", older_than=60.0) == []
    assert await erasure.run("another bot", older_than=0.0) == []
    assert await erasure.run("bot", older_than=0.0) == [ann]
    assert await erasure.run("bot", older_than=0.0) == []

    assert await left_of(raw, "annmark") == []
    assert await left_of(raw, "bobmark") == bobs
    assert await store.wallet(ann) == before
    assert (await store.profile(ann)).banned_at is not None  # an erasure lifts no ban
    assert await store.ensure_account("chat", "bot", "id-annmark") == ann  # so gifts are not given twice
    saved = await store.draft(ann, 7)
    assert saved is not None
    assert (saved.version, saved.body) == (2, "{}")  # versions are part of idempotency keys
    assert await store.violations(settled=False) == []


async def test_an_erasure_ends_api_keys_and_deletes_webhooks(store: SqlDatabase) -> None:
    account_id, other_id = await account_with(store), await account_with(store)
    for number, owner in enumerate((account_id, other_id)):
        await store.add_api_key(new_key(owner, number, name="Ann's shop"))
        url = "https://ann.example.org"
        assert await store.add_webhook(NewWebhook(account_id=owner, public_id=f"we_{number}", url=url), most=20)

    for _ in range(2):
        await store.erase_account(account_id, 10)

    [key] = await store.api_keys(account_id, before=None, limit=10)
    assert (key.name, key.revoked_at is not None) == ("", True)
    assert await store.webhooks(account_id) == []
    [kept] = await store.api_keys(other_id, before=None, limit=10)
    assert (kept.name, kept.revoked_at, len(await store.webhooks(other_id))) == ("Ann's shop", None, 1)


async def test_an_erasure_leaves_the_message_that_tells_of_it_in_the_queue(store: SqlDatabase) -> None:
    """Another instance may have erased the account at the same time."""
    ann, bob = await account_with(store), await account_with(store)
    for key in (f"{ann}:{ERASED}1", f"{ann}:1", f"{ann}0:1", f"{bob}:1"):
        await store.kv_put(f"{QUEUED}{key}", "{}")

    await store.erase_account(ann, 10)

    kept = {f"{QUEUED}{key}" for key in (f"{ann}:{ERASED}1", f"{ann}0:1", f"{bob}:1")}
    assert {entry.key for entry in await store.kv_list(QUEUED)} == kept


async def test_an_erasure_waits_until_the_jobs_have_ended_and_leaves_newer_ones(store: SqlDatabase) -> None:
    job = await running(store)
    erasure = Erasure(store)
    await erasure.request(job.account_id, "op", "erase 1")
    newer = await queued(store, account_id=job.account_id, price=0)
    assert await erasure.run("bot", older_than=0.0) == []
    assert await erasure.is_requested(job.account_id, "bot")
    assert (await store.job(job.id)).input != "null"  # type: ignore[union-attr]

    await _end(store, job.id)
    assert await erasure.run("bot", older_than=0.0) == [job.account_id]
    assert (await store.job(job.id)).input == "null"  # type: ignore[union-attr]
    assert (await store.job(newer.id)).input != "null"  # type: ignore[union-attr]


@pytest.mark.parametrize("delivery", [Delivery.PENDING, Delivery.SENDING])
async def test_an_erasure_waits_for_a_result_whose_delivery_an_operator_must_continue(
    store: SqlDatabase, delivery: Delivery
) -> None:
    """Its price is held until the result has arrived, or is given up."""
    job = await ended(store)
    erasure = Erasure(store)
    await erasure.request(job.account_id, "op", "erase 1")
    parked = Reschedule(
        job_id=job.id, token=job.lease_token, after=None, delivery=delivery, attention_reason="stage error"
    )
    assert await store.reschedule(parked)

    assert await erasure.run("bot", older_than=0.0) == []
    assert await store.erase_jobs(job.account_id, job.id, 10) == 0
    row = await see(store, job)
    assert (row.parts, row.hold_state) == (job.parts, HoldState.HELD)

    assert await store.retry_job(job.id)
    assert await finish(store, await claimed(store, job), Delivery.UNDELIVERABLE)
    assert await erasure.run("bot", older_than=0.0) == [job.account_id]
    assert (await see(store, job)).parts == ()


async def test_a_notice_of_an_erased_job_is_not_made_due_again(store: SqlDatabase) -> None:
    """The channel may ask to wait with it after the job was erased."""
    job = await ended(store, notice=Notice.WANTED)
    assert await finish(store, job, Delivery.DELIVERED)
    assert await store.begin_notice(job.id, job.lease_token)
    assert await store.erase_jobs(job.account_id, job.id, 10) == 1

    assert not await store.return_notice(job.id, job.lease_token, 5.0, failed=False)
    assert (await see(store, job)).due_at is None


async def _end(store: SqlDatabase, job_id: int) -> bool:
    await end(store, job_id, State.SUCCEEDED, ME)
    job = await see(store, job_id)
    assert await finish(store, job, Delivery.DELIVERED)
    return await store.begin_notice(job_id, job.lease_token)


async def test_a_late_callback_cannot_bring_a_result_to_an_erased_job(store: SqlDatabase) -> None:
    job = await running(store)
    await _end(store, job.id)
    assert await store.erase_jobs(job.account_id, job.id, 5) == 1

    callback = await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")
    assert callback.job_id is None  # it is not authenticated any more


async def test_an_order_whose_input_was_too_old_is_erased_like_any_other(store: SqlDatabase, raw: Raw) -> None:
    """It has no result either: its client's notes and its callback's secret are what is left."""
    account_id = await account_with(store)
    key, _ = await store.add_api_key(new_key(account_id, 1))
    job = await ended(store, State.FAILED, account_id=account_id, api_key_id=key.id, price=0)
    address = '{"request":"hash","metadata":{"name":"annmark"}}'
    await raw(f"UPDATE jobs SET address = '{address}'")  # noqa: S608
    assert await finish(store, job, parts=())
    assert await store.begin_notice(job.id, job.lease_token)
    erasure = Erasure(store)
    await erasure.erase_old_inputs(-1)  # older than tomorrow
    assert "annmark" in (await see(store, job)).address

    await erasure.request(account_id, "op", "erase 1")
    await erasure.run((await store.account(account_id)).bot, older_than=0.0)

    assert "annmark" not in (await see(store, job)).address
    callback = await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")
    assert callback.job_id is None


async def test_an_input_that_became_too_old_before_its_job_ended_is_erased_when_it_has(
    store: SqlDatabase, raw: Raw
) -> None:
    jobs = [await running(store, f"task {number}") for number in range(3)]
    await raw("UPDATE attempts SET sent_input = 'what the provider got'")
    erasure = Erasure(store)
    await _end(store, jobs[1].id)
    await erasure.erase_old_inputs(-1)
    await _end(store, jobs[0].id)

    await erasure.erase_old_inputs(-1)

    inputs = [(await see(store, job)).input != "null" for job in jobs]
    assert inputs == [False, False, True]
    await _end(store, jobs[2].id)
    await erasure.erase_old_inputs(-1)
    assert (await see(store, jobs[2])).input == "null"
    assert await raw("SELECT count(*) FROM attempts WHERE sent_input IS NOT NULL") == [(0,)]
    [entry] = await store.kv_list(AWAITED)
    assert entry.value == "[]"


async def test_inputs_of_old_jobs_are_erased_page_by_page_and_results_stay(store: SqlDatabase, raw: Raw) -> None:
    jobs = [await running(store, f"task {number}") for number in range(5)]
    for job in jobs[:4]:
        await _end(store, job.id)
    await raw("UPDATE attempts SET sent_input = 'what the provider got'")
    erasure = Erasure(store)
    await erasure.erase_old_inputs(0)
    await erasure.erase_old_inputs(1)
    assert all([(await store.job(job.id)).input != "null" for job in jobs])  # type: ignore[union-attr]
    assert await raw("SELECT count(*) FROM attempts WHERE sent_input IS NULL") == [(0,)]
    await erasure.erase_old_inputs(-1)  # older than tomorrow

    rows = await raw("SELECT input, parts FROM jobs ORDER BY id")
    assert [row[0] for row in rows[:4]] == ["null"] * 4
    assert rows[4][0] != "null"  # it is running
    assert all(row[1] != "[]" for row in rows[:4])
    sent = await raw("SELECT sent_input FROM attempts ORDER BY job_id")
    assert [row[0] for row in sent] == [None] * 4 + ["what the provider got"]


async def test_a_callback_whose_job_was_erased_is_stored_without_its_body(store: SqlDatabase, raw: Raw) -> None:
    """Also if it names the task of an earlier attempt, or was stored before the erasure and is not processed yet."""
    job = await running(store, "task")
    await store.store_callback("kie", job.id, hash_secret(SECRET), b"zqxsecret")
    await _end(store, job.id)
    other = await running(store, "other task")
    await store.store_callback("kie", other.id, hash_secret(SECRET), b"other")
    await raw(f"UPDATE attempts SET task_id = 'earlier task' WHERE job_id = {job.id}")  # noqa: S608
    erasure = Erasure(store)
    await erasure.request(job.account_id, "op", "erase 1")
    assert await erasure.run("bot", older_than=0.0) == [job.account_id]

    await store.store_callback("kie", job.id, hash_secret(SECRET), b"zqxsecret")
    for task in ("task", "earlier task"):
        callback = await store.store_callback("kie", None, "", b"zqxsecret")
        await store.note_untrusted_callback(callback.id, "kie", task)

    rows = await raw("SELECT state, note, body FROM inbox ORDER BY id")
    states = [(state, note) for state, note, body in rows if not bytes(body)]
    assert states == [("done", ""), ("done", "erased"), ("done", "erased"), ("done", "erased")]
    assert [bytes(body) for _, _, body in rows if body] == [b"other"]


async def test_an_erasure_waits_until_what_the_user_sent_before_is_handled(
    store: SqlDatabase, raw: Raw, clock: ManualClock
) -> None:
    account_id = await store.ensure_account("chat", "bot", "ann")
    await store.store_update(update(1, "ann", body='{"text": "zqxsecret"}'))
    clock.advance(1)
    erasure = Erasure(store)
    await erasure.request(account_id, "op", "erase 1")
    clock.advance(1)
    await store.store_update(update(2, "ann", body='{"text": "later"}'))
    assert await erasure.run("bot", older_than=0.0) == []

    [queue] = await store.claim_update_queues(1, ME, bots=["bot"], urgent=False)
    assert await store.settle_update(queue, UpdateState.DONE, "", ME)

    assert await erasure.run("bot", older_than=0.0) == [account_id]
    assert await raw("SELECT body FROM updates ORDER BY id") == [("{}",), ('{"text": "later"}',)]


async def test_a_second_request_erases_what_was_ordered_since_the_first(store: SqlDatabase) -> None:
    """The first one waits for an open order; the user is told that everything is erased when both are done."""
    first = await running(store, "task 1")
    erasure = Erasure(store)
    await erasure.request(first.account_id, "user", "erase 1")
    assert await erasure.run("bot", older_than=0.0) == []
    second = await running(store, "task 2", account_id=first.account_id)

    await erasure.request(first.account_id, "user", "erase 2")
    for job in (first, second):
        assert await erasure.run("bot", older_than=0.0) == []
        await _end(store, job.id)
    assert await erasure.run("bot", older_than=0.0) == [first.account_id]

    assert [(await see(store, job)).input for job in (first, second)] == ["null", "null"]


async def test_a_request_that_comes_while_an_earlier_one_is_carried_out_is_not_lost(
    store: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it comes at the last step: what the earlier request left does not count for it."""
    first = await running(store, "task 1")
    await _end(store, first.id)
    erasure, delete = Erasure(store), store.kv_delete
    await erasure.request(first.account_id, "user", "erase 1")
    later: list[int] = []

    async def order_and_request_before(*args: Any, **options: Any) -> bool:
        if not later:
            later.append((await running(store, "task 2", account_id=first.account_id)).id)
            await _end(store, later[0])
            await Erasure(store).request(first.account_id, "user", "erase 2")
            for step in (ROWS_OF, FILES_OF):
                await store.kv_put(f"{step}{first.account_id}", str(first.id))
        return await delete(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(store, "kv_delete", order_and_request_before)
        await erasure.run("bot", older_than=0.0)
    job = await store.job(later[0])
    assert job is not None
    assert job.input != "null"

    assert await erasure.run("bot", older_than=0.0) == [first.account_id]
    assert (await see(store, job)).input == "null"
    assert await store.kv_list("erase") == []
