"""The recorder of job events: bounded, masked, written in one statement, and never in the way of a job."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from genlock.domain.errors import StoreError, StoreUnavailable
from genlock.domain.events import Event
from genlock.domain.job_event import EventRow
from genlock.engine import job_events
from genlock.engine.job_events import JobEventRecorder
from genlock.log import Mask


class Statements:
    """Where a recorder writes: keeps each statement's rows, or fails with the next error."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.statements: list[list[EventRow]] = []

    async def add_job_events(self, instance: str, rows: Sequence[EventRow]) -> None:
        if self.errors:
            raise self.errors.pop(0)
        assert instance == "one"
        self.statements.append(list(rows))

    def events(self) -> list[tuple[str, list[Any]]]:
        return [(row.correlation_id, json.loads(row.events)) for rows in self.statements for row in rows]


class Counts:
    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.events: list[Event] = []

    def event(self, event: Event, correlation_id: str = "", /, **fields: Any) -> None:
        self.events.append(event)

    def count(self, name: str, amount: float = 1, /, **labels: str) -> None:
        self.counted[name] += int(amount)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(counts: Counts, clock: Clock) -> JobEventRecorder:
    return JobEventRecorder("one", counts, Mask(["very secret"]), clock=clock)


async def test_the_events_of_a_second_are_one_statement_with_one_row_for_each_job(
    recorder: JobEventRecorder, clock: Clock
) -> None:
    store = Statements()
    recorder.event(Event.SUBMIT_START, "a", job=7, provider="kie")
    recorder.event(Event.SUBMIT_START, "b", job=8, provider=None)
    clock.now += 0.25
    recorder.event(Event.SUBMIT_OK, "a", job=7, task_id="t", seconds=0.2)
    clock.now += 0.5

    await recorder.write(store)
    await recorder.write(store)

    assert store.events() == [
        (
            "a",
            [
                [750, "SUBMIT_START", {"job": 7, "provider": "kie"}],
                [500, "SUBMIT_OK", {"job": 7, "task_id": "t", "seconds": 0.2}],
            ],
        ),
        ("b", [[750, "SUBMIT_START", {"job": 8}]]),
    ]
    assert len(store.statements) == 1
    assert [row.number for row in store.statements[0]] == [1, 2]


async def test_what_belongs_to_no_job_is_not_kept(recorder: JobEventRecorder) -> None:
    store = Statements()
    recorder.event(Event.READY, instance="one")
    recorder.event(Event.UPDATE_RECEIVED, "press", update=1)
    recorder.event(Event.UPDATE_DONE, "press", update=1)
    recorder.count("takeovers")

    await recorder.write(store)
    recorder.event(Event.UPDATE_RECEIVED, "order", update=2)
    recorder.event(Event.JOB_CREATED, "order", job=1)
    await recorder.write(store)

    assert [(name, [event for _, event, _ in events]) for name, events in store.events()] == [
        ("order", ["UPDATE_RECEIVED", "JOB_CREATED"])
    ]


async def test_secrets_are_masked_and_long_values_cut(recorder: JobEventRecorder) -> None:
    store = Statements()
    token = "123456789:" + "A" * 35
    recorder.event(
        Event.STAGE_ERROR, "a", error=f"very secret {token}", reason="x" * 100_000, parts=["y" * 1000], by=None
    )
    recorder.event(Event.STAGE_ERROR, "nu\0l" + "z" * 1000)

    await recorder.write(store)

    [(_, [[_, _, fields]]), (odd, _)] = store.events()
    assert fields["error"] == "*** ***"
    assert len(fields["reason"]) == len(fields["parts"]) == job_events.TEXT_LENGTH_MAX
    assert odd.isprintable()
    assert len(odd) == job_events.CORRELATION_ID_LENGTH_MAX


async def test_a_full_buffer_drops_and_counts_new_events(
    recorder: JobEventRecorder, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_events, "WAITING_MAX", 3)
    store = Statements()
    for number in range(5):
        recorder.event(Event.POLL_TICK, "a", task_id=str(number))

    await recorder.write(store)

    [(_, events)] = store.events()
    assert [fields["task_id"] for _, _, fields in events] == ["0", "1", "2"]
    assert counts.counted["job_events_dropped"] == 2


async def test_many_events_are_written_in_bounded_rows_and_statements(
    recorder: JobEventRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_events, "WRITTEN_AT_ONCE", 10)
    monkeypatch.setattr(job_events, "ROW_EVENTS_MAX", 4)
    store = Statements()
    for number in range(25):
        recorder.event(Event.POLL_TICK, "a", number=number)

    await recorder.write(store)

    assert [[len(json.loads(row.events)) for row in rows] for rows in store.statements] == [
        [4, 4, 2],
        [4, 4, 2],
        [4, 1],
    ]
    assert [fields["number"] for _, events in store.events() for _, _, fields in events] == list(range(25))


async def test_rows_are_written_again_under_the_same_numbers_when_the_store_was_away(
    recorder: JobEventRecorder,
) -> None:
    store = Statements(StoreUnavailable("away"), StoreUnavailable("away"))
    recorder.event(Event.JOB_CREATED, "a")
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await recorder.write(store)
        recorder.event(Event.JOB_ENDED, "b")

    await recorder.write(store)

    assert [[(row.correlation_id, row.number) for row in rows] for rows in store.statements] == [[("a", 1)], [("b", 2)]]


async def test_rows_that_the_store_refuses_do_not_stop_the_next_ones(recorder: JobEventRecorder) -> None:
    store = Statements(StoreError("refused"))
    recorder.event(Event.JOB_CREATED, "a")
    with pytest.raises(StoreError):
        await recorder.write(store)
    recorder.event(Event.JOB_CREATED, "b")

    await recorder.write(store)

    assert [name for name, _ in store.events()] == ["b"]


async def test_a_stop_writes_the_rest_and_survives_a_store_that_is_away(
    recorder: JobEventRecorder, counts: Counts
) -> None:
    recorder.event(Event.JOB_CREATED, "a")
    await recorder.write_last(away := Statements(StoreUnavailable("away")))
    await recorder.write_last(store := Statements())

    assert away.statements == []
    assert [name for name, _ in store.events()] == ["a"]
    assert counts.events == [Event.STAGE_ERROR]
