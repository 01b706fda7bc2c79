"""Everything both databases do alike: which statement, which items, what the rows mean."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter
from typing import Any

from genlock.domain.account import Account
from genlock.domain.delivery import Part, dump_parts
from genlock.domain.errors import AccountNotFound, IdempotencyKeyReused, InsufficientBalance, StoreError, TaskIdConflict
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Delivery, Job, NewJob, Notice, State, Verdict
from genlock.domain.money import ROUTE, EntryKind, LedgerAccount, LedgerEntry, Wallet
from genlock.domain.poison import ISOLATED_FROM
from genlock.ports import (
    Accepted,
    DeliveryEnd,
    EndJob,
    FinishDelivery,
    JobEnd,
    Lease,
    Observer,
    Reschedule,
    Role,
    Violation,
)
from genlock.stores.batch import Batch, Item, Params
from genlock.stores.chat import ChatRows
from genlock.stores.limits import LimitRows
from genlock.stores.queries import Query
from genlock.stores.rows import (
    HOLD_STATE,
    NOTICE,
    VERDICT,
    Row,
    Time,
    read_arrival,
    read_callback,
    read_job,
    read_ledger_entry,
    read_new_job,
)
from genlock.stores.updates import UpdateRows
from genlock.stores.upkeep import UpkeepRows

CALLBACK_HOLD_SECONDS = 3.0
#: what the calls of most batches share
NOTHING: Params = {}


_KEY, _SHARED = itemgetter(0), itemgetter(1)


class SqlDatabase(ChatRows, LimitRows, UpdateRows, UpkeepRows):
    """The Store port over named statements. A dialect brings the connection and the clock."""

    queries: dict[str, Query]
    time: Time
    #: what the driver raises where a key is there already
    not_unique: type[Exception]
    uncertain_commits: int = 0
    applied: list[str]

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._accept = self._batch("accept", self._run_accept)
        self._end = self._batch("end_job", self._run_end_job)
        self._finish = self._batch("finish_delivery", self._run_finish_delivery)
        self._store_callback = self._batch("store_callback", self._run_store_callback)
        self._fenced = {
            name: self._batch(name, self._fenced_runner(name))
            for name in ("begin_submit", "mark_submitted", "save_parts", "begin_notice", "reschedule", "renew")
        }
        self._settle = self._batch("settle_callback", self._run_settle)
        self._limits: set[str] = set()
        self._arrivals = count()
        self._orphaned_instances: Sequence[str] = ()

    # what a dialect brings

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    async def one(self, name: str, /, **params: Any) -> list[Row]:
        """Run a statement once, in a transaction of its own."""

    @abstractmethod
    async def many(self, name: str, shared: Params, items: Sequence[Params]) -> list[Row]:
        """Run a statement over many items, in one transaction."""

    # batches

    def _batch(self, name: str, run: Any) -> "Batch[Item, Any]":
        async def counted(items: list[Item]) -> Sequence[Any]:
            self._observer.count("store_batches", 1, operation=name)
            self._observer.count("store_batch_items", len(items), operation=name)
            return await run(items)  # type: ignore[no-any-return]

        return Batch(counted, key=_KEY, alike=_SHARED)

    async def _rows(self, name: str, items: list[Item]) -> list[Row]:
        """The rows of a batch: one statement, so that it happens as a whole or not at all.

        In the order of the rows it locks, so that two batches never wait for each other in a circle.
        """
        ordered = sorted(items, key=_KEY)
        return await self.many(name, items[0].shared, [item.params for item in ordered])

    def _fenced_runner(self, name: str) -> Any:
        async def run(items: list[Item]) -> list[bool]:
            done = {row["id"] for row in await self._rows(name, items)}
            return [item.key in done for item in items]

        return run

    async def _run_accept(self, items: list[Item]) -> list[Accepted | Exception]:
        added = {row["account_id"]: row for row in await self._rows("accept", items)}
        owner = items[0].shared["owner"]
        answers: list[Accepted | Exception] = []
        for item in items:
            row = added.get(item.key)
            if row is None:
                answers.append(await self._why_not_accepted(item.params))
            else:
                answers.append(Accepted(job=read_new_job(row, self.time, item.value, owner), fresh=True))
        return answers

    async def _why_not_accepted(self, item: Params) -> Accepted | Exception:
        rows = await self.one("accept_lookup", account_id=item["account_id"], request_key=item["request_key"])
        if not rows:
            return AccountNotFound()
        row = rows[0]
        if row["id"] is None:
            return InsufficientBalance(price=item["price"], available=row["available"])
        if row["request_hash"] != item["request_hash"]:
            return IdempotencyKeyReused()
        return Accepted(job=read_job(row, self.time), fresh=False)

    async def _run_end_job(self, items: list[Item]) -> list[JobEnd]:
        rows = {row["id"]: row for row in await self._rows("end_job", items)}
        return [self._read_end(item.value, rows.get(item.key)) for item in items]

    def _read_end(self, ending: EndJob, row: Row | None) -> JobEnd:
        if row is None:
            return JobEnd(verdict=Verdict.MISSING)
        verdict = VERDICT[row["verdict"]]
        job = read_job(row, self.time, ending.parts) if verdict in (Verdict.WON, Verdict.LATE) else None
        if job and row["interrupted"]:
            job = replace(job, interrupted=True)
        return JobEnd(
            verdict=verdict,
            job=job,
            callback=read_arrival(row, self.time, ending.arrival, ending.task_id) if ending.arrival else None,
        )

    async def _run_finish_delivery(self, items: list[Item]) -> list[DeliveryEnd | None]:
        done = {
            row["id"]: DeliveryEnd(hold_state=HOLD_STATE[row["hold_state"]], notice=NOTICE[row["notice"]])
            for row in await self._rows("finish_delivery", items)
        }
        return [done.get(item.key) for item in items]

    async def _run_store_callback(self, items: list[Item]) -> list[Row]:
        for place, item in enumerate(items):
            item.params["ord"] = place
        rows = {row["ord"]: row for row in await self._rows("store_callback", items)}
        return [rows[item.params["ord"]] for item in items]

    async def _run_settle(self, items: list[Item]) -> list[None]:
        await self._rows("settle_callback", items)
        return [None] * len(items)

    # people and money

    async def ensure_account(self, channel: str, bot: str, external_id: str) -> int:
        for _ in range(2):  # PostgreSQL may overlook a row that was added while it looked; it is there the second time
            if rows := await self.one("ensure_account", channel=channel, bot=bot, external_id=external_id):
                return int(rows[0]["id"])
        raise StoreError(f"could not find or make the person {external_id} of {channel}")

    async def account(self, account_id: int) -> Account:
        rows = await self.one("account", account_id=account_id)
        if not rows:
            raise AccountNotFound
        return Account(**dict(rows[0]))

    async def set_account_address(self, account_id: int, address: str) -> None:
        await self.one("set_account_address", account_id=account_id, address=address)

    async def wallet(self, account_id: int) -> Wallet:
        rows = await self.one("wallet", account_id=account_id)
        if not rows:
            raise AccountNotFound
        return Wallet(account_id=account_id, available=rows[0]["available"], held=rows[0]["held"])

    async def transfer(self, account_id: int, kind: EntryKind, amount: int, key: str, reason: str = "") -> bool:
        debit, credit = ROUTE[kind]
        assert LedgerAccount.HELD not in (debit, credit), "held money moves only with its job"
        rows = await self.one(
            "transfer",
            account_id=account_id,
            kind=kind.value,
            debit=debit.value,
            credit=credit.value,
            amount=amount,
            key=key,
            reason=reason,
        )
        if rows:
            return True
        before = await self.one("ledger_entry", key=key)
        if not before:
            wallet = await self.wallet(account_id)
            raise InsufficientBalance(price=amount, available=wallet.available)
        if (before[0]["account_id"], before[0]["kind"], before[0]["amount"]) != (account_id, kind.value, amount):
            raise IdempotencyKeyReused(f"the key {key!r} already stands for another movement")
        return False

    async def ledger_entries(self, account_id: int, limit: int) -> list[LedgerEntry]:
        return [
            read_ledger_entry(row, self.time)
            for row in await self.one("ledger_entries", account_id=account_id, limit=limit)
        ]

    # the life of a job

    async def accept(self, order: NewJob, lease: Lease | None) -> Accepted:
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
        }
        return await self._accept(Item(order.account_id, _lease(lease), item, order))  # type: ignore[no-any-return]

    async def begin_submit(self, job_id: int, token: int, secret_hash: str, placeholder: str | None) -> bool:
        return await self._fence(
            "begin_submit", job_id=job_id, token=token, secret_hash=secret_hash, placeholder=placeholder
        )

    async def mark_submitted(self, job_id: int, token: int, task_id: str, poll_after: float) -> bool:
        try:
            return await self._fence(
                "mark_submitted", job_id=job_id, token=token, task_id=task_id, poll_after=poll_after
            )
        except self.not_unique as error:
            raise TaskIdConflict from error

    async def adopt_task(self, job_id: int, secret_hash: str | None, task_id: str) -> bool:
        return bool(await self.one("adopt_task", job_id=job_id, secret_hash=secret_hash, task_id=task_id))

    async def end_job(self, ending: EndJob, lease: Lease | None) -> JobEnd:
        item = {
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
            "provider": ending.arrival and ending.arrival.provider,
            "secret_hash": ending.arrival and ending.arrival.secret_hash,
            "body": ending.arrival and ending.arrival.body,
        }
        shared = {**_lease(lease), "hold_seconds": CALLBACK_HOLD_SECONDS}
        try:
            return await self._end(Item(ending.job_id, shared, item, ending))  # type: ignore[no-any-return]
        except self.not_unique:  # the task it names became another job's at this very moment: now that can be seen
            return await self._end(Item(ending.job_id, shared, item, ending))  # type: ignore[no-any-return]

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
            "attention_code": None if finish.attention_reason is None else finish.attention_code.value,
            "attention_reason": finish.attention_reason,
        }
        return await self._finish(Item(finish.job_id, _lease(lease), item))  # type: ignore[no-any-return]

    async def mark_result_invalid(
        self, job_id: int, token: int, parts: tuple[Part, ...], code: str, text: str
    ) -> Job | None:
        rows = await self.one(
            "mark_result_invalid", job_id=job_id, token=token, parts=dump_parts(parts), error_code=code, error_text=text
        )
        return read_job(rows[0], self.time) if rows else None

    async def change_address(self, job_id: int, token: int, address: str, parts: tuple[Part, ...]) -> bool:
        rows = await self.one("change_address", job_id=job_id, token=token, address=address, parts=dump_parts(parts))
        return bool(rows)

    async def begin_notice(self, job_id: int, token: int) -> bool:
        return await self._fence("begin_notice", job_id=job_id, token=token)

    async def reschedule(self, wait: Reschedule) -> bool:
        return await self._fence(
            "reschedule",
            job_id=wait.job_id,
            token=wait.token,
            after=wait.after,
            state=_value(wait.state),
            delivery=_value(wait.delivery),
            notice=_value(wait.notice),
            parts=None if wait.parts is None else dump_parts(wait.parts),
            grace=wait.grace,
            failed=wait.failed,
            attention_code=None if wait.attention_reason is None else wait.attention_code.value,
            attention_reason=wait.attention_reason,
        )

    async def renew(self, job_id: int, token: int, lease: Lease) -> bool:
        return await self._fence("renew", _lease(lease), job_id=job_id, token=token)

    async def _fence(self, name: str, shared: Params = NOTHING, /, **item: Any) -> bool:
        return await self._fenced[name](Item(item["job_id"], shared, item))  # type: ignore[no-any-return]

    async def claim(self, limit: int, lease: Lease) -> list[Job]:
        rows = await self.one("claim", limit=limit, **_lease(lease))
        return [read_job(row, self.time) for row in rows]

    async def claim_poison_jobs(self, slots: Sequence[int], lease: Lease) -> list[Job]:
        rows = await self.one("claim_poison_jobs", slots=self.array(slots), **_lease(lease))
        return [read_job(row, self.time) for row in rows]

    # the inbox

    async def store_callback(self, provider: str, job_id: int | None, secret_hash: str, body: bytes) -> Callback:
        item = {"provider": provider, "job_id": job_id, "secret_hash": secret_hash, "body": body}
        row = await self._store_callback(Item(next(self._arrivals), {"hold_seconds": CALLBACK_HOLD_SECONDS}, item))
        received = self.time(row["received_at"])
        assert received is not None
        return Callback(
            id=row["id"],
            provider=provider,
            job_id=row["job_id"],
            task_id=None,
            body=body,
            state=InboxState.NEW,
            note="",
            received_at=received,
            correlation_id=row["correlation_id"] or "",
        )

    async def count_unauthenticated_callbacks(self, seconds: float, limit: int) -> int:
        return int((await self.one("count_unauthenticated_callbacks", older_than=seconds, limit=limit))[0]["number"])

    async def is_secret(self, job_id: int, provider: str, secret_hash: str) -> bool:
        return bool(await self.one("is_secret", job_id=job_id, provider=provider, secret_hash=secret_hash))

    async def claim_callbacks(self, limit: int, hold_seconds: float) -> list[Callback]:
        rows = await self.one("claim_callbacks", limit=limit, hold_seconds=hold_seconds)
        return [read_callback(row, self.time) for row in rows]

    async def settle_callback(
        self, callback_id: int, state: InboxState, task_id: str | None = None, note: str = ""
    ) -> None:
        item = {"callback_id": callback_id, "state": state.value, "task_id": task_id, "note": note}
        await self._settle(Item(callback_id, NOTHING, item))

    async def expire_callback(self, callback_id: int, older_than: float, note: str) -> bool:
        return bool(await self.one("expire_callback", callback_id=callback_id, older_than=older_than, note=note))

    async def note_untrusted_callback(self, callback_id: int, provider: str, task_id: str) -> int | None:
        rows = await self.one("note_untrusted_callback", callback_id=callback_id, provider=provider, task_id=task_id)
        return rows[0]["job_id"] if rows else None

    async def match_orphans(self, limit: int) -> list[tuple[int, int]]:
        return [(row["callback_id"], row["job_id"]) for row in await self.one("match_orphans", limit=limit)]

    async def expire_orphans(self, older_than: float, role: Role) -> list[int]:
        rows = await self.one("expire_orphans", older_than=older_than, holder=role.holder, epoch=role.epoch)
        return [row["id"] for row in rows]

    async def callbacks(self, state: InboxState, limit: int) -> list[Callback]:
        return [read_callback(row, self.time) for row in await self.one("callbacks", state=state.value, limit=limit)]

    # instances

    async def heartbeat(self, instance: str, silent_seconds: float) -> list[str]:
        rows = await self.one("heartbeat", instance=instance, silent_seconds=silent_seconds)
        return [row["id"] for row in rows]

    async def orphaned_instances(self) -> Sequence[str]:
        return self._orphaned_instances

    async def release_leases(self, instance: str, but: Sequence[int] = (), *, died: bool = False) -> int:
        if not but:
            await self.release_update_queues(instance, died=died)  # first: the other one forgets the instance
        return len(
            await self.one(
                "release_leases", instance=instance, but=self.array(but), died=died, isolated_from=ISOLATED_FROM
            )
        )

    def array(self, values: Sequence[Any]) -> Any:
        """A list as the dialect takes it."""
        return json.dumps(list(values))

    async def take_role(self, name: str, instance: str, seconds: float) -> Role:
        for _ in range(2):  # as for person
            if rows := await self.one("take_role", name=name, instance=instance, seconds=seconds):
                return Role(holder=rows[0]["holder"], epoch=rows[0]["epoch"])
        raise StoreError(f"could not take or read the role {name}")

    async def leave_role(self, name: str, instance: str) -> None:
        await self.one("leave_role", name=name, instance=instance)

    async def reserve(self, key: str, count: int, interval: float, burst: int, horizon: float) -> list[float]:
        rows: list[Row] = []
        while not rows:
            if key not in self._limits:
                await self.one("open_limit", key=key)
                self._limits.add(key)
            rows = await self.one("reserve", key=key, count=count, interval=interval, burst=burst, horizon=horizon)
            if not rows:  # it was not used for long, and forgotten
                self._limits.discard(key)
        first, after = rows[0]["wait"], rows[1]["wait"]
        granted = round((after - first) / interval)
        return [max(0.0, first + turn * interval) for turn in range(granted)]

    # looking, and an operator's hands

    async def job(self, job_id: int) -> Job | None:
        rows = await self.one("job", job_id=job_id)
        return read_job(rows[0], self.time) if rows else None

    async def job_ordered(self, account_id: int, request_key: str) -> Job | None:
        rows = await self.one("accept_lookup", account_id=account_id, request_key=request_key)
        return read_job(rows[0], self.time) if rows and rows[0]["id"] is not None else None

    async def jobs(
        self, *, state: State | None = None, account_id: int | None = None, before: int | None = None, limit: int = 50
    ) -> list[Job]:
        rows = await self.one("jobs", state=_value(state), account_id=account_id, before=before, limit=limit)
        return [read_job(row, self.time) for row in rows]

    async def jobs_needing_attention(self, limit: int) -> list[Job]:
        return [read_job(row, self.time) for row in await self.one("jobs_needing_attention", limit=limit)]

    async def retry(self, job_id: int) -> bool:
        return bool(await self.one("retry", job_id=job_id))

    async def resend(self, job_id: int, parts: tuple[Part, ...], token: int | None = None) -> bool:
        return bool(await self.one("resend", job_id=job_id, parts=dump_parts(parts), token=token))

    async def resend_paid(self, job_id: int, parts: tuple[Part, ...], token: int) -> bool:
        if await self.one("resend_paid", job_id=job_id, parts=dump_parts(parts), token=token):
            return True
        job = await self.job(job_id)
        if job is not None and job.lease_token == token and job.unpaid:
            raise InsufficientBalance(price=job.price, available=(await self.wallet(job.account_id)).available)
        return False

    async def counts(self) -> dict[str, int]:
        return {row["name"]: row["count"] for row in await self.one("counts")}

    async def violations(self, *, settled: bool) -> list[Violation]:
        prefixes = ("check_", "settled_") if settled else ("check_",)
        found: list[Violation] = []
        for query in self.queries.values():
            if query.name.startswith(prefixes):
                found += [
                    Violation(rule=query.description, subject=row["subject"], detail=row["detail"])
                    for row in await self.one(query.name)
                ]
        return found


def _lease(lease: Lease | None) -> Params:
    """Nobody's lease is over at once: the job is due now."""
    return {"owner": lease.owner, "seconds": lease.seconds} if lease else {"owner": None, "seconds": 0.0}


def _value(word: State | Delivery | Notice | None) -> str | None:
    return None if word is None else word.value
