"""The life of a job: acceptance, submission, its end, delivery, and leases."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from genlock.domain.delivery import Part, dump_parts
from genlock.domain.errors import (
    AccountNotFound,
    IdempotencyKeyReused,
    InsufficientBalance,
    SpendLimitReached,
    StoreError,
    TaskIdConflict,
    TooManyOpenJobs,
)
from genlock.domain.job import AttentionCode, Delivery, Job, NewJob, Notice, State, Verdict
from genlock.ports import Accepted, DeliveryEnd, EndJob, FailedAttempt, FinishDelivery, JobEnd, Lease, Reschedule
from genlock.stores.batch import Item, Params
from genlock.stores.callbacks import CALLBACK_HOLD_SECONDS
from genlock.stores.due_scan import DueScan
from genlock.stores.rows import HOLD_STATE, NOTICE, VERDICT, Row, read_arrival, read_job, read_new_job
from genlock.stores.session import Session, Subject

#: for batches whose items have no parameters in common
_NO_SHARED_PARAMS: Params = {}
#: how often an order is tried that was not accepted, though nothing stands in its way when the reason is looked up
ATTEMPTS_MAX = 20
_FENCED = (
    "begin_submit",
    "mark_submitted",
    "begin_progress",
    "save_parts",
    "begin_notice",
    "return_notice",
    "reschedule",
    "renew_lease",
)


class Jobs(Subject):
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._due_jobs = DueScan(session, "claim_jobs")
        self._accept = session.batch("accept_job", self._run_accept)
        #: with one order of each account
        self._accept_alone = session.batch("accept_job", self._run_accept_alone)
        self._end = session.batch("end_job", self._run_end)
        self._finish = session.batch("finish_delivery", self._run_finish)
        self._fenced = {name: session.batch(name, partial(self._run_fenced, name)) for name in _FENCED}

    # acceptance and submission

    async def accept_job(self, order: NewJob, lease: Lease | None) -> Accepted:
        item = {
            "account_id": order.account_id,
            "request_key": order.request_key,
            "request_hash": order.fingerprint(),
            "correlation_id": order.correlation_id,
            "provider": order.provider,
            "channel": order.channel,
            "bot": order.bot,
            "address": order.address,
            "placeholder": order.placeholder,
            "model": order.model,
            "input": order.input,
            "price": order.price,
            "deadline_seconds": order.deadline_seconds,
            "notice": (Notice.WANTED if order.notice else Notice.NONE).value,
            "api_key_id": order.api_key_id,
            "open_max": order.open_max,
        }
        shared = _lease(lease)
        accepted = await self._accept(Item((order.account_id, order.request_key), shared, item, order))
        for _ in range(ATTEMPTS_MAX):
            if accepted is not None:
                return accepted
            accepted = await self._accept_alone(Item(order.account_id, shared, item, order))
        raise StoreError(f"an order was neither accepted nor refused in {ATTEMPTS_MAX} attempts")

    async def _run_accept(self, items: list[Item[NewJob]]) -> list[Accepted | Exception | None]:
        """Accept orders; None for one that must be tried alone.

        Among several of its account it may not be covered, and what stood in its way may be gone by now.
        """
        added = await self._add(items)
        orders = Counter(item.value.account_id for item in items)
        return [
            added.get(item.key)
            or (await self._why_not_accepted(item.params) if orders[item.value.account_id] == 1 else None)
            for item in items
        ]

    async def _run_accept_alone(self, items: list[Item[NewJob]]) -> list[Accepted | Exception | None]:
        added = await self._add(items)
        return [
            added.get((item.value.account_id, item.value.request_key)) or await self._why_not_accepted(item.params)
            for item in items
        ]

    async def _add(self, items: list[Item[NewJob]]) -> dict[tuple[int, str], Accepted]:
        """Write the orders that are new and covered."""
        rows = await self.session.rows("accept_job", items)
        orders = {(item.value.account_id, item.value.request_key): item.value for item in items}
        owner, time = items[0].shared["owner"], self.session.time
        return {
            key: Accepted(job=read_new_job(row, time, orders[key], owner), created=True)
            for row in rows
            for key in [(row["account_id"], row["request_key"])]
        }

    async def _why_not_accepted(self, item: Params) -> Accepted | Exception | None:
        """Return why an order was not accepted: None if nothing stands in its way any more."""
        account_id, request_key = item["account_id"], item["request_key"]
        rows = await self.session.one("accept_lookup", account_id=account_id, request_key=request_key)
        if not rows:
            return AccountNotFound()
        row = rows[0]
        if row["id"] is None and (over := await self._over_spend_limit(item)) is not None:
            return over
        if row["id"] is None and row["available"] < item["price"]:
            return InsufficientBalance(price=item["price"], available=row["available"])
        if row["id"] is None:
            is_full = item["open_max"] is not None and row["open_api_jobs"] >= item["open_max"]
            return TooManyOpenJobs(open_jobs=item["open_max"]) if is_full else None
        if row["request_hash"] != item["request_hash"]:
            return IdempotencyKeyReused()
        return Accepted(job=read_job(row, self.session.time), created=False)

    async def _over_spend_limit(self, item: Params) -> SpendLimitReached | None:
        if item["api_key_id"] is None:
            return None
        [key] = await self.session.one("api_key", id=item["api_key_id"])
        limit, spent = key["spend_limit"], key["spent_today"]
        if limit is None or spent + item["price"] <= limit:
            return None
        return SpendLimitReached(price=item["price"], spent=spent, limit=limit)

    async def begin_submit(
        self,
        job_id: int,
        token: int,
        secret_hash: str,
        placeholder: str | None,
        provider: str | None = None,
        offer: str | None = None,
        sent_input: str | None = None,
    ) -> bool:
        return await self._fence(
            "begin_submit",
            job_id=job_id,
            token=token,
            secret_hash=secret_hash,
            placeholder=placeholder,
            provider=provider,
            offer=offer,
            sent_input=sent_input,
        )

    async def mark_submitted(self, job_id: int, token: int, task_id: str, poll_after: float, handle: str = "") -> bool:
        try:
            return await self._fence(
                "mark_submitted",
                job_id=job_id,
                token=token,
                task_id=task_id,
                handle=handle,
                poll_after=poll_after,
            )
        except self.session.unique_violation as error:
            raise TaskIdConflict from error

    async def adopt_task(
        self, job_id: int, secret_hash: str | None, task_id: str, handle: str = "", attempt: int | None = None
    ) -> bool:
        params = {"secret_hash": secret_hash, "task_id": task_id, "handle": handle, "attempt": attempt}
        return bool(await self.session.one("adopt_task", job_id=job_id, **params))

    async def fail_over(self, failed: FailedAttempt) -> bool:
        rows = await self.session.one(
            "fail_over",
            job_id=failed.job_id,
            attempt=failed.attempt,
            token=failed.token,
            outcome=failed.outcome.value,
            error_code=failed.error_code,
            task_id=failed.task_id,
            cost=failed.cost,
            callback_id=failed.callback_id,
        )
        return bool(rows)

    async def begin_progress(self, job_id: int, token: int, lease: Lease) -> bool:
        return await self._fence("begin_progress", _lease(lease), job_id=job_id, token=token)

    # the end and the delivery

    async def end_job(self, ending: EndJob, lease: Lease | None) -> JobEnd:
        arrival = ending.arrival
        params = {
            "job_id": ending.job_id,
            "token": ending.token,
            "state": ending.state.value,
            "parts": dump_parts(ending.parts),
            "task_id": ending.task_id,
            "error_code": ending.error_code,
            "error_text": ending.error_text,
            "cancelled_by": ending.cancelled_by.value if ending.cancelled_by else "",
            "cost": ending.cost,
            "callback_id": ending.callback_id,
            "attempt": ending.attempt,
            "provider": arrival and arrival.provider,
            "secret_hash": arrival and arrival.secret_hash,
            "body": arrival and arrival.body,
        }
        item = Item(ending.job_id, {**_lease(lease), "hold_seconds": CALLBACK_HOLD_SECONDS}, params, ending)
        try:
            return await self._end(item)
        except self.session.unique_violation:
            # Another job was given the same task id during the statement. The next attempt sees that row.
            return await self._end(item)

    async def _run_end(self, items: list[Item[EndJob]]) -> list[JobEnd]:
        rows = {row["id"]: row for row in await self.session.rows("end_job", items)}
        return [self._read_end(item.value, rows.get(item.key)) for item in items]

    def _read_end(self, ending: EndJob, row: Row | None) -> JobEnd:
        if row is None:
            return JobEnd(verdict=Verdict.MISSING)
        verdict, time = VERDICT[row["verdict"]], self.session.time
        job = read_job(row, time, ending.parts) if verdict in (Verdict.WON, Verdict.LATE) else None
        callback = read_arrival(row, time, ending.arrival, ending.task_id) if ending.arrival else None
        return JobEnd(verdict=verdict, job=job, callback=callback)

    async def save_parts(self, job_id: int, token: int, parts: tuple[Part, ...], lease: Lease) -> bool:
        return await self._fence(
            "save_parts", {"seconds": lease.seconds}, job_id=job_id, token=token, parts=dump_parts(parts)
        )

    async def finish_delivery(self, finish: FinishDelivery, lease: Lease) -> DeliveryEnd | None:
        item = {
            "job_id": finish.job_id,
            "token": finish.token,
            "delivery": finish.delivery.value,
            "parts": dump_parts(finish.parts),
            "placeholder": finish.parts[0].message if finish.parts else None,
            "attention_code": _code(finish.attention_reason, finish.attention_code),
            "attention_reason": finish.attention_reason,
            "overwritable": finish.overwritable,
        }
        return await self._finish(Item(finish.job_id, _lease(lease), item, None))

    async def _run_finish(self, items: list[Item[None]]) -> list[DeliveryEnd | None]:
        done = {
            row["id"]: DeliveryEnd(hold_state=HOLD_STATE[row["hold_state"]], notice=NOTICE[row["notice"]])
            for row in await self.session.rows("finish_delivery", items)
        }
        return [done.get(item.key) for item in items]

    async def mark_result_invalid(
        self, job_id: int, token: int, parts: tuple[Part, ...], code: str, text: str
    ) -> Job | None:
        rows = await self.session.one(
            "mark_result_invalid", job_id=job_id, token=token, parts=dump_parts(parts), error_code=code, error_text=text
        )
        return read_job(rows[0], self.session.time) if rows else None

    async def change_address(self, job_id: int, token: int, address: str, parts: tuple[Part, ...]) -> bool:
        return bool(
            await self.session.one(
                "change_address", job_id=job_id, token=token, address=address, parts=dump_parts(parts)
            )
        )

    async def begin_notice(self, job_id: int, token: int) -> bool:
        return await self._fence("begin_notice", job_id=job_id, token=token)

    async def return_notice(self, job_id: int, token: int, after: float, *, failed: bool) -> bool:
        return await self._fence("return_notice", job_id=job_id, token=token, after=after, failed=failed)

    # leases

    async def claim_jobs(self, limit: int, lease: Lease) -> list[Job]:
        return [read_job(row, self.session.time) for row in await self._due_jobs.claim(limit, **_lease(lease))]

    async def claim_poison_jobs(self, slots: Sequence[int], lease: Lease) -> list[Job]:
        rows = await self.session.one("claim_poison_jobs", slots=self.session.array(slots), **_lease(lease))
        return [read_job(row, self.session.time) for row in rows]

    async def renew_lease(self, job_id: int, token: int, lease: Lease) -> bool:
        return await self._fence("renew_lease", _lease(lease), job_id=job_id, token=token)

    async def reschedule(self, wait: Reschedule) -> bool:
        return await self._fence(
            "reschedule",
            job_id=wait.job_id,
            token=wait.token,
            after=wait.after,
            state=_value(wait.state),
            delivery=_value(wait.delivery),
            parts=None if wait.parts is None else dump_parts(wait.parts),
            grace=wait.grace,
            failed=wait.failed,
            progress_settled=wait.progress_settled,
            attention_code=_code(wait.attention_reason, wait.attention_code),
            attention_reason=wait.attention_reason,
        )

    async def _fence(self, name: str, shared: Params = _NO_SHARED_PARAMS, /, **item: Any) -> bool:
        return await self._fenced[name](Item(item["job_id"], shared, item, None))

    async def _run_fenced(self, name: str, items: list[Item[None]]) -> list[bool]:
        done = {row["id"] for row in await self.session.rows(name, items)}
        return [item.key in done for item in items]

    # operators

    async def retry_job(self, job_id: int, *, resubmit: int | None = None) -> bool:
        return bool(await self.session.one("retry_job", job_id=job_id, resubmit=resubmit))

    async def resend_job(self, job_id: int, parts: tuple[Part, ...], token: int | None = None) -> bool:
        return bool(await self.session.one("resend_job", job_id=job_id, parts=dump_parts(parts), token=token))

    async def resend_paid_job(self, job_id: int, parts: tuple[Part, ...], token: int) -> bool:
        for _ in range(ATTEMPTS_MAX):
            if await self.session.one("resend_paid_job", job_id=job_id, parts=dump_parts(parts), token=token):
                return True
            rows = await self.session.one("job", job_id=job_id)
            job = read_job(rows[0], self.session.time) if rows else None
            if job is None or job.lease_token != token or not job.unpaid:
                return False
            [wallet] = await self.session.one("wallet", account_id=job.account_id)
            if wallet["available"] < job.price:  # otherwise credits arrived after the attempt
                raise InsufficientBalance(price=job.price, available=wallet["available"])
        raise StoreError(f"job {job_id} was neither resent nor refused in {ATTEMPTS_MAX} attempts")


def _lease(lease: Lease | None) -> Params:
    """Return the parameters of a lease. Without one the job is due at once."""
    return {"owner": lease.owner, "seconds": lease.seconds} if lease else {"owner": None, "seconds": 0.0}


def _value(member: State | Delivery | None) -> str | None:
    return None if member is None else member.value


def _code(reason: str | None, code: AttentionCode) -> str | None:
    """A job has an attention code exactly when it has an attention reason."""
    return None if reason is None else code.value
