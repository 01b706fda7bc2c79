"""The time line of a job: its row, ledger entries, callbacks, events and audit lines, merged into one list."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from genlock.domain.audit import AuditLine
from genlock.domain.events import Event
from genlock.domain.inbox import Callback
from genlock.domain.job import Job, State
from genlock.domain.job_event import JobEvent
from genlock.domain.money import EntryKind, LedgerEntry
from genlock.ports import JobEventStore

EVENTS_MAX = 1000
AUDIT_MAX = 50
CALLBACKS_MAX = 50
BODY_BYTES_MAX = 4000
#: an event belongs to a column of the row, or to an audit line, if it happened within this time of it
_SAME_MOMENT = timedelta(seconds=5)


class Tone(StrEnum):
    """How an entry is coloured."""

    PLAIN = ""
    GOOD = "good"
    WARNING = "warn"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True, slots=True)
class TimelineEntry:
    """One thing that happened. `kind` is the key of its text."""

    at: datetime
    kind: str
    tone: Tone = Tone.PLAIN
    #: the instance on which it happened, where that is known
    instance: str = ""
    #: thousandths of a credit that moved
    amount: int | None = None
    #: who did it, where a human did
    actor: str = ""
    #: the technical details
    fields: Mapping[str, Any] = field(default_factory=dict)
    #: the beginning of a callback's body
    body: str = ""
    #: how often it happened in a row
    times: int = 1


_BAD = frozenset(
    {
        Event.SUBMIT_REFUSED, Event.CALLBACK_UNREADABLE, Event.RESULT_CONTRADICTION, Event.RESULT_WRONG_TASK,
        Event.LOSS_RECORDED, Event.COST_ABOVE_PRICE, Event.RESULT_INVALID, Event.STAGE_ERROR, Event.ATTENTION,
        Event.UPDATE_DEAD, Event.JOB_REFUSED,
    }
)  # fmt: skip
_WARNING = frozenset(
    {
        Event.FAILED_OVER, Event.ATTEMPT_REPORT_LATE,
        Event.SUBMIT_BUSY, Event.SUBMIT_UNKNOWN, Event.UNKNOWN_STATE, Event.RESULT_LATE, Event.DELIVER_FAIL,
        Event.DELIVERY_RETRY, Event.LEVEL_LOWERED, Event.NOTICE_FAIL, Event.LEASE_LOST, Event.POISON_SUSPECTED,
        Event.CHANNEL_UNREACHABLE, Event.CHANNEL_REFUSAL_UNKNOWN, Event.UPDATE_FAIL,
    }
)  # fmt: skip
_GOOD = frozenset({Event.SUBMIT_OK, Event.DELIVER_OK, Event.NOTICE_SENT})
#: what other entries say already: the row, the callback, the answer to the query, the delivery
_LEFT_OUT = frozenset(
    {Event.GEN_CREATE, Event.CALLBACK_PARSED, Event.POLL_TICK, Event.DELIVER_START, Event.UPDATE_DONE}
)
_MONEY_TONES = {EntryKind.CAPTURE: Tone.GOOD, EntryKind.RELEASE: Tone.WARNING, EntryKind.REFUND: Tone.WARNING}


async def read_timeline(store: JobEventStore, job: Job, mask: Callable[[str], str]) -> list[TimelineEntry]:
    """Read everything that is kept about a job, in a bounded number of statements. Oldest first."""
    events = await store.job_events(job.correlation_id, EVENTS_MAX) if job.correlation_id else []
    callback_ids = _callback_ids(events)[-CALLBACKS_MAX:]
    callbacks = await store.job_callbacks(job.id, callback_ids, BODY_BYTES_MAX) if callback_ids else []
    entries = await store.job_ledger_entries(job)
    lines = await store.audit_about(audit_subjects(job.id), AUDIT_MAX)
    return merge(job, events=events, ledger=entries, callbacks=callbacks, audit=lines, mask=mask)


def audit_subjects(job_id: int) -> list[str]:
    """Return how audit lines name a job: the chat and the dashboard write its number as users see it."""
    return [f"#{job_id}", f"job:{job_id}"]


def _callback_ids(events: Iterable[JobEvent]) -> list[int]:
    found = (event.fields.get("callback") for event in events if event.event == Event.CALLBACK_RECEIVED)
    return [number for number in found if isinstance(number, int)]


def merge(
    job: Job,
    *,
    events: Sequence[JobEvent] = (),
    ledger: Sequence[LedgerEntry] = (),
    callbacks: Sequence[Callback] = (),
    audit: Sequence[AuditLine] = (),
    mask: Callable[[str], str] = str,
) -> list[TimelineEntry]:
    """Merge everything that is known about a job into one list, oldest first, each thing once."""
    events = [event for event in events if _is_about(event, job)]
    rest = [event for event in events if event.event not in _LEFT_OUT]
    merged: list[TimelineEntry] = []
    for entry, event_name in _milestones(job):
        same = _take_nearest(rest, event_name, entry.at)
        merged.append(entry if same is None else _with_event(entry, same))
    merged += [_money(entry) for entry in ledger]
    for callback in callbacks:
        received = _take_callback(rest, callback.id)
        words = _words(events, callback.id)
        merged.append(_callback(callback, received.instance if received else "", words, mask))
    for line in audit:
        _take_action(rest, line)
        merged.append(TimelineEntry(at=line.at, kind="audit", actor=line.actor, fields=_audit_fields(line)))
    merged += [_before_delivery(_event(event), job) for event in rest]
    return _with_runs(sorted(merged, key=_order))


def _before_delivery(entry: TimelineEntry, job: Job) -> TimelineEntry:
    """Show the delivery's events before the commit that followed them, although they may be written later."""
    if entry.kind not in _DELIVERY or job.delivered_at is None:
        return entry
    is_same = job.delivered_at < entry.at <= job.delivered_at + _SAME_MOMENT
    return replace(entry, at=job.delivered_at) if is_same else entry


