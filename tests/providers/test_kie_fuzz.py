"""Whatever is sent, the parser gives a sound report or says that it cannot; nothing else ever happens.

The cases are shared out: most are bent copies of real answers, which are cheap; some are made by Hypothesis, which is
cleverer; the doors in tests/web take the rest. `pytest --fuzz 1000000` makes more.
"""

import json
import re
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings

from genlock.domain.result import Outcome, PartKind, Report, settle_report
from genlock.providers.kie.parser import read_callback
from tests.providers.mutated_answers import mutated_answers, real_answers
from tests.providers.strategies import BODIES

SLICES = 4


def assert_sound(report: Report) -> None:
    assert report.task_id is None or re.fullmatch("[A-Za-z0-9_.:-]{1,128}", report.task_id)
    assert report.task_id or report.word
    assert report.cost is None or 0 <= report.cost < 2**62
    assert len(report.word) <= 80
    assert len(report.error_text) <= 500
    for text in (report.word, report.error_code, report.error_text, *(piece.value for piece in report.pieces)):
        assert "\0" not in text
        text.encode()
    for piece in report.pieces:
        assert piece.value.strip()
        if piece.kind is PartKind.FILE:
            parts = urlsplit(piece.value)
            assert parts.scheme in ("http", "https")
            assert parts.hostname
    if report.outcome is not Outcome.SUCCESS:
        assert report.pieces == ()
    if report.outcome is Outcome.FAILURE:
        assert report.error_code
    settle_report(report)


def check(body: bytes) -> bool:
    """Whether it was understood."""
    try:
        report = read_callback(body)
    except ValueError:
        return False
    assert_sound(report)
    return True


@pytest.mark.parametrize("part", range(SLICES))
def test_bent_answers(fuzz_cases: int, part: int) -> None:
    count = fuzz_cases * 17 // 20 // SLICES
    understood = sum(check(body) for body in mutated_answers(part, count))
    assert understood > count // 2, "most of them still say something"


def test_made_up_answers(fuzz_cases: int) -> None:
    @settings(max_examples=fuzz_cases // 20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(BODIES)
    def every(body: bytes) -> None:
        check(body)

    every()


def test_the_originals_are_all_understood() -> None:
    for said in real_answers():
        report = read_callback(json.dumps(said).encode())
        assert_sound(report)
        assert report.task_id == "ab" * 16
