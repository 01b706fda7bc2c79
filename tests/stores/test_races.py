"""Races between four instances with their own pools on one PostgreSQL.

Whatever the order of events, each job has one winner and its money moves once.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from genlock.domain.errors import InsufficientBalance
from genlock.domain.inbox import InboxState
from genlock.domain.job import Delivery, Job, Notice, State, Verdict, hash_secret
from genlock.ports import JobEnd, Reschedule
from genlock.stores.postgres import PostgresStore
from tests.stores.builders import (
    PRICE,
    SECRET,
    SHOWN,
    account_with,
    delivered,
    end,
    ended,
    finish,
    order,
    running,
)
from tests.stores.conftest import RecordingObserver
from tests.stores.fleet import ACCOUNT_COUNT, MONEY, Fleet, Instance, deliver_claims, open_fleet, winners
from tests.stores.other_connections import other_connection, waiting_for_locks

pytestmark = pytest.mark.timeout(60, func_only=True)  # without a limit, a lost job would block the test


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(postgres_url: str, observer: RecordingObserver) -> AsyncIterator[Fleet]:
    async with open_fleet(postgres_url, observer) as fleet:
        yield fleet


async def test_the_same_order_through_all_instances_is_one_job(fleet: Fleet) -> None:
    orders = [order(fleet.accounts[number % ACCOUNT_COUNT]) for number in range(300)]

    accepted = await fleet.at_once(
        instance.store.accept_job(wanted, instance.lease) for wanted in orders for instance in fleet.instances
    )

    assert len({acceptance.job.id for acceptance in accepted}) == len(orders)
    assert sum(acceptance.created for acceptance in accepted) == len(orders)
    store = fleet.instances[0].store
    assert sum([(await store.wallet(account_id)).held for account_id in fleet.accounts]) == PRICE * len(orders)
    assert await store.violations(settled=False) == []
    assert fleet.observer.total("store_retries") == 0


async def test_the_last_credits_are_spent_once(fleet: Fleet) -> None:
    """Orders of one account through all instances, with balance for a few of them."""
    store = fleet.instances[0].store
    poor = [await account_with(store, 5 * PRICE) for _ in range(20)]

    answers = await asyncio.gather(
        *(fleet.any().store.accept_job(order(account_id), None) for account_id in poor for _ in range(20)),
        return_exceptions=True,
    )

    refusals = [answer for answer in answers if isinstance(answer, Exception)]
    assert len(refusals) == len(answers) - 5 * len(poor)
    assert {type(refusal) for refusal in refusals} == {InsufficientBalance}, (
        "found by looking, not by a broken constraint"
    )
    assert {(await store.wallet(account_id)).available for account_id in poor} == {0}
    assert await store.violations(settled=False) == []


async def test_a_callback_against_a_poll_has_one_winner(fleet: Fleet) -> None:
    jobs = await fleet.running_jobs(800)

    async def callback(instance: Instance, job: Job) -> JobEnd:
        stored = await instance.store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")
        return await end(instance.store, job, State.SUCCEEDED, instance.lease, callback_id=stored.id)

    async def poll(instance: Instance, job: Job) -> JobEnd:
        return await end(instance.store, job, State.SUCCEEDED, instance.lease)

    attempts = await fleet.at_once(race(fleet.any(), job) for job in jobs for race in (callback, poll))

    assert Counter(attempt.verdict for attempt in attempts) == {
        Verdict.WON: len(jobs),
        Verdict.DUPLICATE: len(jobs),
    }
    won = winners(attempts)
    assert {job.id for job in won} == {job.id for job in jobs}
    shown = await fleet.at_once(finish(fleet.any().store, job) for job in won)
    assert all(shown)
    await fleet.all_delivered_and_paid_once(jobs)


async def test_contradicting_reports_have_one_winner_and_one_settlement(fleet: Fleet) -> None:
    """Success, failure, cancel and deadline at the same moment."""
    jobs = await fleet.running_jobs(400)
    ways = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.EXPIRED)

    attempts = await fleet.at_once(
        end(instance.store, job, state, None if state is State.EXPIRED else instance.lease)
        for job in jobs
        for state, instance in zip(ways, fleet.instances, strict=True)
    )

    won = [attempt for attempt in attempts if attempt.verdict is Verdict.WON]
    assert Counter(attempt.job.id for attempt in won if attempt.job) == Counter(job.id for job in jobs)
    states = {attempt.job.id: attempt.job.state for attempt in won if attempt.job}
    late = [attempt.job.id for attempt in attempts if attempt.verdict is Verdict.LATE and attempt.job]
    assert len(late) == len(set(late))
    assert all(states[job_id] is State.EXPIRED for job_id in late)
    store = fleet.instances[0].store
    succeeded = sum(state is State.SUCCEEDED for state in states.values())
    assert sum([(await store.wallet(account_id)).held for account_id in fleet.accounts]) == PRICE * succeeded
    assert await store.violations(settled=False) == []
    assert fleet.observer.total("store_retries") == 0


async def test_two_instances_during_a_deploy_deliver_everything_once(fleet: Fleet) -> None:
    """The old instance releases its leases while it still finishes its jobs; the new ones claim what is due."""
    old, *new = fleet.instances
    jobs = await fleet.sending_jobs(600, old) + await fleet.sending_jobs(300, None)
    done: list[int] = []

    async def finish_old(job: Job) -> None:
        if await finish(old.store, job, lease=old.lease):
            done.append(job.id)

    async def hand_over() -> None:
        await old.store.release_leases(old.lease.owner)

    held = [job for job in jobs if job.lease_owner]
    claims = [asyncio.create_task(deliver_claims(instance, len(jobs), done)) for instance in new]
    await fleet.at_once([*(finish_old(job) for job in held), hand_over()])
    await asyncio.gather(*claims)

    assert len(done) == len(set(done)) == len(jobs)
    await fleet.all_delivered_and_paid_once(jobs)


async def test_claims_of_all_instances_never_overlap(fleet: Fleet) -> None:
    jobs = await fleet.sending_jobs(800, None)

    claims = await fleet.at_once(
        instance.store.claim_jobs(20, instance.lease) for instance in fleet.instances for _ in range(30)
    )

    taken = [job for claim in claims for job in claim]
    assert Counter(job.id for job in taken) == Counter(job.id for job in jobs)
    assert {(job.lease_token, job.delivery) for job in taken} == {(3, Delivery.SENDING)}, "accepted, ended, claimed"
    shown = await fleet.at_once(finish(fleet.any().store, job) for job in taken)
    assert all(shown)
    await fleet.all_delivered_and_paid_once(jobs)


async def test_a_repeated_callback_ends_a_job_once(fleet: Fleet) -> None:
    jobs = await fleet.running_jobs(300)

    async def callback(instance: Instance, job: Job) -> JobEnd:
        stored = await instance.store.store_callback("kie", job.id, hash_secret(SECRET), b"{}")
        assert stored.job_id == job.id
        return await end(instance.store, job, State.SUCCEEDED, instance.lease, callback_id=stored.id)

    attempts = await fleet.at_once(callback(fleet.any(), job) for job in jobs for _ in range(5))

    assert Counter(attempt.verdict for attempt in attempts) == {
        Verdict.WON: len(jobs),
        Verdict.DUPLICATE: 4 * len(jobs),
    }
    store = fleet.instances[0].store
    notes = Counter(callback.note for callback in await store.callbacks(InboxState.DONE, 10**6))
    assert notes == {"won": len(jobs), "duplicate": 4 * len(jobs)}
    assert await store.callbacks(InboxState.NEW, 10) == []
    shown = await fleet.at_once(finish(fleet.any().store, job) for job in winners(attempts))
    assert all(shown)
    await fleet.all_delivered_and_paid_once(jobs)


async def test_a_failed_send_is_retried_by_one_instance_and_its_first_sender_is_fenced(fleet: Fleet) -> None:
    first, *others = fleet.instances
    jobs = await fleet.sending_jobs(500, first)
    done: list[int] = []

    async def fail(job: Job) -> bool:
        wait = Reschedule(job_id=job.id, token=job.lease_token, after=0.0, delivery=Delivery.PENDING, failed=True)
        assert await first.store.reschedule(wait)
        # A confirmation after all, as from a task that was not stopped: too late if another instance has taken over.
        return await finish(first.store, job, lease=first.lease)

    racing = [asyncio.create_task(deliver_claims(instance, len(jobs), done)) for instance in others]
    confirmed = await fleet.at_once(fail(job) for job in jobs)
    await asyncio.gather(*racing)

    assert not any(confirmed), "a released job has no lease until it is claimed"
    assert len(done) == len(set(done)) == len(jobs)
    rows = await first.store.jobs(limit=10**6)
    assert all(row.lease_token == job.lease_token + 1 for row, job in zip(_by_id(rows), _by_id(jobs), strict=True))
    assert not any(await fleet.at_once(finish(first.store, job, lease=first.lease) for job in jobs))
    await fleet.all_delivered_and_paid_once(jobs)


async def test_jobs_of_a_silent_instance_are_done_once_though_it_comes_back(fleet: Fleet) -> None:
    """All peers notice the missing heartbeat at the same time, but the instance was only paused."""
    dead, *peers = fleet.instances
    await dead.store.heartbeat(dead.lease.owner, 3.0)
    jobs = await fleet.sending_jobs(500, dead)
    done: list[int] = []

    async def take_over(peer: Instance) -> None:
        for silent in await peer.store.heartbeat(peer.lease.owner, 0.0):
            if silent == dead.lease.owner:
                await peer.store.release_leases(silent)
        await deliver_claims(peer, len(jobs), done)

    async def wake_up(job: Job) -> None:
        await dead.store.renew_lease(job.id, job.lease_token, dead.lease)
        await dead.store.save_parts(job.id, job.lease_token, SHOWN, dead.lease)
        if await finish(dead.store, job, lease=dead.lease):
            done.append(job.id)

    takeovers = [asyncio.create_task(take_over(peer)) for peer in peers]
    await fleet.at_once(wake_up(job) for job in jobs)
    await asyncio.gather(*takeovers)

    assert len(done) == len(set(done)) == len(jobs)
    await fleet.all_delivered_and_paid_once(jobs)


async def ends(store: PostgresStore, job: Job) -> bool:
    return (await end(store, job, State.FAILED)).job is not None


async def begins_its_notice(store: PostgresStore, job: Job) -> bool:
    return await store.begin_notice(job.id, job.lease_token)


async def shows_it_again(store: PostgresStore, job: Job) -> bool:
    return await store.resend_job(job.id, SHOWN)


@pytest.mark.parametrize(
    ("step", "stage"),
    [(ends, running), (finish, ended), (begins_its_notice, delivered), (shows_it_again, delivered)],
    ids=lambda one: str(one.__name__),
)
async def test_one_of_two_writers_that_wait_for_the_same_row_wins(
    fleet: Fleet, postgres_url: str, step: Callable[..., Coroutine[Any, Any, bool]], stage: Any
) -> None:
    """Both have read the row before either writes. The job is free, so no unique ledger key can stop the second."""
    one, other = (instance.store for instance in fleet.instances[:2])
    job = await stage(one, price=0)
    async with other_connection(postgres_url) as blocker:
        await blocker.execute("SELECT * FROM jobs FOR UPDATE")
        steps = [asyncio.create_task(step(store, job)) for store in (one, other)]
        await waiting_for_locks(fleet.instances[2].store, 2)

    assert sorted(await asyncio.gather(*steps)) == [False, True]
    assert await one.violations(settled=False) == []


async def test_concurrent_instances_begin_a_notice_once(fleet: Fleet) -> None:
    jobs = await fleet.sending_jobs(200, fleet.instances[0])
    assert all(await fleet.at_once(finish(fleet.any().store, job) for job in jobs))

    begun = await fleet.at_once(
        instance.store.begin_notice(job.id, job.lease_token) for job in jobs for instance in fleet.instances
    )

    assert sum(begun) == len(jobs)
    rows = await fleet.instances[0].store.jobs(limit=10**6)
    assert {row.notice for row in rows} == {Notice.SENT}
    await fleet.all_delivered_and_paid_once(jobs)
    assert await fleet.instances[0].store.violations(settled=True) == []


async def test_orphans_are_matched_however_they_race_with_the_answer(fleet: Fleet) -> None:
    """An unauthenticated callback and the answer of the create call at the same moment: none is lost."""

    async def start(number: int) -> Job:
        instance = fleet.any()
        wanted = order(fleet.accounts[number % ACCOUNT_COUNT])
        job = (await instance.store.accept_job(wanted, instance.lease)).job
        assert await instance.store.begin_submit(job.id, job.lease_token, hash_secret(SECRET), None)
        return job

    jobs = await fleet.at_once(start(number) for number in range(300))

    async def answer(job: Job) -> None:
        assert await fleet.any().store.mark_submitted(job.id, job.lease_token, f"task-{job.id}", 3600.0)

    async def untrusted(job: Job) -> None:
        store = fleet.any().store
        callback = await store.store_callback("kie", None, "", b"{}")
        await store.note_untrusted_callback(callback.id, "kie", f"task-{job.id}")

    await fleet.at_once(step(job) for job in jobs for step in (answer, untrusted, untrusted))
    store = fleet.instances[0].store
    while await store.match_orphans(100):
        pass

    matched, repeated = [await store.callbacks(state, 10**6) for state in (InboxState.MATCHED, InboxState.DONE)]
    assert {callback.task_id for callback in matched} == {f"task-{job.id}" for job in jobs}
    assert len(matched) + len(repeated) == 2 * len(jobs)
    due = await store.claim_jobs(10**6, fleet.instances[0].lease)
    assert {job.id for job in due} == {job.id for job in jobs}, "all are to be asked about at once"
    assert fleet.observer.total("store_retries") == 0


def _by_id(jobs: Iterable[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: job.id)


async def test_ends_and_deliveries_of_one_account_do_not_deadlock(fleet: Fleet) -> None:
    """Failures release holds while deliveries capture and new orders hold, all on the same few wallets."""
    few = replace(fleet, accounts=fleet.accounts[:4] * (ACCOUNT_COUNT // 4))
    jobs = await few.running_jobs(300)
    sending = await few.sending_jobs(200, fleet.instances[0])

    await fleet.at_once(
        [
            *(end(fleet.any().store, job, State.FAILED) for job in jobs),
            *(finish(fleet.any().store, job) for job in sending),
            *(fleet.any().store.accept_job(order(account_id), None) for account_id in few.accounts[:40]),
        ]
    )

    store = fleet.instances[0].store
    assert await store.violations(settled=False) == []
    wallets = [await store.wallet(account_id) for account_id in fleet.accounts[:4]]
    assert sum(wallet.held for wallet in wallets) == 40 * PRICE
    assert sum(wallet.available for wallet in wallets) == 4 * MONEY - (len(sending) + 40) * PRICE
    assert fleet.observer.total("store_retries") == 0