def _is_about(event: JobEvent, job: Job) -> bool:
    """Whether an event is about this job: several jobs may have come from one message and share its correlation id."""
    return event.fields.get("job") in (None, job.id)


def _order(entry: TimelineEntry) -> tuple[datetime, int]:
    """Within one moment, the order in which the parts of a commit are listed: the row first, then the money."""
    return entry.at, _RANK.get(entry.kind, 5)


_DELIVERY = frozenset({Event.DELIVER_LOCK_WIN.lower(), Event.DELIVER_OK.lower()})
_RANK = {
    "accepted": 0,
    "hold": 1,
    "callback": 2,
    "ended": 3,
    "deliver_lock_win": 4,
    "delivered": 6,
    "capture": 7,
    "release": 7,
}


# the row


def _with_event(entry: TimelineEntry, event: JobEvent) -> TimelineEntry:
    return replace(entry, instance=event.instance, fields=_event(event).fields)


def _milestones(job: Job) -> Iterator[tuple[TimelineEntry, Event]]:
    """Yield the entries that the row itself proves, each with the event of the same commit."""
    yield TimelineEntry(at=job.created_at, kind="accepted"), Event.JOB_CREATED
    if job.submitted_at:
        yield TimelineEntry(at=job.submitted_at, kind="submitted"), Event.SUBMIT_START
    if job.ended_at and job.late:  # the time of the late result
        yield TimelineEntry(at=job.ended_at, kind="ended_late", tone=Tone.WARNING), Event.RESULT_LATE
    elif job.ended_at:
        yield TimelineEntry(at=job.ended_at, kind=f"ended_{job.state}", tone=_end_tone(job.state)), Event.JOB_ENDED
    if job.delivered_at:
        yield TimelineEntry(at=job.delivered_at, kind="delivered", tone=Tone.GOOD), Event.MARK_DELIVERED


def _end_tone(state: State) -> Tone:
    return {State.SUCCEEDED: Tone.GOOD, State.CANCELLED: Tone.WARNING}.get(state, Tone.BAD)


# ledger, callbacks, audit


