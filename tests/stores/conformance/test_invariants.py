"""Constraints of the database, and the queries that find violated invariants."""

import sqlite3

import asyncpg
import pytest

from genlock.domain.job import Delivery, State, Verdict, hash_secret
from genlock.domain.money import EntryKind
from genlock.ports import Reschedule
from genlock.stores.database import SqlDatabase
from tests.stores.builders import (
    ME,
    SECRET,
    account_with,
    delivered,
    end,
    ended,
    finish,
    queued,
    running,
    submitting,
    update,
)
from tests.stores.conftest import Raw

REFUSED_BY_THE_DATABASE = (sqlite3.IntegrityError, asyncpg.IntegrityConstraintViolationError)

#: How to corrupt the data, by the query that must find it. `{waiting}` is a running job that waits for its poll,
#: `{paid}` one that was delivered and captured, `{free}` one without a price, `{sending}` one on its way to the chat.
BREAKAGE = [
    ("check_wallets", "{account}", "UPDATE accounts SET available = available + 1 WHERE id = {account}"),
    ("check_wallets", "{account}", "UPDATE accounts SET held = held - 1 WHERE id = {account}"),
    (
        "check_wallets",
        "{account}",
        "UPDATE accounts SET available = available - 1, held = held + 1 WHERE id = {account}",
    ),
    ("check_wallets", "{account}", "UPDATE ledger SET amount = amount + 1 WHERE key = 'hold:{waiting}'"),
    ("check_wallets", "{account}", "DELETE FROM ledger WHERE account_id = {account}"),
    ("check_ledger_entries", "hold:{paid}", "UPDATE ledger SET account_id = 999999 WHERE key = 'hold:{paid}'"),
    ("check_hold_states", "{waiting}", "UPDATE jobs SET price = price + 1 WHERE id = {waiting}"),
    ("check_hold_states", "{waiting}", "UPDATE jobs SET hold_state = 'free' WHERE id = {waiting}"),
    ("check_hold_states", "{waiting}", "DELETE FROM ledger WHERE key = 'hold:{waiting}'"),
    ("check_hold_states", "{waiting}", "UPDATE ledger SET key = 'settle:{waiting}' WHERE key = 'settle:{paid}'"),
    ("check_hold_states", "{free}", "UPDATE jobs SET hold_state = 'held' WHERE id = {free}"),
    ("check_hold_states", "{free}", "UPDATE ledger SET key = 'hold:{free}' WHERE key = 'hold:{paid}'"),
    ("check_hold_states", "{paid}", "UPDATE jobs SET hold_state = 'released' WHERE id = {paid}"),
    ("check_hold_states", "{paid}", "UPDATE jobs SET hold_state = 'held' WHERE id = {paid}"),
    ("check_hold_states", "{paid}", "UPDATE ledger SET kind = 'release' WHERE key = 'settle:{paid}'"),
    ("check_hold_states", "{paid}", "UPDATE ledger SET amount = 1 WHERE key = 'settle:{paid}'"),
    ("check_hold_states", "{paid}", "DELETE FROM ledger WHERE key = 'settle:{paid}'"),
    ("check_ends", "{waiting}", "UPDATE jobs SET state = 'failed', delivery = 'pending' WHERE id = {waiting}"),
    ("check_ends", "{waiting}", "UPDATE jobs SET state = 'cancelled', delivery = 'pending' WHERE id = {waiting}"),
    ("check_ends", "{waiting}", "UPDATE jobs SET state = 'expired', delivery = 'pending' WHERE id = {waiting}"),
    ("check_ends", "{waiting}", "UPDATE jobs SET hold_state = 'released' WHERE id = {waiting}"),
    ("check_ends", "{paid}", "UPDATE jobs SET hold_state = 'held' WHERE id = {paid}"),
    ("check_ends", "{sending}", "UPDATE jobs SET delivery = 'unknown' WHERE id = {sending}"),
    ("check_ends", "{sending}", "UPDATE jobs SET delivery = 'undeliverable' WHERE id = {sending}"),
    ("check_due", "{waiting}", "UPDATE jobs SET due_at = NULL WHERE id = {waiting}"),
    ("check_due", "{sending}", "UPDATE jobs SET due_at = NULL, lease_owner = NULL WHERE id = {sending}"),
    ("check_due", "{paid}", "UPDATE jobs SET notice = 'due' WHERE id = {paid}"),
    ("check_payments", "charge-1", "UPDATE payments SET amount = amount + 1"),
    ("check_payments", "charge-1", "DELETE FROM ledger WHERE key = 'stars:charge-1'"),
    ("check_debts", "{account}", "UPDATE accounts SET debt = debt + 1 WHERE id = {account}"),
    ("check_debts", "{account}", "UPDATE payments SET owed = owed + 1"),
    ("check_open_api_jobs", "{account}", "UPDATE accounts SET open_api_jobs = open_api_jobs + 1 WHERE id = {account}"),
    ("check_gift_runs", "{account}", "UPDATE accounts SET gift_runs_used = gift_runs_used + 1 WHERE id = {account}"),
    ("check_update_queues", "{queue}", "UPDATE update_queues SET waiting = waiting + 1 WHERE id = {queue}"),
    ("check_update_queues", "{queue}", "UPDATE updates SET state = 'done'"),
    (
        "check_payments",
        "c1",
        "INSERT INTO payments SELECT 'c1', account_id, 1, 1, 'paid', 0, at, 0, NULL FROM ledger LIMIT 1",
    ),
]
SETTLED = {"settled_jobs", "settled_inbox", "settled_update_queues"}


