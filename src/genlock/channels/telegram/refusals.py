"""What each of Telegram's refusals means: the one table, `refusals.toml`.

Telegram documents only the `parameters` of an error, so the meaning must be read from its description. Patterns are
compared ignoring case, without the prefix `Bad Request: `, from the beginning of the text; `*` stands for anything but
a quotation mark. Many descriptions quote what we or the provider sent (a URL, a tag, a file name), so a pattern that
could match in the middle would let that content decide what happens to a result.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum, auto
from functools import cache
from importlib.resources import files


class Meaning(StrEnum):
    """What a refusal says, and so what can be done: the sections of the table, which explains them."""

    NOT_MODIFIED = auto()
    OUTCOME_UNKNOWN = auto()
    HAS_MEDIA = auto()
    HAS_NO_MEDIA = auto()
    ALREADY_REFUNDED = auto()
    QUERY_TOO_OLD = auto()
    TOKEN_REFUSED = auto()
    BOT_FROZEN = auto()
    RETRY = auto()
    FILE_REFUSED = auto()
    BUTTONS_REFUSED = auto()
    TEXT_REFUSED = auto()
    PLACEHOLDER_GONE = auto()
    TOPIC_GONE = auto()
    RECIPIENT_UNREACHABLE = auto()
    LEVEL_REFUSED = auto()
    CALL_INVALID = auto()


_PREFIX = re.compile(r"(?:\[?error\]?: |bad request: |forbidden: |not found: )+")
#: an album's refusal quotes the refusal of one of its messages
_ALBUM = re.compile(r'failed to send message #\d+ with the error message "(.*)"', re.DOTALL)
#: a refusal of an edit's media may be one of its caption
_MEDIA = re.compile(r"can't parse inputmedia: (.*)", re.DOTALL)


def read_patterns() -> Mapping[Meaning, Sequence[str]]:
    """Return the patterns of each meaning, in the order in which they are compared."""
    text = files("genlock.channels.telegram").joinpath("refusals.toml").read_text(encoding="utf-8")
    return {Meaning(name): patterns for name, patterns in tomllib.loads(text).items()}


def _compiled(pattern: str) -> re.Pattern[str]:
    body = "".join("[^'\"]*" if piece == "*" else re.escape(piece) for piece in re.split(r"(\*)", pattern))
    return re.compile(rf"{body}(?!\w)" if pattern[-1].isalnum() else body)


@cache
def _table() -> tuple[tuple[Meaning, re.Pattern[str]], ...]:
    """Return the compiled patterns. Commands that meet no refusal do not wait for hundreds of regular expressions."""
    return tuple((meaning, _compiled(pattern)) for meaning, found in read_patterns().items() for pattern in found)


def meaning_of(description: str) -> Meaning | None:
    """Return what the description of a refused call means; None if the table does not know it."""
    text = description.casefold().strip()
    text = text[found.end() :] if (found := _PREFIX.match(text)) else text
    if album := _ALBUM.match(text):
        return meaning_of(album[1])
    if (media := _MEDIA.match(text)) and meaning_of(media[1]) is Meaning.TEXT_REFUSED:
        return Meaning.TEXT_REFUSED
    return next((meaning for meaning, pattern in _table() if pattern.match(text)), None)