def _money(entry: LedgerEntry) -> TimelineEntry:
    fields = {"key": entry.key, **({"reason": entry.reason} if entry.reason else {})}
    tone = _MONEY_TONES.get(entry.kind, Tone.PLAIN)
    return TimelineEntry(at=entry.at, kind=entry.kind.value, tone=tone, amount=entry.amount, fields=fields)


def _callback(callback: Callback, instance: str, words: Mapping[str, Any], mask: Callable[[str], str]) -> TimelineEntry:
    fields = {"callback": callback.id, "state": callback.state.value, **words}
    if callback.note:
        fields["verdict"] = callback.note
    body = mask(callback.body.decode("utf-8", "replace"))
    return TimelineEntry(at=callback.received_at, kind="callback", instance=instance, fields=fields, body=body)


def _words(events: Iterable[JobEvent], callback_id: int) -> dict[str, Any]:
    """Return what the parser found in a callback."""
    parsed = (event for event in events if event.event == Event.CALLBACK_PARSED)
    found = next((event.fields for event in parsed if event.fields.get("callback") == callback_id), {})
    return {name: found[name] for name in ("task_id", "word") if found.get(name)}


def _audit_fields(line: AuditLine) -> dict[str, Any]:
    """Return the action and what it changed. The dashboard writes the detail as JSON, the chat as a text."""
    try:
        found = json.loads(line.detail) if line.detail.startswith("{") else None
    except ValueError:  # it was too long, and cut
        found = None
    if not isinstance(found, dict):
        return {"action": line.action, **({"detail": line.detail} if line.detail else {})}
    return {"action": line.action, **{str(name): _in_words(value) for name, value in found.items()}}


def _in_words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(item)}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(_in_words(item) for item in value)
    return str(value)


# events


def _event(event: JobEvent) -> TimelineEntry:
    fields = {name: value for name, value in event.fields.items() if name != "job"}
    actor = str(fields.pop("by", "")) if event.event == Event.OPERATOR_ACTION else ""
    return TimelineEntry(
        at=event.at,
        kind=event.event.lower(),
        tone=_tone(event.event),
        instance=event.instance,
        actor=actor,
        fields=fields,
    )


def _tone(event: str) -> Tone:
    if event in _BAD:
        return Tone.BAD
    if event in _WARNING:
        return Tone.WARNING
    return Tone.GOOD if event in _GOOD else Tone.PLAIN


def _take_nearest(rest: list[JobEvent], name: str, at: datetime) -> JobEvent | None:
    """Take the event of this name that is nearest in time out of the list, if it is of the same moment."""
    near = [event for event in rest if event.event == name and abs(event.at - at) <= _SAME_MOMENT]
    return _take(rest, min(near, key=lambda event: abs(event.at - at), default=None))


def _take_callback(rest: list[JobEvent], callback_id: int) -> JobEvent | None:
    same = (event for event in rest if event.event == Event.CALLBACK_RECEIVED)
    return _take(rest, next((event for event in same if event.fields.get("callback") == callback_id), None))


def _take_action(rest: list[JobEvent], line: AuditLine) -> JobEvent | None:
    """Take the event that reports the same action as an audit line out of the list."""
    actions = [event for event in rest if event.event == Event.OPERATOR_ACTION]
    same = [
        event
        for event in actions
        if event.fields.get("action") == line.action.rpartition(".")[2] and abs(event.at - line.at) <= _SAME_MOMENT
    ]
    return _take(rest, same[0] if same else None)


def _take(rest: list[JobEvent], event: JobEvent | None) -> JobEvent | None:
    if event is not None:
        rest.remove(event)
    return event


def _with_runs(entries: Iterable[TimelineEntry]) -> list[TimelineEntry]:
    """Show status queries with the same answer in a row as one entry, at the time of the last."""
    found: list[TimelineEntry] = []
    for entry in entries:
        last = found[-1] if found else None
        if last and entry.kind == last.kind == "poll_state" and entry.fields == last.fields:
            found[-1] = replace(entry, times=last.times + 1)
        else:
            found.append(entry)
    return found
