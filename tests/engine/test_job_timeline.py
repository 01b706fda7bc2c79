"""The time line of a job: one list of everything that is known, each thing once, in the order of time."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from genlock.domain.audit import AuditLine
from genlock.domain.events import Event
from genlock.domain.inbox import Callback, InboxState
from genlock.domain.job import Delivery, State
from genlock.domain.job_event import JobEvent
from genlock.domain.money import ROUTE, EntryKind, HoldState, LedgerEntry
from genlock.engine.job_timeline import Tone, merge
from genlock.log import Mask
from tests.rows import JOB, NOW

DELIVERED = replace(
    JOB,
    state=State.SUCCEEDED,
    delivery=Delivery.DELIVERED,
    hold_state=HoldState.CAPTURED,
    price=100,
    submitted_at=NOW + timedelta(seconds=1),
    ended_at=NOW + timedelta(seconds=10),
    delivered_at=NOW + timedelta(seconds=12),
)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def event(seconds: float, name: Event, instance: str = "one", **fields: Any) -> JobEvent:
    return JobEvent(at=at(seconds), event=name.value, instance=instance, fields=fields)


def entry(seconds: float, kind: EntryKind) -> LedgerEntry:
    debit, credit = ROUTE[kind]
    return LedgerEntry(
        key=f"{kind}:1", account_id=1, job_id=1, kind=kind, debit=debit, credit=credit, amount=100, reason="",
        at=at(seconds),
    )  # fmt: skip


def callback(seconds: float, number: int = 5, body: bytes = b'{"code":200}') -> Callback:
    return Callback(
        id=number, provider="kie", job_id=1, task_id="t", body=body, state=InboxState.DONE, note="won",
        received_at=at(seconds),
    )  # fmt: skip


def line(seconds: float, action: str, detail: str = "") -> AuditLine:
    return AuditLine(id=1, bot="bot", at=at(seconds), actor="42", action=action, subject="#1", detail=detail)


LIFE = [
    event(-0.1, Event.UPDATE_RECEIVED),
    event(0.0, Event.GEN_CREATE, model="z-image"),
    event(0.01, Event.JOB_CREATED, price=100),
    event(1.01, Event.SUBMIT_START, provider="kie"),
    event(1.5, Event.SUBMIT_OK, task_id="t"),
    event(4, Event.POLL_TICK, task_id="t"),
    event(4.1, Event.POLL_STATE, word="generating", outcome="running"),
    event(6.1, Event.POLL_STATE, word="generating", outcome="running"),
    event(8.1, Event.POLL_STATE, word="success", outcome="success"),
    event(10, Event.CALLBACK_RECEIVED, callback=5),
    event(10, Event.CALLBACK_PARSED, callback=5, task_id="t", word="success"),
    event(10.01, Event.JOB_ENDED, state="succeeded"),
    event(10.1, Event.DELIVER_LOCK_WIN, "two", token=3),
    event(10.1, Event.DELIVER_START, "two", parts=1),
    event(11.9, Event.DELIVER_OK, "two", levels="address"),
    event(12.05, Event.MARK_DELIVERED, "two", hold_state="captured"),
    event(12.3, Event.NOTICE_SENT, "two"),
]


def test_a_whole_life_is_told_once_and_in_order() -> None:
    ledger = [entry(0, EntryKind.HOLD), entry(12, EntryKind.CAPTURE)]

    found = merge(DELIVERED, events=LIFE, ledger=ledger, callbacks=[callback(10)])

    assert [(step.kind, step.instance, step.times) for step in found] == [
        ("update_received", "one", 1),
        ("accepted", "one", 1),
        ("hold", "", 1),
        ("submitted", "one", 1),
        ("submit_ok", "one", 1),
        ("poll_state", "one", 2),
        ("poll_state", "one", 1),
        ("callback", "one", 1),
        ("ended_succeeded", "one", 1),
        ("deliver_lock_win", "two", 1),
        ("deliver_ok", "two", 1),
        ("delivered", "two", 1),
        ("capture", "", 1),
        ("notice_sent", "two", 1),
    ]
    assert [step.amount for step in found if step.kind in ("hold", "capture")] == [100, 100]
    assert [step.at for step in found if step.kind == "poll_state"] == [at(6.1), at(8.1)]


def test_a_delivery_begins_before_it_ends_even_if_its_events_are_written_later() -> None:
    events = [event(12.2, Event.DELIVER_LOCK_WIN, token=3), event(12.1, Event.DELIVER_OK, levels="address")]

    found = merge(DELIVERED, events=events, ledger=[entry(12, EntryKind.CAPTURE)])

    assert [step.kind for step in found[-4:]] == ["deliver_lock_win", "deliver_ok", "delivered", "capture"]


def test_without_events_the_row_and_the_ledger_still_tell_the_life() -> None:
    found = merge(DELIVERED, ledger=[entry(0, EntryKind.HOLD), entry(12, EntryKind.CAPTURE)])

    assert [step.kind for step in found] == ["accepted", "hold", "submitted", "ended_succeeded", "delivered", "capture"]
    assert [step.tone for step in found if step.kind == "delivered"] == [Tone.GOOD]


def test_an_earlier_submit_is_not_taken_for_the_one_in_the_row() -> None:
    job = replace(JOB, state=State.RUNNING, task_id="t", submitted_at=at(100))

    found = merge(
        job, events=[event(1, Event.SUBMIT_START), event(2, Event.SUBMIT_BUSY), event(100.1, Event.SUBMIT_START)]
    )

    assert [(step.kind, step.at) for step in found] == [
        ("accepted", at(0)),
        ("submit_start", at(1)),
        ("submit_busy", at(2)),
        ("submitted", at(100)),
    ]


def test_a_takeover_shows_both_instances_and_who_delivered() -> None:
    events = [
        event(10.1, Event.DELIVER_LOCK_WIN, "dead", token=3),
        event(14.0, Event.DELIVER_LOCK_WIN, "two", token=4),
        event(14.5, Event.LEASE_LOST, "dead", token=3),
    ]

    found = merge(DELIVERED, events=events)

    assert [(step.instance, step.fields["token"]) for step in found if step.kind == "deliver_lock_win"] == [
        ("dead", 3),
        ("two", 4),
    ]
    assert found[-1].tone is Tone.WARNING


def test_the_end_says_how_it_ended() -> None:
    tones = {
        State.SUCCEEDED: Tone.GOOD,
        State.FAILED: Tone.BAD,
        State.EXPIRED: Tone.BAD,
        State.CANCELLED: Tone.WARNING,
    }
    for state, tone in tones.items():
        job = replace(JOB, state=state, delivery=Delivery.PENDING, ended_at=at(10))
        assert [(step.kind, step.tone) for step in merge(job)][-1] == (f"ended_{state}", tone)
    late = replace(JOB, state=State.EXPIRED, late=True, delivery=Delivery.PENDING, ended_at=at(10))
    found = merge(late, events=[event(3, Event.JOB_ENDED, state="expired"), event(10, Event.RESULT_LATE)])
    assert [step.kind for step in found] == ["accepted", "job_ended", "ended_late"]


def test_a_callback_has_its_body_masked_and_its_event_is_not_repeated() -> None:
    body = b'{"callBackUrl":"https://x/very secret","bad":"\xff"}'

    found = merge(
        DELIVERED,
        events=[event(10, Event.CALLBACK_RECEIVED, callback=5), event(11, Event.CALLBACK_RECEIVED, callback=6)],
        callbacks=[callback(10, body=body)],
        mask=Mask(["very secret"]),
    )

    [mine] = [step for step in found if step.kind == "callback"]
    assert mine.body == '{"callBackUrl":"https://x/***","bad":"\ufffd"}'
    assert mine.fields == {"callback": 5, "state": "done", "verdict": "won"}
    assert [step.fields["callback"] for step in found if step.kind == "callback_received"] == [6]  # its row was pruned


def test_an_action_is_told_by_its_audit_line_only() -> None:
    events = [
        event(20, Event.OPERATOR_ACTION, action="resend", by="42"),
        event(90, Event.OPERATOR_ACTION, action="resend", by="7"),
    ]

    found = merge(DELIVERED, events=events, audit=[line(20.5, "job.resend", "again"), line(40, "refund")])

    assert [(step.kind, step.actor, step.fields.get("action")) for step in found[-3:]] == [
        ("audit", "42", "job.resend"),
        ("audit", "42", "refund"),
        ("operator_action", "7", "resend"),
    ]


def test_an_event_of_another_version_is_shown_with_its_name() -> None:
    found = merge(JOB, events=[JobEvent(at=at(1), event="NEW_THING", instance="one", fields={"odd": 1})])

    assert (found[-1].kind, found[-1].fields, found[-1].tone) == ("new_thing", {"odd": 1}, Tone.PLAIN)


def test_events_of_another_job_from_the_same_message_are_left_out() -> None:
    events = [event(1, Event.SUBMIT_OK, job=1, task_id="mine"), event(1, Event.SUBMIT_OK, job=2, task_id="other")]

    found = merge(JOB, events=events)

    assert [step.fields for step in found if step.kind == "submit_ok"] == [{"task_id": "mine"}]


def test_the_json_of_an_audit_line_is_written_in_words() -> None:
    detail = '{"before": "succeeded, delivered", "after": {"refunded": "0.8 credits", "by": ["a", 7]}}'
    [found] = [step for step in merge(DELIVERED, audit=[line(20.5, "refund", detail)]) if step.kind == "audit"]
    assert found.fields == {
        "action": "refund", "before": "succeeded, delivered", "after": "refunded 0.8 credits, by a, 7",
    }  # fmt: skip
    [cut] = [step for step in merge(DELIVERED, audit=[line(20.5, "refund", detail[:30])]) if step.kind == "audit"]
    assert cut.fields == {"action": "refund", "detail": detail[:30]}