async def jobs_in_every_state(store: SqlDatabase) -> dict[str, int]:
    """Make jobs in every state. Returns those that a test can corrupt."""
    account_id = await account_with(store, 1000)
    await queued(store)
    await queued(store, lease=None)
    parked = await submitting(store)
    await store.reschedule(Reschedule(job_id=parked.id, token=parked.lease_token, after=None, attention_reason="look"))
    waiting = await running(store, account_id=account_id)
    await store.store_callback("kie", waiting.id, hash_secret(SECRET), b"{}")
    for state in (State.FAILED, State.CANCELLED, State.EXPIRED):
        await delivered(store, state)
    late = await ended(store, State.EXPIRED, lease=None)
    assert (await end(store, late, State.SUCCEEDED)).verdict is Verdict.LATE
    for delivery in (Delivery.UNDELIVERABLE, Delivery.UNKNOWN):
        assert await finish(store, await ended(store), delivery)
    resent = await delivered(store)
    assert await store.resend_job(resent.id, resent.parts)
    paid = await delivered(store, account_id=account_id)
    assert await store.begin_notice(paid.id, paid.lease_token)
    assert await store.add_payment("charge-1", account_id, 10, 50)
    assert await store.transfer(account_id, EntryKind.TOPUP, 50, "stars:charge-1")
    await store.store_update(update(1))
    [queue] = await store.claim_update_queues(1, ME, bots=["bot"], urgent=False)
    return {
        "queue": queue.id,
        "account": account_id,
        "waiting": waiting.id,
        "paid": paid.id,
        "free": (await running(store, price=0)).id,
        "sending": (await ended(store)).id,
    }


async def found(store: SqlDatabase, *, settled: bool = False) -> set[tuple[str, str]]:
    """The violations, each as the name of its query and its subject."""
    names = {query.description: query.name for query in store.session.queries.values()}
    return {(names[violation.rule], violation.subject) for violation in await store.violations(settled=settled)}


async def test_jobs_in_every_state_violate_no_invariant(store: SqlDatabase) -> None:
    await jobs_in_every_state(store)

    assert await store.violations(settled=False) == []


@pytest.mark.parametrize(("query", "subject", "breakage"), BREAKAGE, ids=[f"{row[0]}: {row[2]}" for row in BREAKAGE])
async def test_every_invariant_detects_a_violation(
    store: SqlDatabase, raw: Raw, query: str, subject: str, breakage: str
) -> None:
    world = await jobs_in_every_state(store)

    await raw(breakage.format(**world))

    assert (query, subject.format(**world)) in await found(store)


