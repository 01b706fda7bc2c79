"""Call every method that the engine uses."""

from collections.abc import Sequence
from typing import Any

import pytest

from genlock.domain.account import Account
from genlock.domain.attempt import AttemptOutcome
from genlock.domain.delivery import again
from genlock.domain.errors import InsufficientBalance
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, State, hash_secret
from genlock.domain.update import UpdateState
from genlock.ports import Database, FailedAttempt, Reschedule, SharedLimit
from genlock.stores.database import SqlDatabase
from tests.stores.builders import (
    ME,
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
from tests.stores.every_method.bot import use_the_bot_data, use_what_users_keep
from tests.stores.every_method.operators import (
    use_bulk_actions,
    use_operator_lists,
    use_the_operators_lists,
    use_the_search,
)
from tests.stores.history import HEAVY


async def use_updates(store: SqlDatabase) -> None:
    for number in range(3):
        await store.store_update(update(number))
    [queue] = await store.claim_update_queues(10, ME, bots=["bot"], urgent=False)
    assert await store.renew_update_queues([queue], ME) == {queue.id}
    assert await store.next_update(queue)
    assert queue.update
    assert await store.following_update(queue.update.id)
    assert await store.is_update_open(queue.update.id)
    assert await store.settle_update(queue, UpdateState.DEAD, "", ME)
    [dead] = await store.updates(UpdateState.DEAD, 10)
    await store.updates(UpdateState.NEW, 10)
    await store.updates(UpdateState.REPEATED, 10)
    assert await store.retry_update(dead.id)
    assert await store.postpone_update(queue, 0.0, "no")
    assert await store.release_update_queues("me", [1]) == 0


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


async def use_jobs(store: SqlDatabase, clock: ManualClock) -> None:
    """Take jobs through every stage, then let users and operators look at them."""
    account_id = await account_with(store, 1000)
    await use_the_account(store, account_id)
    await use_leases(store)
    await use_deliveries(store)
    await use_callbacks(store, clock)
    await use_instances_and_lists(store, account_id)
    await delivered(store)
    await use_the_search(store, account_id)
    await use_bulk_actions(store)
    await use_the_bot_data(store)
    await use_the_operators_lists(store)
    await use_what_users_keep(store)
    await use_operator_lists(store)
    await erase_everything(store)
    assert await store.violations(settled=True)


async def use_the_account(store: SqlDatabase, account_id: int) -> None:
    await store.wallet(account_id)
    await store.account(account_id)
    await store.set_account_address(account_id, "address")
    await store.ledger_entries(account_id, 10)
    with pytest.raises(InsufficientBalance):
        await store.accept_job(order(account_id, price=10**6), ME)
    assert not await store.transfer(account_id, *_known(await store.ledger_entries(account_id, 1)))


async def use_leases(store: SqlDatabase) -> None:
    job = await queued(store)
    assert await store.renew_lease(job.id, job.lease_token, ME)
    assert await store.begin_progress(job.id, job.lease_token, ME)
    assert await store.reschedule(Reschedule(job_id=job.id, token=job.lease_token, after=60.0))
    assert await store.retry_job(job.id)
    assert not await store.adopt_task(job.id, "", "task")
    await use_attempts(store, job.id)


async def use_deliveries(store: SqlDatabase) -> None:
    shown = await ended(store)
    assert await store.save_parts(shown.id, shown.lease_token, RESULT, ME)
    assert await store.change_address(shown.id, shown.lease_token, "elsewhere", RESULT)
    page = await ended(store)
    assert await store.mark_result_invalid(page.id, page.lease_token, RESULT, "broken_result", "a page")
    assert await finish(store, shown)
    assert await store.begin_notice(shown.id, shown.lease_token)
    assert await store.return_notice(shown.id, shown.lease_token, 60.0, failed=False)
    assert await store.resend_job(shown.id, again(RESULT))
    await claimed(store, shown)
    assert await finish(store, lost := await ended(store), Delivery.UNDELIVERABLE)
    assert await store.resend_paid_job(lost.id, again(RESULT), lost.lease_token)


async def use_instances_and_lists(store: SqlDatabase, account_id: int) -> None:
    await store.heartbeat("me", 3.0)
    await store.release_leases("me", [1], crashed=True)
    await store.claim_poison_jobs([10, 1], ME)
    assert await store.reserve_permits("create", 1, 1.0, 1, 1.0)
    assert await store.jobs()
    for state in (None, State.RUNNING, State.EXPIRED):
        for owner in (None, account_id):
            await store.jobs(state=state, account_id=owner)
    await store.open_jobs(account_id, 10)
    await store.jobs_needing_attention(10)
    await store.counts()


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


async def erase_everything(store: Database) -> None:
    account = Account(id=1, channel="chat", bot="bot", external_id="1", address="")
    await store.store_update(update(99))
    assert not await store.open_jobs_until(HEAVY, 10**9)
    [newest] = await store.jobs(limit=1)
    await store.erase_jobs(newest.account_id, newest.id, 5)
    await store.erase_jobs(HEAVY, newest.id, 100)
    assert not await store.erase_jobs(HEAVY, newest.id, 100), "all of them are erased"
    assert not await store.waits_for_handling(account, 0.0)
    await store.erase_messages(account, 5)
    await store.erase_account(1, 5)
    assert await store.scrub()
    await store.erase_inputs(await store.old_jobs(0, -1.0, 5))


def _known(ledger_entries: Sequence[Any]) -> tuple[Any, int, str]:
    """A transfer that was made already."""
    [ledger_entry] = ledger_entries
    return ledger_entry.kind, ledger_entry.amount, ledger_entry.key
