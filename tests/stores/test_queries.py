"""The named statements: the same ones for both databases, all described, all executed."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from genlock.domain.account import Account
from genlock.domain.anomaly import AnomalyKind
from genlock.domain.api_key import ALL_SCOPES, NewApiKey
from genlock.domain.attempt import AttemptOutcome
from genlock.domain.audit import AuditFilter
from genlock.domain.broadcast import BroadcastState
from genlock.domain.bulk import BulkFailure, BulkKind, BulkReason, BulkSelection, BulkState, BulkTarget
from genlock.domain.catalog_change import NewCatalogChange
from genlock.domain.delivery import again
from genlock.domain.draft import SavedDraft
from genlock.domain.errors import InsufficientBalance
from genlock.domain.figures import hour_number
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, Delivery, State, hash_secret
from genlock.domain.job_event import EventRow
from genlock.domain.job_search import CountKind, JobCount, JobFilter
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.operator import LoginMethod, Operator, OperatorRole
from genlock.domain.payment import PaymentState
from genlock.domain.place import NEWEST
from genlock.domain.promo import Promo
from genlock.domain.update import UpdateState
from genlock.domain.upload import Upload
from genlock.domain.user import UserFilter
from genlock.domain.webhook import DeliveryState, NewWebhook, WebhookAttempt
from genlock.engine.retention import KEEP_SECONDS, ROLLING
from genlock.ports import Database, FailedAttempt, Reschedule, SetKey, SharedLimit
from genlock.stores.batch import Params
from genlock.stores.database import SqlDatabase
from genlock.stores.hourly_figures import BLOCK_JOBS
from genlock.stores.parking import Parking
from genlock.stores.postgres import PostgresStore
from genlock.stores.queries import array, load, positional, scripts, statements
from genlock.stores.rows import Row
from tests.stores.builders import (
    ME,
    PRICE,
    RESULT,
    SECRET,
    ManualClock,
    account_with,
    claimed,
    delivered,
    end,
    ended,
    finish,
    order,
    queued,
    running,
    update,
)
from tests.stores.history import HEAVY

DIALECTS = ("sqlite", "postgres")
#: run once when a connection is opened, and needed by SQLite only: PostgreSQL's statements hold their items themselves
SQLITE_ONLY = {"temporary"}
PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
ITEM_FIELD = re.compile(r"value ->> '([a-z_]+)'")


def parameters(text: str) -> set[str]:
    """The names a statement needs. A batch on SQLite is one JSON array, whose fields are the names."""
    names = set(PARAMETER.findall(text))
    return (names - {"items"}) | set(ITEM_FIELD.findall(text)) if "items" in names else names


def test_both_databases_have_the_same_statements() -> None:
    sqlite, postgres = (load(dialect) for dialect in DIALECTS)

    assert sqlite.keys() - SQLITE_ONLY == postgres.keys()
    assert sqlite.keys() >= SQLITE_ONLY
    assert len(postgres) > 40


def test_both_databases_need_the_same_parameters() -> None:
    sqlite, postgres = ({name: parameters(query.text) for name, query in load(dialect).items()} for dialect in DIALECTS)

    # Only PostgreSQL needs the position of an item in its batch; on SQLite the items run one by one.
    wrong = [
        f"{name}: {sqlite[name] ^ needed}" for name, needed in postgres.items() if sqlite[name] != needed - {"ord"}
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_statement_has_a_description(dialect: str) -> None:
    for query in load(dialect).values():
        assert query.description[:1].isupper(), query.name
        assert query.description.endswith("."), query.name
        assert query.text.endswith(";"), query.name
        assert not query.text.startswith("--"), query.name


def test_both_databases_describe_the_rules_alike() -> None:
    """A rule's description is what `doctor` shows."""
    sqlite, postgres = (load(dialect) for dialect in DIALECTS)

    for name in postgres:
        if name.startswith(("check_", "settled_")):
            assert sqlite[name].description == postgres[name].description


def test_statement_names_are_unique() -> None:
    for dialect in DIALECTS:
        names = re.findall(r"^-- name: (\w+)$", "\n".join(scripts(dialect)), re.MULTILINE)
        assert len(names) == len(set(names)) == len(load(dialect))


