"""The doctor's checks of the store, made in transactions that are rolled back."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from genlock.doctor.check_failed import CheckFailed, require
from genlock.domain.delivery import MESSAGE_ONLY, plan
from genlock.domain.errors import IdempotencyKeyReused
from genlock.domain.job import Delivery, NewJob, State, Verdict, hash_secret
from genlock.domain.money import EntryKind
from genlock.domain.result import Piece
from genlock.domain.update import NewUpdate, Received
from genlock.ports import Database, EndJob, FinishDelivery, Lease, Store

A, B = Lease(owner="doctor-a", seconds=30.0), Lease(owner="doctor-b", seconds=30.0)


class TrialClock:
    """A clock set to the year 2000: at that time no real job was due, so the checks cannot touch live leases."""

    def __init__(self) -> None:
        self._now = datetime(2000, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


async def check_leases(store: Database, clock: TrialClock) -> str:
    """Acquire a lease, lose it to another instance, and see the old holder's writes refused."""
    order = await _order(store)
    job = (await store.accept_job(order, A)).job
    require(not await store.claim_jobs(10, B), "a leased job was claimed by a second instance")
    clock.advance(A.seconds + 1)
    claimed = await store.claim_jobs(10, B)
    require([claimed_job.id for claimed_job in claimed] == [job.id], "an expired lease was not taken over")
    token = claimed[0].lease_token
    require(
        not await store.begin_submit(job.id, job.lease_token, "", None),
        "the old holder of a lease could still write: fencing does not work",
    )
    require(
        await store.begin_submit(job.id, token, hash_secret("s"), None), "the new holder of a lease could not write"
    )
    require(await store.mark_submitted(job.id, token, f"doctor-{job.id}", 1.0), "a task id could not be stored")
    await _check_delivery(store, job.id)
    await _check_leadership(store, clock)
    return "a lease was acquired, lost and fenced; one end and one delivery won; leadership passed on with a new epoch"


async def _order(store: Store) -> NewJob:
    """Return an order of a new account that can pay for it."""
    account_id = await store.ensure_account("doctor", "doctor", secrets.token_hex(8))
    await store.transfer(account_id, EntryKind.TOPUP, 1000, "doctor:payment")
    return NewJob(
        account_id=account_id,
        request_key="doctor",
        provider="doctor",
        channel="doctor",
        address="doctor",
        model="doctor",
        input="{}",
        price=100,
        deadline_seconds=600.0,
    )


async def _check_delivery(store: Store, job_id: int) -> None:
    parts = plan((Piece(value="https://files.example/doctor.png"),))
    ended = await store.end_job(EndJob(job_id=job_id, state=State.SUCCEEDED, parts=parts), A)
    require(ended.verdict is Verdict.WON and ended.job is not None, "the first result did not win")
    assert ended.job is not None
    again = await store.end_job(EndJob(job_id=job_id, state=State.FAILED, parts=MESSAGE_ONLY), B)
    require(again.verdict is Verdict.CONTRADICTION, "a second result changed the first")
    finish = FinishDelivery(job_id=job_id, token=ended.job.lease_token, delivery=Delivery.DELIVERED, parts=parts)
    stale = replace(finish, token=finish.token - 1)
    require(await store.finish_delivery(stale, A) is None, "a stale deliverer could finish")
    require(await store.finish_delivery(finish, A) is not None, "the deliverer could not finish")
    require(await store.finish_delivery(finish, A) is None, "a delivery was finished twice")


async def _check_leadership(store: Store, clock: TrialClock) -> None:
    name = f"doctor:{secrets.token_hex(4)}"
    first = await store.take_role(name, A.owner, 3.0)
    require((await store.take_role(name, B.owner, 3.0)).holder == A.owner, "two instances were leader at the same time")
    clock.advance(4)
    second = await store.take_role(name, B.owner, 3.0)
    require(second.holder == B.owner and second.epoch > first.epoch, "an expired leadership did not pass on")


async def check_replays(store: Database) -> str:
    """Repeat every operation that must take effect once."""
    order = await _order(store)
    first, again = await store.accept_job(order, None), await store.accept_job(order, None)
    require(again.job.id == first.job.id and not again.created, "the same idempotency key made a second job")
    try:
        await store.accept_job(replace(order, input='{"prompt":"another"}'), None)
    except IdempotencyKeyReused:
        pass
    else:
        raise CheckFailed("the same idempotency key with another order was accepted")
    require(
        not await store.transfer(order.account_id, EntryKind.TOPUP, 1000, "doctor:payment"),
        "a payment was credited twice",
    )
    wallet = await store.wallet(order.account_id)
    require((wallet.available, wallet.held) == (900, 100), "the replays changed the balance")
    update = NewUpdate(
        bot="doctor", update_id=1, ordering_key="1", kind="message", urgent=False, dedup_key=None, body="{}"
    )
    arrivals = [await store.store_update(update) for _ in range(2)]
    require(arrivals == [Received.FRESH, Received.KNOWN], "an update was stored twice")
    return "a repeated order, payment and update changed nothing; a reused key was refused"
