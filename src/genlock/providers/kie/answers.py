"""Kie.ai's error answers: one table from codes and texts to what the client does.

The HTTP status is 200 even when a call failed; the code in the body decides. Without such a body the HTTP status is the
code. An order whose answer matches no row may have been accepted.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class AnswerKind(StrEnum):
    REFUSED = "refused"  #: final: no task runs and nothing is billed
    LATER = "later"  #: provably not accepted: the order may be sent again
    UNKNOWN = "unknown"  #: the order may have been accepted: never send it again


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Matches an answer by its code (None: any) and its text (None: any)."""

    codes: frozenset[int] | None = None
    text: re.Pattern[str] | None = None
    kind: AnswerKind = AnswerKind.REFUSED
    #: the error code that selects the message for the user
    error_code: str = ""
    #: seconds before the next attempt
    after: float = 0.0

    def matches(self, code: int | None, text: str) -> bool:
        return (self.codes is None or code in self.codes) and (self.text is None or bool(self.text.search(text)))


def _codes(*codes: int) -> frozenset[int]:
    return frozenset(codes)


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_MODERATION = _pattern(
    r"violat\w+ .{0,40}polic|content polic|flagged|sensitive|moderation|\bnsfw\b|prohibited|privacyinformation"
)
_FILE = _pattern(
    r"(download|fetch|access|read) .{0,30}(fail|error|denied)"
    r"|(fail|unable|could not|cannot) .{0,20}(download|fetch|access)"
    r"|file type not supported"
)

#: Answers to a create call. The first matching row decides.
ANSWERS: tuple[Row, ...] = (
    Row(
        text=_pattern(r"credits? (is |are )?insufficient|insufficient credits?|not enough credits?"),
        error_code="no_provider_credits",
    ),
    Row(codes=_codes(402), error_code="no_provider_credits"),
    Row(codes=_codes(429), kind=AnswerKind.LATER, after=5.0),
    Row(text=_pattern(r"call frequency is too high|rate limit"), kind=AnswerKind.LATER, after=5.0),
    Row(codes=_codes(433), kind=AnswerKind.LATER, after=120.0),
    Row(codes=_codes(455), kind=AnswerKind.LATER, after=60.0),
    Row(codes=_codes(401, 403), error_code="provider_key"),
    Row(
        text=_pattern(
            r"temporarily paused|model name .{0,40}not supported|discontinued|no longer (available|supported)"
        ),
        error_code="model_unavailable",
    ),
    Row(codes=_codes(404, 405, 505), error_code="model_unavailable"),
    Row(codes=_codes(400, 413, 422, 500), text=_MODERATION, error_code="moderation"),
    Row(codes=_codes(451), error_code="file_unreachable"),
    Row(codes=_codes(400, 413, 422), text=_FILE, error_code="file_unreachable"),
    Row(codes=_codes(400, 413, 422), error_code="bad_input"),
    Row(
        codes=_codes(500),
        text=_pattern(r"\b(is|are) required\b|please (fill in|enter|provide)|cannot be empty"),
        error_code="bad_input",
    ),
)
_UNLISTED = Row(kind=AnswerKind.UNKNOWN)

#: Reasons why an accepted task failed. The first matching row gives the error code.
FAILURES: tuple[Row, ...] = (
    Row(text=_MODERATION, error_code="moderation"),
    Row(text=_FILE, error_code="file_unreachable"),
    Row(codes=_codes(451), error_code="file_unreachable"),
    # The vendor's own faults also arrive as 400, with these words: the input was not wrong.
    Row(text=_pattern(r"try again|internal error"), error_code="provider_failed"),
    Row(codes=_codes(408), error_code="provider_timeout"),
    Row(codes=_codes(400, 413, 422), error_code="bad_input"),
)
_FAILED = Row(error_code="provider_failed")


def classify_answer(code: int | None, text: str) -> Row:
    """Return the row for an answer that did not accept the order."""
    return next((row for row in ANSWERS if row.matches(code, text)), _UNLISTED)


def failure_code(code: int | None, text: str) -> str:
    """Return the error code of a task that failed."""
    return next((row for row in FAILURES if row.matches(code, text)), _FAILED).error_code