async def test_a_violation_says_what_it_found(store: SqlDatabase, raw: Raw) -> None:
    await running(store)
    await raw("UPDATE jobs SET hold_state = 'released'")

    details = {violation.rule: violation.detail for violation in await store.violations(settled=False)}

    assert (
        details[store.session.queries["check_ends"].description] == "state running, delivery none, hold_state released"
    )
    assert details[store.session.queries["check_hold_states"].description].startswith(
        "hold_state released, price 100, hold 100"
    )


async def test_work_that_is_left_breaks_the_rules_of_rest_only(store: SqlDatabase) -> None:
    job = await running(store)
    await store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")
    await store.store_update(update(1))

    assert await found(store) == set()
    assert {name for name, _ in await found(store, settled=True)} == SETTLED


async def test_finished_jobs_violate_no_invariant_of_rest(store: SqlDatabase) -> None:
    for state in (State.SUCCEEDED, State.FAILED):
        job = await delivered(store, state)
        assert await store.begin_notice(job.id, job.lease_token)

    assert await store.violations(settled=True) == []


def test_every_invariant_is_broken_by_a_test(store: SqlDatabase) -> None:
    rules = {name for name in store.session.queries if name.startswith(("check_", "settled_"))}

    assert rules == {name for name, _, _ in BREAKAGE} | SETTLED


#: Rows that a bug must not be able to write.
IMPOSSIBLE = [
    "UPDATE accounts SET available = -1 WHERE id = {account}",
    "UPDATE accounts SET held = -1 WHERE id = {account}",
    "UPDATE jobs SET price = -1 WHERE id = {waiting}",
    "UPDATE jobs SET hold_state = 'lost' WHERE id = {waiting}",
    "UPDATE jobs SET state = 'lost', delivery = 'pending' WHERE id = {waiting}",
    "UPDATE jobs SET delivery = 'lost' WHERE id = {sending}",
    "UPDATE jobs SET notice = 'lost' WHERE id = {waiting}",
    "UPDATE jobs SET delivery = 'pending' WHERE id = {waiting}",
    "UPDATE jobs SET delivery = 'none' WHERE id = {sending}",
    "UPDATE jobs SET delivery = 'delivered' WHERE id = {sending}",
    "UPDATE jobs SET delivered_at = NULL WHERE id = {paid}",
    "UPDATE jobs SET hold_state = 'captured' WHERE id = {waiting}",
    "UPDATE jobs SET lease_owner = 'me', due_at = NULL WHERE id = {waiting}",
    "UPDATE jobs SET task_id = NULL WHERE id = {waiting}",
    "UPDATE jobs SET provider = 'kie', task_id = (SELECT task_id FROM jobs WHERE id = {paid}) WHERE id = {waiting}",
    "UPDATE jobs SET request_key = (SELECT request_key FROM jobs WHERE id = {paid}) WHERE id = {waiting}",
    "UPDATE ledger SET amount = 0 WHERE key = 'hold:{waiting}'",
    "UPDATE ledger SET debit = credit WHERE key = 'hold:{waiting}'",
    "UPDATE ledger SET debit = 'pocket' WHERE key = 'hold:{waiting}'",
    "UPDATE ledger SET key = 'settle:{paid}' WHERE key = 'hold:{waiting}'",
    "UPDATE inbox SET state = 'lost', due_at = NULL",
    "UPDATE inbox SET state = 'done'",
    "UPDATE updates SET state = 'lost'",
    "UPDATE update_queues SET waiting = 0",
    "UPDATE update_queues SET due_at = NULL",
]


@pytest.mark.parametrize("statement", IMPOSSIBLE)
async def test_the_database_refuses_invalid_rows(store: SqlDatabase, raw: Raw, statement: str) -> None:
    world = await jobs_in_every_state(store)

    with pytest.raises(REFUSED_BY_THE_DATABASE):
        await raw(statement.format(**world))
