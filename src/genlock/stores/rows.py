"""Converts database rows to domain values that several modules read; a row of one module is converted there."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from genlock.domain.account import Account
from genlock.domain.activity import Activity
from genlock.domain.anomaly import Anomaly, AnomalyKind
from genlock.domain.attempt import Attempt, AttemptOutcome
from genlock.domain.audit import AuditLine
from genlock.domain.delivery import Part, load_parts
from genlock.domain.draft import SavedDraft
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Actor, AttentionCode, Delivery, Job, NewJob, Notice, State, Verdict
from genlock.domain.money import EntryKind, HoldState, LedgerAccount, LedgerEntry, Wallet
from genlock.domain.payment import Payment, PaymentState
from genlock.domain.profile import AccountSummary, Profile
from genlock.domain.queued_message import QueuedMessage
from genlock.domain.update import Update, UpdateQueue, UpdateState
from genlock.domain.upload import Upload, UploadCopy
from genlock.ports import KvEntry, NewCallback, OrderState

Row = Mapping[str, Any]
#: converts a time column of the database to an aware datetime
Time = Callable[[Any], datetime | None]

# A dictionary is twice as fast as calling the enum, and jobs are read often.
HOLD_STATE = {word.value: word for word in HoldState}
_STATE = {word.value: word for word in State}
_ACTOR: dict[str, Actor | None] = {"": None, **{word.value: word for word in Actor}}
_ATTENTION: dict[str | None, AttentionCode | None] = {None: None, **{word.value: word for word in AttentionCode}}
_DELIVERY = {word.value: word for word in Delivery}
VERDICT = {word.value: word for word in Verdict}
NOTICE = {word.value: word for word in Notice}


def read_job(row: Row, time: Time, parts: tuple[Part, ...] | None = None) -> Job:
    """Return a job from its row. A caller that has just written the parts passes them, which saves parsing them."""
    return Job(
        id=row["id"],
        account_id=row["account_id"],
        request_key=row["request_key"],
        correlation_id=row["correlation_id"],
        provider=row["provider"],
        channel=row["channel"],
        bot=row["bot"],
        address=row["address"],
        placeholder=row["placeholder"],
        model=row["model"],
        input=row["input"],
        price=row["price"],
        hold_state=HOLD_STATE[row["hold_state"]],
        state=_STATE[row["state"]],
        task_id=row["task_id"],
        error_code=row["error_code"],
        error_text=row["error_text"],
        cancelled_by=_ACTOR[row["cancelled_by"]],
        cost=row["cost"],
        late=bool(row["late"]),
        parts=load_parts(row["parts"]) if parts is None else parts,
        delivery=_DELIVERY[row["delivery"]],
        notice=NOTICE[row["notice"]],
        attention_code=_ATTENTION[row["attention_code"]],
        attention_reason=row["attention_reason"],
        attempts=row["attempts"],
        due_at=time(row["due_at"]),
        deadline_at=not_null(time(row["deadline_at"])),
        grace_until=time(row["grace_until"]),
        lease_owner=row["lease_owner"],
        lease_token=row["lease_token"],
        created_at=not_null(time(row["created_at"])),
        submitted_at=time(row["submitted_at"]),
        ended_at=time(row["ended_at"]),
        delivered_at=time(row["delivered_at"]),
        crash_count=row["crash_count"],
        progress_message=row["progress_message"],
        hidden=row["hidden_at"] is not None,
        handle=row["handle"],
        attempt=row["attempt"],
        read_at=not_null(time(row["read_at"])),
    )


def read_order_state(row: Row, time: Time) -> OrderState:
    job = read_job(row, time) if row["id"] is not None else None
    return OrderState(job=job, available=row["available"], open_api_jobs=row["open_api_jobs"])


def read_new_job(row: Row, time: Time, order: NewJob, owner: str | None) -> Job:
    """Return a job from its order and the columns that the database has set; the rest of the row is not read back."""
    created_at = not_null(time(row["created_at"]))
    return Job(
        id=row["id"],
        account_id=order.account_id,
        request_key=order.request_key,
        correlation_id=order.correlation_id,
        provider=order.provider,
        channel=order.channel,
        bot=order.bot,
        address=order.address,
        placeholder=order.placeholder,
        model=order.model,
        input=order.input,
        price=order.price,
        hold_state=HoldState.HELD if order.price else HoldState.FREE,
        state=State.QUEUED,
        task_id=None,
        error_code="",
        error_text="",
        cancelled_by=None,
        cost=None,
        late=False,
        parts=(),
        delivery=Delivery.NONE,
        notice=Notice.WANTED if order.notice else Notice.NONE,
        attention_code=None,
        attention_reason=None,
        attempts=0,
        due_at=time(row["due_at"]),
        deadline_at=not_null(time(row["deadline_at"])),
        grace_until=None,
        lease_owner=owner,
        lease_token=1,
        created_at=created_at,
        submitted_at=None,
        ended_at=None,
        delivered_at=None,
        read_at=created_at,
        hidden=order.api_key_id is not None,
    )


def read_callback(row: Row, time: Time) -> Callback:
    return Callback(
        id=row["id"],
        provider=row["provider"],
        job_id=row["job_id"],
        task_id=row["task_id"],
        body=bytes(row["body"]),
        state=InboxState(row["state"]),
        note=row["note"],
        received_at=not_null(time(row["received_at"])),
        correlation_id=row["correlation_id"] or "",
        attempt=row["attempt"],
    )


def read_attempt(row: Row, time: Time) -> Attempt:
    """Return an attempt; the task of the current one is in the row of its job.

    Its end may be there alone: on PostgreSQL, an end that waited for the commit of the attempt does not see its row.
    """
    outcome, ended_at = row["outcome"], row["ended_at"]
    if row["current"] and outcome is None and row["job_ended_at"] is not None:
        outcome, ended_at = row["job_state"], row["job_ended_at"]
    return Attempt(
        number=row["number"],
        provider=row["provider"],
        offer=row["offer"],
        sent_input=row["sent_input"],
        task_id=row["task_id"] or (row["current_task"] if row["current"] else None),
        handle=row["handle"] or (row["current_handle"] if row["current"] else ""),
        outcome=AttemptOutcome(outcome) if outcome else None,
        error_code=row["error_code"],
        cost=row["cost"],
        late_report=row["late_report"],
        started_at=not_null(time(row["started_at"])),
        ended_at=time(ended_at),
    )


def read_arrival(row: Row, time: Time, arrival: NewCallback, task_id: str | None) -> Callback:
    """Return a callback that was stored in the commit that applied it, from the row of its job."""
    return Callback(
        id=row["callback_id"],
        provider=arrival.provider,
        job_id=row["id"],
        task_id=task_id,
        body=arrival.body.encode(),
        state=InboxState.NEW if row["verdict"] == Verdict.BUSY else InboxState.DONE,
        note=row["verdict"],
        received_at=not_null(time(row["read_at"])),
        correlation_id=row["correlation_id"],
        attempt=row["attempt"],
    )


def read_ledger_entry(row: Row, time: Time) -> LedgerEntry:
    return LedgerEntry(
        key=row["key"],
        account_id=row["account_id"],
        job_id=row["job_id"],
        kind=EntryKind(row["kind"]),
        debit=LedgerAccount(row["debit"]),
        credit=LedgerAccount(row["credit"]),
        amount=row["amount"],
        reason=row["reason"],
        at=not_null(time(row["at"])),
    )


def read_update(row: Row, time: Time) -> Update:
    return Update(
        id=row["id"],
        bot=row["bot"],
        update_id=row["update_id"],
        kind=row["kind"],
        body=row["body"],
        state=UpdateState(row["state"]),
        note=row["note"],
        received_at=not_null(time(row["received_at"])),
        attempts=row["attempts"],
    )


def read_new_callback(row: Row, time: Time, provider: str, body: bytes) -> Callback:
    """Return a callback that was just stored, from the columns that the database has set."""
    return Callback(
        id=row["id"],
        provider=provider,
        job_id=row["job_id"],
        task_id=None,
        body=body,
        state=InboxState.NEW,
        note="",
        received_at=not_null(time(row["received_at"])),
        correlation_id=row["correlation_id"] or "",
        attempt=row["attempt"],
    )


def read_update_queue(row: Row, time: Time) -> UpdateQueue:
    update = None if row["id"] is None else read_update(row, time)
    return UpdateQueue(id=row["queue_id"], token=row["lease_token"], update=update, crash_count=row["crash_count"])


def read_account(row: Row) -> Account:
    return Account(
        id=row["id"],
        channel=row["channel"],
        bot=row["bot"],
        external_id=row["external_id"],
        address=row["address"],
    )


def read_kv_entry(row: Row, time: Time) -> KvEntry:
    age = not_null(time(row["read_at"])) - not_null(time(row["at"]))
    return KvEntry(key=row["key"], value=row["value"], age=age.total_seconds(), bot=row["bot"])


def read_profile(row: Row, time: Time) -> Profile:
    return Profile(
        account_id=row["account_id"],
        external_id=row["external_id"],
        language=row["language"],
        name=row["name"],
        username=row["username"],
        referred_by=row["referred_by"],
        last_model=row["last_model"],
        banned_at=time(row["banned_at"]),
        ban_reason=row["ban_reason"],
        blocked_at=time(row["blocked_at"]),
        created_at=not_null(time(row["created_at"])),
    )


def read_account_summary(row: Row, time: Time) -> AccountSummary:
    return AccountSummary(
        account_id=row["id"],
        channel=row["channel"],
        external_id=row["external_id"],
        name=row["name"],
        username=row["username"],
        available=row["available"],
        held=row["held"],
        debt=row["debt"],
        since=not_null(time(row["created_at"])),
    )


def read_wallet(row: Row) -> Wallet:
    return Wallet(account_id=row["account_id"], available=row["available"], held=row["held"], debt=row["debt"])


def read_wallet_and_favourites(row: Row) -> tuple[Wallet, tuple[str, ...]]:
    return read_wallet(row), _texts(row["favourites"])


def read_activity(row: Row) -> Activity:
    return Activity(**{name: row[name] for name in Activity.__slots__})


def read_draft(row: Row) -> SavedDraft:
    return SavedDraft(version=row["version"], message=row["message"], body=row["body"], uploads=_texts(row["uploads"]))


def read_upload(row: Row) -> Upload:
    return Upload(
        key=row["address"],
        account_id=row["account_id"],
        file=row["file"],
        kind=row["kind"],
        seconds=row["seconds"],
        age_seconds=row["age_seconds"],
    )


def read_upload_copy(row: Row) -> UploadCopy:
    return UploadCopy(key=row["address"], provider=row["provider"], url=row["url"], left_seconds=row["left_seconds"])


def read_payment(row: Row, time: Time) -> Payment:
    return Payment(
        charge=row["charge"],
        account_id=row["account_id"],
        paid_amount=row["stars"],  # the name of the column is older; a deploy may not rename it
        amount=row["amount"],
        state=PaymentState(row["state"]),
        refunds=row["refunds"],
        at=not_null(time(row["at"])),
        owed=row["owed"],
        external_refund_at=time(row["external_refund_at"]),
    )


def read_audit_line(row: Row, time: Time) -> AuditLine:
    return AuditLine(
        id=row["id"],
        bot=row["bot"],
        at=not_null(time(row["at"])),
        actor=row["actor"],
        action=row["action"],
        subject=row["subject"],
        detail=row["detail"],
    )


def read_anomaly(row: Row, time: Time) -> Anomaly:
    return Anomaly(id=row["id"], job_id=row["job_id"], kind=AnomalyKind(row["kind"]), at=not_null(time(row["at"])))


def _texts(column: Any) -> tuple[str, ...]:
    """Return a list of texts: PostgreSQL has arrays, SQLite has them as JSON."""
    return tuple(json.loads(column) if isinstance(column, str) else column)


def not_null(time: datetime | None) -> datetime:
    assert time is not None, "a column that is NOT NULL was NULL"
    return time


def message_params(message: QueuedMessage | None) -> dict[str, str | None]:
    """Return the parameters of a statement that queues a message, if there is one."""
    if message is None:
        return {"message_key": None, "message": None}
    return {"message_key": message.key, "message": message.dump()}
