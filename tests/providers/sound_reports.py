"""What every report must be, whatever the provider has sent."""

import re
from urllib.parse import urlsplit

from genlock.domain.result import Outcome, PartKind, Report, settle_report


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