def test_a_parameter_used_twice_has_one_place_and_casts_are_left_alone() -> None:
    text, names = positional("SELECT :b::text, :a, x::int, :b WHERE t = :now;")

    assert names == ("b", "a", "now")
    assert text == "SELECT $1::text, $2, x::int, $1 WHERE t = coalesce($3::timestamptz, now())"


def test_the_columns_of_a_batch_come_as_text() -> None:
    text, names = positional("SELECT * FROM unnest(:a::bigint[], :b::text[]) WHERE x = :c::text")

    assert names == ("a", "b", "c")
    assert text == "SELECT * FROM unnest($1::text::bigint[], $2::text::text[]) WHERE x = $3::text"


@pytest.mark.parametrize(
    "values",
    [
        ["a", 'quo"te', "back\\slash", "com,ma {brace}", "", "NULL", "line\nbreak", "кот"],
        ["a", None, 'quo"te', "NULL"],
        [None, None],
        [1, -2, 2**62],
        [1, None],
        [1.5, None, math.inf],
        [True, False, None],
        [b"", b'\x00\xff\\"', None],
    ],
)
async def test_postgres_reads_a_column_as_it_was_written(postgres: PostgresStore, values: list[Any]) -> None:
    kind = {str: "text", int: "bigint", float: "float8", bool: "boolean", bytes: "bytea"}
    known = next((kind[type(value)] for value in values if value is not None), "text")

    assert await postgres.session.pool.fetchval(f"SELECT $1::text::{known}[]", array(values)) == values


def test_a_column_with_a_text_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        array(["good", "nu\0l"])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_parameter_is_inside_a_literal(dialect: str) -> None:
    """`'$2 minutes'` is text, not a parameter."""
    for query in load(dialect).values():
        code = re.sub(r"--.*", "", query.text)
        literals = re.findall(r"'[^']*'", code)
        assert [literal for literal in literals if PARAMETER.search(literal)] == [], query.name


def test_a_script_is_split_where_sqlite_would() -> None:
    script = "INSERT INTO t VALUES (';'); -- not; here\nSELECT 1;\n\nSELECT 2;"

    assert [statement.splitlines()[-1] for statement in statements(script)] == [
        "INSERT INTO t VALUES (';');",
        "SELECT 1;",
        "SELECT 2;",
    ]


async def use_updates(store: SqlDatabase) -> None:
    for number in range(3):
        await store.store_update(update(number))
    [queue] = await store.claim_update_queues(10, ME, bots=["bot"], urgent=False)
    assert await store.renew_update_queues([queue], ME) == {queue.id}
    assert await store.next_update(queue)
    assert queue.update
    assert await store.following_update(queue.update.id)
    assert await store.settle_update(queue, UpdateState.DEAD, "", ME)
    [dead] = await store.updates(UpdateState.DEAD, 10)
    await store.updates(UpdateState.NEW, 10)
    await store.updates(UpdateState.REPEATED, 10)
    assert await store.retry_update(dead.id)
    assert await store.postpone_update(queue, 0.0, "no")
    assert await store.release_update_queues("me", [1]) == 0


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
    assert await store.newest_job_id() >= job.id
    assert await store.count_open_jobs(account_id, 10) == 1
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
    assert await store.count_waiting_deliveries(added.id, 5) == 1
    assert await store.webhook_delivery(added.id, delivery.public_id) == delivery
    await store.settle_webhook_deliveries([WebhookAttempt(delivery_id=delivery.id, state=DeliveryState.FAILED)])
    await use_delivery_lists(store, added.id, delivery.public_id)
    assert await store.redeliver(added.id, delivery.public_id)
    await store.settle_webhook_deliveries([WebhookAttempt(delivery_id=delivery.id, state=DeliveryState.FAILED)])
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


