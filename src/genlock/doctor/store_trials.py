"""What the doctor tries out on a store whose every change is undone."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from genlock.doctor.finding import Ill, need
from genlock.domain.delivery import MESSAGE_ONLY, plan
from genlock.domain.errors import IdempotencyKeyReused
from genlock.domain.job import Delivery, NewJob, State, Verdict, hash_secret
from genlock.domain.money import EntryKind
from genlock.domain.result import Piece
from genlock.domain.update import NewUpdate, Received
from genlock.ports import Database, EndJob, FinishDelivery, Lease, Store

A, B = Lease(owner="doctor-a", seconds=30.0), Lease(owner="doctor-b", seconds=30.0)


class LongAgo:
    """A clock of its own for what is only tried out: in those days nothing that is real was due."""

    def __init__(self) -> None:
        self._now = datetime(2000, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def turn(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


async def try_atomic(store: Database, clock: LongAgo) -> str:
    """Acquire a lease, lose it to another, and see the old holder refused."""
    order = await _order(store)
    job = (await store.accept_job(order, A)).job
    need(not await store.claim_jobs(10, B), "a leased job was claimed by a second instance")
    clock.turn(A.seconds + 1)
    claimed = await store.claim_jobs(10, B)
    need([one.id for one in claimed] == [job.id], "an expired lease was not taken over")
    token = claimed[0].lease_token
    need(
        not await store.begin_submit(job.id, job.lease_token, "", None),
        "the old holder of a lease could still write: fencing does not hold",
    )
    need(await store.begin_submit(job.id, token, hash_secret("s"), None), "the new holder of a lease could not write")
    need(await store.mark_submitted(job.id, token, f"doctor-{job.id}", 1.0), "a task could not be kept")
    await _deliver_once(store, job.id)
    await _role(store, clock)
    return "a lease was acquired, lost and fenced; one end and one delivery won; the role passed on with a new epoch"


async def _order(store: Store) -> NewJob:
    """An order by somebody who can pay for it."""
    person = await store.ensure_account("doctor", "doctor", secrets.token_hex(8))
    await store.transfer(person, EntryKind.TOPUP, 1000, "doctor:payment")
    return NewJob(
        account_id=person,
        request_key="doctor",
        provider="doctor",
        channel="doctor",
        address="doctor",
        model="doctor",
        input="{}",
        price=100,
        deadline_seconds=600.0,
    )


async def _deliver_once(store: Store, job_id: int) -> None:
    parts = plan((Piece(value="https://files.example/doctor.png"),))
    ended = await store.end_job(EndJob(job_id=job_id, state=State.SUCCEEDED, parts=parts), A)
    need(ended.verdict is Verdict.WON and ended.job is not None, "the first result did not win")
    assert ended.job is not None
    again = await store.end_job(EndJob(job_id=job_id, state=State.FAILED, parts=MESSAGE_ONLY), B)
    need(again.verdict is Verdict.CONTRADICTION, "a second result changed the first")
    finish = FinishDelivery(job_id=job_id, token=ended.job.lease_token, delivery=Delivery.DELIVERED, parts=parts)
    stale = replace(finish, token=finish.token - 1)
    need(await store.finish_delivery(stale, A) is None, "a stale deliverer could finish")
    need(await store.finish_delivery(finish, A) is not None, "the deliverer could not finish")
    need(await store.finish_delivery(finish, A) is None, "a delivery was finished twice")


async def _role(store: Store, clock: LongAgo) -> None:
    name = f"doctor:{secrets.token_hex(4)}"
    first = await store.take_role(name, A.owner, 3.0)
    need((await store.take_role(name, B.owner, 3.0)).holder == A.owner, "two instances held one role")
    clock.turn(4)
    second = await store.take_role(name, B.owner, 3.0)
    need(second.holder == B.owner and second.epoch > first.epoch, "a role that was over did not pass on")


async def try_replays(store: Database) -> str:
    """Do everything twice that must happen once."""
    order = await _order(store)
    first, again = await store.accept_job(order, None), await store.accept_job(order, None)
    need(again.job.id == first.job.id and not again.fresh, "the same key made a second job")
    try:
        await store.accept_job(replace(order, input='{"prompt":"another"}'), None)
    except IdempotencyKeyReused:
        pass
    else:
        raise Ill("the same key with another order was taken")
    need(
        not await store.transfer(order.account_id, EntryKind.TOPUP, 1000, "doctor:payment"),
        "a payment was counted twice",
    )
    wallet = await store.wallet(order.account_id)
    need((wallet.available, wallet.held) == (900, 100), "the replays changed the balance")
    update = NewUpdate(
        bot="doctor", update_id=1, ordering_key="1", kind="message", urgent=False, dedup_key=None, body="{}"
    )
    arrivals = [await store.store_update(update) for _ in range(2)]
    need(arrivals == [Received.FRESH, Received.KNOWN], "an update was taken twice")
    return "a replayed order, payment and update changed nothing; a reused key was refused"
