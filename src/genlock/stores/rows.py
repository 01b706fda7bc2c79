"""Rows become values here, and nowhere else."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from genlock.domain.delivery import Part, load_parts
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Actor, AttentionCode, Delivery, Job, NewJob, Notice, State, Verdict
from genlock.domain.money import EntryKind, HoldState, LedgerAccount, LedgerEntry
from genlock.domain.update import Update, UpdateState
from genlock.ports import NewCallback

Row = Mapping[str, Any]
#: how a dialect's time becomes an aware datetime
Time = Callable[[Any], datetime | None]

# Twice as fast as calling the enums, and a job is read often.
HOLD_STATE = {word.value: word for word in HoldState}
_STATE = {word.value: word for word in State}
_ACTOR = {"": None, **{word.value: word for word in Actor}}
_ATTENTION = {None: None, **{word.value: word for word in AttentionCode}}
_DELIVERY = {word.value: word for word in Delivery}
VERDICT = {word.value: word for word in Verdict}
NOTICE = {word.value: word for word in Notice}


def read_job(row: Row, time: Time, parts: tuple[Part, ...] | None = None) -> Job:
    """A job from its row. Whoever has just written the parts brings them, which saves reading them back."""
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
        deadline_at=_certain(time(row["deadline_at"])),
        grace_until=time(row["grace_until"]),
        lease_owner=row["lease_owner"],
        lease_token=row["lease_token"],
        created_at=_certain(time(row["created_at"])),
        submitted_at=time(row["submitted_at"]),
        ended_at=time(row["ended_at"]),
        delivered_at=time(row["delivered_at"]),
        crash_count=row["crash_count"],
        read_at=_certain(time(row["read_at"])),
    )


def read_new_job(row: Row, time: Time, order: NewJob, owner: str | None) -> Job:
    """A job from its order and what the database added to it: the rest of the row needs no reading back."""
    created_at = _certain(time(row["created_at"]))
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
        deadline_at=_certain(time(row["deadline_at"])),
        grace_until=None,
        lease_owner=owner,
        lease_token=1,
        created_at=created_at,
        submitted_at=None,
        ended_at=None,
        delivered_at=None,
        read_at=created_at,
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
        received_at=_certain(time(row["received_at"])),
        correlation_id=row["correlation_id"] or "",
    )


def read_arrival(row: Row, time: Time, arrival: NewCallback, task_id: str | None) -> Callback:
    """A callback that was kept with what it said, from the row of its job."""
    return Callback(
        id=row["callback_id"],
        provider=arrival.provider,
        job_id=row["id"],
        task_id=task_id,
        body=arrival.body.encode(),
        state=InboxState.NEW if row["verdict"] == Verdict.BUSY else InboxState.DONE,
        note=row["verdict"],
        received_at=_certain(time(row["read_at"])),
        correlation_id=row["correlation_id"],
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
        at=_certain(time(row["at"])),
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
        received_at=_certain(time(row["received_at"])),
        attempts=row["attempts"],
    )


def _certain(time: datetime | None) -> datetime:
    assert time is not None, "a column that is NOT NULL was NULL"
    return time