async def use_kv_and_retention(store: SqlDatabase) -> None:
    assert await store.kv_put_if_absent("key", "value") == "value"
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
    for what in KEEP_SECONDS:
        await (store.prune_next if what in ROLLING else store.prune)(what, 0.0, 10, role)
    after = await store.last_callback_id()
    await store.store_callback("kie", None, "", b"marked")
    assert await store.find_callbacks(after, b"mark") == [(None, "new")]
    assert await store.delete_callbacks(after, b"mark") == 1
    await Parking(store.session).park("restored")


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
    assert await store.save_account_sets("orders", position, "5", {key: 1}, role)
    span = (hour - 72, hour + 1)
    await store.period_figures(*span)
    await store.model_figures(*span)
    await store.model_durations(*span)
    await store.delivery_durations(*span)
    await store.topup_figures(*span)
    await store.account_set_sizes("active", *span)
    assert 0 in await store.account_set("active", *span)
    await store.heartbeat("me", 3.0)
    await store.describe_instance("me", "1.0")
    assert [one.version for one in await store.instances() if one.id == "me"] == ["1.0"]


async def use_attempts(store: SqlDatabase, job_id: int) -> None:
    """Read the attempts of a job, try to leave one, and count failures of a provider."""
    await store.attempts(job_id)
    await store.slots_used("kie")
    assert not await store.begin_limited_submit(job_id, -1, "hash", None, provider="kie", offer="model", most=2)
    await store.known_tasks("kie", ["task"])
    failed = FailedAttempt(job_id=job_id, attempt=-1, outcome=AttemptOutcome.FAILED, error_code="provider_failed")
    assert not await store.fail_over(failed)
    await store.count_failure("kie", "", 1, "provider_down")
    assert not await store.take_probe("kie", "")
    assert len(await store.breakers()) == 1
    assert await store.reset_breakers("kie") == 1


async def use_operator_lists(store: SqlDatabase) -> None:
    """Change a model once more, and list campaigns."""
    await store.promos(1, before="CODE")
    await store.promo("CODE")
    await store.broadcasts(1)
    newest = await store.catalog_changes(1, model="model")
    follows = newest[0].id if newest else 0
    change = NewCatalogChange(model="model", before={}, after={}, author="", request_key="key", follows=follows)
    assert await store.add_catalog_change(change)
    assert await store.catalog_change(await store.newest_catalog_change())
    await store.catalog_changes_after(follows, 1)
    assert await store.catalog_changes(1)
    assert await store.catalog_change_of_request("key")


async def use_jobs(store: SqlDatabase, clock: ManualClock) -> None:
    """Every method of the port, at least once."""
    account_id = await account_with(store, 1000)
    await store.wallet(account_id)
    await store.account(account_id)
    await store.set_account_address(account_id, "address")
    await store.ledger_entries(account_id, 10)
    with pytest.raises(InsufficientBalance):
        await store.accept_job(order(account_id, price=10**6), ME)
    assert not await store.transfer(account_id, *_known(await store.ledger_entries(account_id, 1)))
    long = await queued(store)
    assert await store.renew_lease(long.id, long.lease_token, ME)
    assert await store.begin_progress(long.id, long.lease_token, ME)
    assert await store.reschedule(Reschedule(job_id=long.id, token=long.lease_token, after=60.0))
    assert await store.retry_job(long.id)
    assert not await store.adopt_task(long.id, "", "task")
    await use_attempts(store, long.id)

    shown = await ended(store)
    assert await store.save_parts(shown.id, shown.lease_token, RESULT, ME)
    assert await store.change_address(shown.id, shown.lease_token, "elsewhere", RESULT)
    page = await ended(store)
    assert await store.mark_result_invalid(page.id, page.lease_token, RESULT, "broken_result", "a page")
    assert await finish(store, shown)
    assert await store.begin_notice(shown.id, shown.lease_token)
    assert await store.resend_job(shown.id, again(RESULT))
    await claimed(store, shown)
    assert await finish(store, lost := await ended(store), Delivery.UNDELIVERABLE)
    assert await store.resend_paid_job(lost.id, again(RESULT), lost.lease_token)

    await use_callbacks(store, clock)
    await store.heartbeat("me", 3.0)
    await store.release_leases("me", [1], died=True)
    await store.claim_poison_jobs([10, 1], ME)
    assert await store.reserve_permits("create", 1, 1.0, 1, 1.0)
    assert await store.jobs()
    for state in (None, State.RUNNING, State.EXPIRED):
        for owner in (None, account_id):
            await store.jobs(state=state, account_id=owner)
    await store.open_jobs(account_id, 10)
    await store.jobs_needing_attention(10)
    await store.counts()
    await delivered(store)
    await use_the_search(store, account_id)
    await use_bulk_actions(store)
    await use_the_bot_data(store)
    await use_what_users_keep(store)
    await use_operator_lists(store)
    await erase_everything(store)
    assert await store.violations(settled=True)


