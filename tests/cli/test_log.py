"""Log lines and metrics."""

import json
import logging

import pytest
from prometheus_client import CollectorRegistry

from genlock.domain.events import Event
from genlock.log import REFUSALS_PER_MINUTE, LogObserver, RefusalLines
from genlock.metrics import COUNTS, MetricsObserver, Observers


def test_a_human_line_has_correlation_id_event_and_facts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        LogObserver(logging.getLogger("t"), as_json=False).event(
            Event.DELIVER_LOCK_WIN, "c0ffee", job=7, task_id="t1", note=None
        )
    assert caplog.messages == ["[c0ffee] [DELIVER_LOCK_WIN] job=7 task_id=t1"]


def test_a_value_cannot_forge_a_second_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        LogObserver(logging.getLogger("t"), as_json=False).event(
            Event.CALLBACK_UNREADABLE, error="bad\n[c0ffee] [MARK_DELIVERED] job=7"
        )
    assert "\n" not in caplog.messages[0]


def test_a_json_line_is_one_object(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        LogObserver(logging.getLogger("t"), as_json=True).event(Event.JOB_CREATED, "c1", job=1, state=Event.JOB_ENDED)
    assert json.loads(caplog.messages[0]) == {
        "event": "JOB_CREATED",
        "correlation_id": "c1",
        "job": 1,
        "state": "JOB_ENDED",
    }


def test_contradictions_are_errors(caplog: pytest.LogCaptureFixture) -> None:
    LogObserver(logging.getLogger("t"), as_json=False).event(Event.RESULT_CONTRADICTION, "c", job=1)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


def test_every_count_reaches_the_registry() -> None:
    registry = CollectorRegistry()
    observer = Observers(MetricsObserver(registry))
    for name, (_, labels) in COUNTS.items():
        observer.count(name, 2, **dict.fromkeys(labels, "x"))
        assert registry.get_sample_value(f"genlock_{name}_total", dict.fromkeys(labels, "x")) == 2


def test_events_are_counted_by_name() -> None:
    registry = CollectorRegistry()
    MetricsObserver(registry).event(Event.INSTANCE_DEAD, peer="x")
    assert registry.get_sample_value("genlock_events_total", {"event": "INSTANCE_DEAD"}) == 1


def test_an_unknown_count_raises() -> None:
    with pytest.raises(KeyError):
        MetricsObserver(CollectorRegistry()).count("nonsense")


def test_a_flood_of_refused_requests_writes_sixty_lines_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each of them would fill the disk with a hundred gigabytes a day."""
    now = [1000.0]
    monkeypatch.setattr(RefusalLines.__init__, "__defaults__", (lambda: now[0],))
    observer = LogObserver(logging.getLogger("t"), as_json=False)
    with caplog.at_level(logging.INFO):
        for _ in range(5000):
            observer.event(Event.CALLBACK_REFUSED, provider="kie", status=401)
        observer.event(Event.CALLBACK_REFUSED, provider="kie", status=413)
        now[0] += 60
        for _ in range(2):
            observer.event(Event.CALLBACK_REFUSED, provider="kie", status=401)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == REFUSALS_PER_MINUTE + 3
    assert [line.partition("status=")[2] for line in lines[-4:]] == ["401", "413", "401 left_out=4940", "401"]
