"""What an answer of Kie.ai means for an order: one table, from codes and texts to what we do.

HTTP says 200 even when the call failed; the code in the body tells. Where there is no such body, the HTTP status is
the code. Whatever no row fits may have been accepted.
"""

import re
from dataclasses import dataclass
from enum import StrEnum


class Sort(StrEnum):
    REFUSED = "refused"  #: for good: nothing runs, nothing is billed
    LATER = "later"  #: provably not accepted; it may be sent again
    UNKNOWN = "unknown"  #: may have been accepted: never send it again


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Fits an answer with one of the codes (None: any) whose text has one of the words (None: any)."""

    codes: frozenset[int] | None = None
    words: re.Pattern[str] | None = None
    sort: Sort = Sort.REFUSED
    #: what the person is told, by name
    name: str = ""
    #: seconds before another try
    after: float = 0.0

    def fits(self, code: int | None, text: str) -> bool:
        return (self.codes is None or code in self.codes) and (self.words is None or bool(self.words.search(text)))


def _codes(*codes: int) -> frozenset[int]:
    return frozenset(codes)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_MODERATION = _words(
    r"violat\w+ .{0,40}polic|content polic|flagged|sensitive|moderation|\bnsfw\b|prohibited|privacyinformation"
)
_FILE = _words(
    r"(download|fetch|access|read) .{0,30}(fail|error|denied)"
    r"|(fail|unable|could not|cannot) .{0,20}(download|fetch|access)"
    r"|file type not supported"
)

#: The answers to a create call. The first row that fits decides.
ANSWERS: tuple[Row, ...] = (
    Row(
        words=_words(r"credits? (is |are )?insufficient|insufficient credits?|not enough credits?"),
        name="no_provider_credits",
    ),
    Row(codes=_codes(402), name="no_provider_credits"),
    Row(codes=_codes(429), sort=Sort.LATER, after=5.0),
    Row(words=_words(r"call frequency is too high|rate limit"), sort=Sort.LATER, after=5.0),
    Row(codes=_codes(433), sort=Sort.LATER, after=120.0),
    Row(codes=_codes(455), sort=Sort.LATER, after=60.0),
    Row(codes=_codes(401, 403), name="provider_key"),
    Row(
        words=_words(
            r"temporarily paused|model name .{0,40}not supported|discontinued|no longer (available|supported)"
        ),
        name="model_unavailable",
    ),
    Row(codes=_codes(404, 405, 505), name="model_unavailable"),
    Row(codes=_codes(400, 413, 422, 500), words=_MODERATION, name="moderation"),
    Row(codes=_codes(451), name="file_unreachable"),
    Row(codes=_codes(400, 413, 422), words=_FILE, name="file_unreachable"),
    Row(codes=_codes(400, 413, 422), name="bad_input"),
    Row(
        codes=_codes(500),
        words=_words(r"\b(is|are) required\b|please (fill in|enter|provide)|cannot be empty"),
        name="bad_input",
    ),
)
_NO_ROW = Row(sort=Sort.UNKNOWN)

#: Why a task that was accepted failed. The first row that fits names it.
FAILURES: tuple[Row, ...] = (
    Row(words=_MODERATION, name="moderation"),
    Row(words=_FILE, name="file_unreachable"),
    Row(codes=_codes(451), name="file_unreachable"),
    # A fault further up also comes as 400, with these words: the input was not to blame.
    Row(words=_words(r"try again|internal error"), name="provider_failed"),
    Row(codes=_codes(408), name="provider_timeout"),
    Row(codes=_codes(400, 413, 422), name="bad_input"),
)
_FAILED = Row(name="provider_failed")


def sort_answer(code: int | None, text: str) -> Row:
    """What to do about an answer that did not accept the order."""
    return next((row for row in ANSWERS if row.fits(code, text)), _NO_ROW)


def name_failure(code: int | None, text: str) -> str:
    """What to tell the person about a task that failed."""
    return next((row for row in FAILURES if row.fits(code, text)), _FAILED).name