async def use_callbacks(store: SqlDatabase, clock: ManualClock) -> None:
    """Callbacks, orphans, and the role that deals with them."""
    waiting = await running(store, "task")
    assert await store.count_unauthenticated_callbacks(60.0, 10) == 0
    assert await store.is_callback_secret(waiting.id, "kie", hash_secret(SECRET))
    callback = await store.store_callback("kie", waiting.id, hash_secret(SECRET), b"{}")
    await end(store, waiting, State.FAILED, callback_id=callback.id)
    unread = await store.store_callback("kie", None, "", b"{}")
    clock.advance(60)
    assert await store.claim_callbacks(10, 5.0)
    assert not await store.expire_callback(unread.id, 3600.0, "unreadable")
    await store.settle_callback(unread.id, InboxState.ORPHAN, "task")
    assert await store.match_orphans(10)
    assert await store.note_untrusted_callback(unread.id, "kie", "task")
    role = await store.take_role("active", "me", 3.0)
    await store.expire_orphans(1.0, role)
    await store.take_permits(["chat"], 1.0, 2, 0.0)
    await store.take_call_permits(["chat"], 1.0, 2, shared=SharedLimit(key="bot", interval=0.1, burst=1, horizon=1.0))
    await store.block_limit("chat", 5.0)
    await store.prune_limits(60.0, role)
    await store.release_role("active", "me")
    for state in InboxState:
        await store.callbacks(state, 10)


