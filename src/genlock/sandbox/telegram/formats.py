"""What HTML and both kinds of Markdown have in common: the order of entities, links, dates, and the form of errors."""

from typing import Any

from genlock.channels.telegram.html import DATE_FORMAT
from genlock.sandbox.telegram.api_call import ApiError, bad_request
from genlock.sandbox.telegram.links import accepted_link, user_of

Entity = dict[str, Any]
#: entities of the same place are in this order; what is not named here, such as a detected address, has `_DETECTED`
_ORDER = {
    **dict.fromkeys(("blockquote", "expandable_blockquote"), 0),
    "pre": 10,
    "code": 20,
    "date_time": 30,
    "text_link": 49,
    "bold": 90,
    "italic": 91,
    "underline": 92,
    "strikethrough": 93,
    "spoiler": 94,
    "custom_emoji": 99,
}
_DETECTED = 50


def in_order(entities: list[Entity]) -> list[Entity]:
    """Return entities in the order of their places, outer ones first."""

    def place(entity: Entity) -> tuple[int, int, int]:
        return entity["offset"], -entity["length"], _ORDER.get(entity["type"], _DETECTED)

    return sorted(entities, key=place)


def link(url: str) -> dict[str, Any] | None:
    """Return the field `url` of a link; None if the server leaves the link out."""
    if user_of(url) is not None:
        return {"url": url}
    return {"url": accepted} if (accepted := accepted_link(url)) else None


def is_date_format(form: str) -> bool:
    return DATE_FORMAT.fullmatch(form) is not None


def date_time(unix: int, form: str) -> dict[str, Any] | None:
    """Return the fields of a date; None without a date. Raises ApiError for an unknown format."""
    if not is_date_format(form):
        raise unparsable("Invalid date format used")
    if unix <= 0:
        return None
    return {"unix_time": unix, "date_time_format": "r" if form in {"r", "R"} else _absolute(form)}


def _absolute(form: str) -> str:
    """Return weekday, date and time of a format, each once; the short form goes before the long one."""
    weekday = "w" if {"w", "W"} & set(form) else ""
    return weekday + "".join(next((letter for letter in pair if letter in form), "") for pair in ("dD", "tT"))


def unparsable(text: str) -> ApiError:
    return bad_request(f"can't parse entities: {text}")
