"""Call every method that operators use, in the chat and in the dashboard."""

from datetime import UTC, datetime, timedelta

import pytest

from genlock.domain.anomaly import AnomalyKind
from genlock.domain.audit import AuditFilter
from genlock.domain.bulk import BulkFailure, BulkKind, BulkReason, BulkSelection, BulkState, BulkTarget
from genlock.domain.catalog_change import NewCatalogChange
from genlock.domain.inbox import InboxState
from genlock.domain.job import AttentionCode, State
from genlock.domain.job_event import EventRow
from genlock.domain.job_search import CountKind, JobCount, JobFilter
from genlock.domain.money import EntryKind, HoldState
from genlock.domain.operator import LoginMethod, Operator, OperatorRole
from genlock.domain.payment import PaymentState
from genlock.domain.place import NEWEST
from genlock.domain.user import UserFilter
from genlock.ports import Database
from genlock.stores.database import SqlDatabase
from tests.stores.history import HEAVY


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
    await store.attempt_costs([job.id])
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
    await store.audit(1, "other")
    now = await store.read_clock()
    await store.search_audit(AuditFilter(actor="me", since=now - timedelta(days=1), until=now), limit=1)
    await store.search_audit(AuditFilter(subject="#1"), limit=1)
    await store.roles()
    await store.applied_migrations()
    await store.database_facts()
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