async def use_the_search(store: Database, account_id: int) -> None:
    """Every source of candidates, whole pages and counts."""
    [job] = await store.jobs(limit=1)
    for filters in (
        JobFilter(states=(State.SUCCEEDED,), since=job.created_at - timedelta(days=1), until=job.created_at),
        JobFilter(task_id="task"),
        JobFilter(states=(State.RUNNING,)),
        JobFilter(holds=(HoldState.HELD,)),
        JobFilter(attention=True),
        JobFilter(account_id=HEAVY, text="none"),
        JobFilter(account_id=account_id),
        JobFilter(text="none"),
    ):
        await store.search_jobs(filters, seconds=0.0)
        await store.count_jobs(filters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genlock.stores.job_search.FIRST_STEP", 1)
        assert (await store.search_jobs(JobFilter(text="none"), seconds=0.0)).looked_back_to
    assert await store.jobs_by_id([job.id]) == [job]
    await store.refunded_jobs([job.id])
    await store.account_names([account_id])
    assert await store.job_providers()


async def use_bulk_actions(store: Database) -> None:
    expected = JobCount(number=1, kind=CountKind.EXACT)
    selection = BulkSelection(job_ids=(1,))
    begun = await store.begin_bulk_action(BulkKind.RETRY, selection, author="me", request_key="bulk", expected=expected)
    assert await store.bulk_action(begun.id)
    assert await store.bulk_actions(10)
    assert await store.open_bulk_actions(10)
    stepping = await store.begin_bulk_step(begun, [BulkTarget(job_id=1, token=1)], 1, [])
    assert stepping
    failure = BulkFailure(job_id=1, reason=BulkReason.ENDED)
    between = await store.finish_bulk_step(stepping, done=0, failures=[failure])
    assert between
    assert await store.bulk_failures(begun.id, 10) == [failure]
    assert await store.stop_bulk_action(begun.id)
    assert await store.end_bulk_action(between, BulkState.STOPPED)


async def use_what_users_keep(store: Database) -> None:
    """The gallery of the account with most jobs, favourites and settings."""
    for models in (["model"], ["none", "model"], ["none"]):
        newest = await store.result_before(HEAVY, models)
        if newest is not None:
            await store.result_after(HEAVY, models, newest.id)
            await store.result_before(HEAVY, models, newest.id // 2)
            await store.result_after(HEAVY, models, newest.id // 2)
    shown = await delivered(store)
    assert await store.set_result_hidden(shown.account_id, shown.id, hidden=True)
    await store.result_after(HEAVY, ["model"], 0)
    assert await store.add_favourite(HEAVY, "model")
    assert await store.favourites(HEAVY)
    await store.remove_favourite(HEAVY, "model")
    await store.save_model_settings(HEAVY, "model", "{}")
    assert await store.model_settings(HEAVY, "model")
    await store.delete_model_settings(HEAVY, "model")


async def erase_everything(store: Database) -> None:
    account = Account(id=1, channel="chat", bot="bot", external_id="1", address="")
    await store.store_update(update(99))
    await store.open_jobs_until(1, 10)
    [newest] = await store.jobs(limit=1)
    await store.erase_jobs(newest.account_id, newest.id, 5)
    await store.erase_messages(account, 5)
    await store.erase_account(1, 5)
    await store.erase_inputs(0, -1.0, 5)


async def use_the_bot_data(store: Database) -> None:
    """Every method that only the bot uses, at least once."""
    await store.ensure_profile(1, language="en", name="Ann", username="ann", referred_by=None)
    await store.known_profile("telegram", "bot", "1")
    await store.profile(1)
    await store.find_profiles("ann", 1)
    await store.account_summaries(None, 1)
    await store.account_summaries("ann", 1)
    await store.newest_profiles(1)
    await store.debtors(1)
    await store.set_language(1, "ru")
    await store.set_last_model(1, "z-image")
    await store.set_ban(1, banned=False, reason="")
    await store.set_blocked(1, blocked=False)
    assert await store.save_draft(1, 7, SavedDraft(version=0, message=None, body="{}"))
    await store.set_draft_message(1, 7, 5)
    await store.draft(1, 7)
    await store.draft_owner(7, 5)
    await store.is_job_message(1, "5")
    await store.jobs_shown_by(1, "5")
    await store.add_upload(Upload(address="a", account_id=1, file="f", kind="image", seconds=None, age_seconds=0))
    await store.mark_upload_used("a")
    await store.upload("a")
    await store.activity(1)
    await store.late_cancels(1)
    await store.add_payment("charge", 1, 1, 1)
    await store.payment("charge")
    await store.payments(1, 1)
    await store.begin_refund("charge", "why")
    await store.undo_refund("charge", 1, "why")
    await store.finish_refund("charge")
    await store.book_external_refund("charge", "why")
    await store.ledger_entry("key")
    await store.take_free_run(1, "key", 1)
    await store.free_runs(1, 1)
    promo = Promo(code="C", amount=1, runs=0, uses_max=None, per_account=1, until=None)
    await store.create_promo(promo, lasting=None, author="me")
    await store.use_promo("C", 1, "key")
    await store.is_promo_used(1, "key")
    await store.close_promo("C")
    await store.promos(1)
    await store.rewards_due("bot", 0, 1)
    await store.mark_rewarded(1)
    await store.count_reachable("bot")
    broadcast = await store.begin_broadcast("text", bot="bot", author="me", request_key="key")
    await store.broadcast(broadcast.id)
    await store.running_broadcast()
    await store.next_recipient(broadcast.id)
    await store.count_broadcast_message(broadcast.id, sent=True)
    await store.end_broadcast(broadcast.id, BroadcastState.DONE)
    await use_the_operators_lists(store)


async def use_the_operators_lists(store: Database) -> None:
    await use_the_attention_lists(store)
    [job] = await store.jobs(limit=1)
    await store.add_job_events("me", [EventRow(correlation_id="c", number=1, events="[]")])
    await store.job_events("c", 1)
    await store.job_ledger_entries(job)
    await store.job_callbacks(1, [1], 10)
    await store.audit_about(["#1"], 1)
    await store.add_audit(key="k", actor="me", action="look", subject="", detail="")
    await store.audit(1)
    await store.audit(1, "bot")
    now = await store.read_clock()
    await store.search_audit(AuditFilter(actor="me", since=now - timedelta(days=1), until=now), limit=1)
    await store.search_audit(AuditFilter(subject="#1"), limit=1)
    await store.roles()
    await store.applied_migrations()
    await store.database_facts()
    await store.figures("bot", 60)
    await use_the_logins(store)
    await use_the_lists_of_users_and_money(store, job.account_id)


async def use_the_lists_of_users_and_money(store: Database, account_id: int) -> None:
    for which in UserFilter:
        await store.users(which, before=None, limit=2)
    await store.invited_users(account_id, before=None, limit=2)
    await store.used_promos(account_id, 2)
    await store.transfer_within_allowance(account_id, EntryKind.GRANT, 1, "allowed", "", allowance="op", most=10)
    await store.allowance_used("op")
    await store.account_ledger(account_id, before=NEWEST, limit=2)
    await store.ledger_moves([EntryKind.GRANT, EntryKind.REPAY], before=NEWEST, since=None, limit=2)
    since = datetime(2030, 1, 1, tzinfo=UTC)
    await store.order_ledger([EntryKind.HOLD], before=None, since=since, limit=2)
    await store.order_ledger([EntryKind.RELEASE], before=None, since=None, limit=2)
    await store.payments_before(before=NEWEST, since=None, limit=2)
    await store.payments_in_state(PaymentState.REFUNDING, before=NEWEST, since=since, limit=2)
    await store.external_refunds(before=NEWEST, since=None, limit=2)
    await store.account_payments(account_id, before=NEWEST, limit=2)


async def use_the_logins(store: Database) -> None:
    await store.set_operator(Operator(id="7", role=OperatorRole.VIEWER), "me")
    await store.operator("7")
    await store.operators()
    await store.add_login_link("link", "7", LoginMethod.LINK, 60)
    await store.login_link("link")
    await store.use_login_link("link", "one", remote="", agent="", seconds=60)
    session = await store.begin_session("two", "7", LoginMethod.TOKEN, remote="", agent="", seconds=600)
    assert isinstance(store, SqlDatabase)
    await store.session.one("touch_session", id=session.id)
    await store.session_by_secret("two")
    await store.sessions(1)
    await store.end_session(session.id)
    await store.remove_operator("7")


async def use_the_attention_lists(store: Database) -> None:
    await store.attention_counts(10, 60.0)
    for code in AttentionCode:
        await store.jobs_with_attention(code, 10)
    await store.clear_attention(1, 1)
    await store.kept_callbacks(InboxState.UNREADABLE, 10, 100)
    await store.close_callback(1, "seen")
    await store.retry_callback(1)
    await store.dead_updates(10)
    await store.discard_update(1, "seen")
    await store.anomalies(AnomalyKind.LOSS, 10)
    await store.job_anomalies(1)
    await store.handle_anomaly(1)
    await store.kv_list_of_all_bots("k", 10)


def _known(ledger_entries: Sequence[Any]) -> tuple[Any, int, str]:
    """A transfer that was made already."""
    [ledger_entry] = ledger_entries
    return ledger_entry.kind, ledger_entry.amount, ledger_entry.key


async def test_every_statement_runs(store: SqlDatabase, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that is new and not yet in `use_jobs` fails here."""
    executed = set(SQLITE_ONLY)
    one, many = store.session.one, store.session.many

    async def seen_one(name: str, /, **params: Any) -> list[Row]:
        executed.add(name)
        return await one(name, **params)

    async def seen_many(name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        executed.add(name)
        return await many(name, shared, items)

    monkeypatch.setattr(store.session, "one", seen_one)
    monkeypatch.setattr(store.session, "many", seen_many)

    await use_jobs(store, clock)
    await use_updates(store)
    await use_kv_and_retention(store)
    await use_figures(store)
    await use_api(store)
    await store.clear_figures()
    await store.violations(settled=False)

    assert store.session.queries.keys() - executed == set()
