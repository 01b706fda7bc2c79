"""The Prometheus alarms are the same as those in the chat, and use metrics that exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from genlock.domain import alarm
from genlock.domain.alarm import ALARMS, NO_ACTIVE, Gauges
from genlock.metrics import GAUGES
from tests.alarm_limits import LIMITS

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load(Path("deploy/prometheus-alarms.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]


def test_both_have_the_same_alarms() -> None:
    assert [rule["labels"]["alarm"] for rule in RULES] == [known_alarm.name for known_alarm in (*ALARMS, NO_ACTIVE)]


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_rule_uses_metrics_that_exist(rule: dict[str, Any]) -> None:
    used = set(re.findall(r"genlock_(\w+)", rule["expr"]))
    assert used
    assert used <= {*GAUGES, "active"}


@pytest.mark.parametrize(("name", "bad", "good"), LIMITS)
def test_both_have_the_same_limits(name: str, bad: Gauges, good: Gauges) -> None:
    [rule] = [rule for rule in RULES if rule["labels"]["alarm"] == name]
    assert is_true(rule["expr"], bad)
    assert not is_true(rule["expr"], good)


def is_true(expression: str, figures: Gauges) -> bool:
    """Evaluate a rule, in the part of PromQL that these rules use; a figure that is not given is 0."""
    numbers = re.sub(r"max\(genlock_(\w+)\)", lambda found: f"{figures.get(found[1], 0)}", expression)
    return bool(eval(numbers, {"__builtins__": {}}))  # noqa: S307 - a file of our own


def test_both_wait_equally_long_for_a_leader() -> None:
    [rule] = [rule for rule in RULES if rule["labels"]["alarm"] == NO_ACTIVE.name]
    assert rule["for"] == f"{alarm.INACTIVE_SECONDS}s"
