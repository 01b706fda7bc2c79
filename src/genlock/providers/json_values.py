"""Values of providers' JSON, which is untrusted: parsing, text that databases can store, and URLs."""

import json
import re
from typing import Any
from urllib.parse import urlsplit

_NOT_TEXT = re.compile("[\x00\ud800-\udfff]")
URL_CHARS_MAX = 4096
TEXT_CHARS_MAX = 100_000
#: The most objects and lists, and the most values, of one document; the transcript of an hour of speech has fewer.
#: Parsing blocks the event loop, and a megabyte of empty objects takes a quarter of a second.
CONTAINERS_MAX, VALUES_MAX = 50_000, 500_000
#: the most results of one task, and the most items of a list or object in which they are looked for
PIECES_MAX, PLACES_MAX = 100, 1000


def load_json(content: bytes | str) -> Any:
    """Parse JSON. Raises ValueError, also for JSON that is nested too deeply or has too many values."""
    if _count(content, "{[") > CONTAINERS_MAX or _count(content, ",") > VALUES_MAX:
        raise ValueError("too many values")
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _count(content: bytes | str, characters: str) -> int:
    if isinstance(content, str):
        return sum(map(content.count, characters))
    return sum(map(content.count, characters.encode()))


def load_json_or_none(content: bytes | str) -> Any:
    """Parse JSON. Returns None for anything else."""
    try:
        return load_json(content)
    except ValueError:
        return None


def load_object(content: bytes | str) -> dict[str, Any]:
    """Parse a JSON object. Raises ValueError for anything else."""
    body = load_json(content)
    if not isinstance(body, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - the port names ValueError
    return body


def clean(text: str) -> str:
    """Remove the characters that databases cannot store."""
    return _NOT_TEXT.sub("", text)


def read_url(value: Any) -> str | None:
    """Return the value if it is an http(s) URL with a host and without spaces, else None."""
    if not isinstance(value, str):
        return None
    text = value.strip()
    if not text or len(text) > URL_CHARS_MAX or not text.isprintable() or " " in text:
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return text if parts.scheme in ("http", "https") and parts.hostname else None


def read_url_of(base: str, value: Any) -> str | None:
    """Return the value if it is a URL of the same scheme, host and port as `base`, else None: a key may go there."""
    url = read_url(value)
    own, given = urlsplit(base), urlsplit(url or "")
    return url if (given.scheme, given.netloc) == (own.scheme, own.netloc) else None
