"""Entities that a bot gives with a text: read, and refused with the real server's errors."""

import re
from collections.abc import Iterable
from typing import Any

from genlock.channels.telegram.html import is_emoji_id
from genlock.sandbox.telegram.api_call import ApiError, bad_request
from genlock.sandbox.telegram.detection import utf16
from genlock.sandbox.telegram.formats import Entity, date_time, is_date_format, link
from genlock.sandbox.telegram.links import LinkRefused, checked_link, user_of

#: entities that Telegram finds by itself: given ones are ignored
DETECTED = ("mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number")
#: entities without values
SIMPLE = (
    *("bold", "italic", "underline", "strikethrough", "spoiler", "code"),
    *("blockquote", "expandable_blockquote"),
)
PLACE_MAX = 1_000_000
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


class _Wrong(ValueError):
    """An entity cannot be read; the text says why, in the server's words."""


def read_given(text: str, given: Iterable[Any]) -> list[Entity]:
    """Return the entities in the order of their places. Raises ApiError."""
    entities = []
    for item in given:
        try:
            entity = _entity(item)
        except _Wrong as wrong:
            raise bad_request(f"can't parse MessageEntity: {wrong}") from None
        if entity is not None:
            entities.append(entity)
    _check_values(entities)
    kept = sorted((entity for entity in entities if entity["length"] > 0), key=_outer_first)
    _check_places(text, kept)
    return kept


def _entity(item: Any) -> Entity | None:
    """Return the fields that the server reads; None for an entity that it ignores. Raises _Wrong."""
    if not isinstance(item, dict):
        raise _Wrong("expected an Object")
    place = {"offset": _number(item, "offset"), "length": _number(item, "length")}
    kind = _text(item, "type")
    if kind in DETECTED:
        return None
    return {"type": kind} | place | _fields(kind, item)


def _fields(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    if kind in SIMPLE:
        return {}
    match kind:
        case "pre":
            language = _text(item, "language") if "language" in item else ""
            fields = {"language": language} if language else {}
        case "text_link":
            fields = {"url": _text(item, "url")}
        case "text_mention":
            if not isinstance(item.get("user"), dict):
                raise _Wrong('Field "user" must be of type Object' if "user" in item else 'Can\'t find field "user"')
            fields = {"user": item["user"] | {"id": _number(item["user"], "id", LONG_MAX)}}
        case "custom_emoji":
            fields = {"custom_emoji_id": str(_number(item, "custom_emoji_id", LONG_MAX))}
        case "date_time":
            fields = _date(item)
        case _:
            raise _Wrong("Unsupported type specified" if kind else "Type is not specified")
    return fields


def _date(item: dict[str, Any]) -> dict[str, Any]:
    unix = _number(item, "unix_time")
    form = _text(item, "date_time_format") if "date_time_format" in item else ""
    if not is_date_format(form):
        raise _Wrong("Invalid date-time format specified")
    return {"unix_time": unix, "date_time_format": form}


def _number(item: dict[str, Any], name: str, most: int = INT_MAX) -> int:
    if name not in item:
        raise _Wrong(f'Can\'t find field "{name}"')
    value = item[name]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _Wrong(f'Field "{name}" must be a Number')
    if not _WHOLE.fullmatch(str(value)) or not -most - 1 <= int(value) <= most:
        raise _Wrong(f'Field "{name}" must be a valid Number')
    return int(value)


def _text(item: dict[str, Any], name: str) -> str:
    if name not in item:
        raise _Wrong(f'Can\'t find field "{name}"')
    value = item[name]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise _Wrong(f'Field "{name}" must be of type String')
    return str(value)


def _check_values(entities: list[Entity]) -> None:
    """Complete links and dates, and check the values of all entities. Raises ApiError."""
    for entity in entities:
        match entity["type"]:
            case "text_link":
                entity.update(_accepted(entity["url"]))
            case "custom_emoji" if not is_emoji_id(entity["custom_emoji_id"]):
                raise bad_request("invalid custom emoji identifier specified")
            case "date_time":
                shown = date_time(entity["unix_time"], entity["date_time_format"])
                if shown is None:
                    raise bad_request("invalid date specified")
                entity.update(shown)
    for entity in entities:
        for name in ("offset", "length"):
            if not 0 <= entity[name] <= PLACE_MAX:
                raise bad_request(f"receive an entity with incorrect {name} {entity[name]}")


def _accepted(url: str) -> dict[str, Any]:
    if user_of(url) is not None:
        return link(url) or {}
    try:
        return {"url": checked_link(url)}
    except LinkRefused as refused:
        raise bad_request(f"entity URL '{url}' is invalid: {refused}") from None


def _check_places(text: str, entities: list[Entity]) -> None:
    """Raise ApiError if an entity begins or ends inside a character or behind the text. Outer entities come first."""
    opened: list[Entity] = []
    waiting, place, size = list(entities), 0, 0
    for character in (*text, ""):
        while opened and place >= _end(opened[-1]):
            if place != _end(opened[-1]):
                raise _misplaced(opened[-1], f"ends in a middle of a UTF-16 symbol at byte offset {size}")
            opened.pop()
        while waiting and place >= waiting[0]["offset"]:
            if place != waiting[0]["offset"]:
                raise bad_request(f"entity begins in a middle of a UTF-16 symbol at byte offset {size}")
            opened.append(waiting.pop(0))
        place += utf16(character)
        size += len(character.encode())
    if waiting:
        raise bad_request(f"entity begins after the end of the text at UTF-16 offset {waiting[0]['offset']}")
    if opened:
        raise _misplaced(opened[-1], f"ends after the end of the text at UTF-16 offset {_end(opened[-1])}")


def _misplaced(entity: Entity, where: str) -> ApiError:
    return bad_request(f"entity beginning at UTF-16 offset {entity['offset']} {where}")


def _outer_first(entity: Entity) -> tuple[int, int]:
    return entity["offset"], -entity["length"]


def _end(entity: Entity) -> int:
    return int(entity["offset"] + entity["length"])
