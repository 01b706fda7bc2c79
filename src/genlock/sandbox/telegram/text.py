"""Text formatting: find the entities of a text, trim and measure it, with the real server's errors.

The Bot API server counts code points and answers in words; Telegram behind it counts UTF-16 units and answers with a
code, which the server puts into words for a send but not for an edit.
"""

from bisect import bisect_left
from typing import Any, Literal

from genlock.channels.telegram.cleaning import cleaned, removed_places, trimmed
from genlock.sandbox.telegram.api_call import ApiError, CallArguments, bad_request
from genlock.sandbox.telegram.detection import found_entities, utf16
from genlock.sandbox.telegram.formats import Entity, in_order
from genlock.sandbox.telegram.given_entities import read_given
from genlock.sandbox.telegram.html import parse_html
from genlock.sandbox.telegram.link_preview import link_preview
from genlock.sandbox.telegram.markdown import parse_markdown
from genlock.sandbox.telegram.old_markdown import parse_old_markdown

SOURCE_BYTES_MAX = 32_768
TEXT_MAX = 4096
CAPTION_MAX = 1024
#: styles within which links and commands are detected; in other entities, such as code, they are not
STYLES = ("bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote")
#: what the text is for: the server itself measures sends and new media, but not the other edits (see `check_edited`)
Use = Literal["send", "edit", "media edit"]


def read_text(arguments: CallArguments, use: Use = "send") -> dict[str, Any]:
    """Text and entities of a message. Raises if it is empty or too long."""
    source = arguments.text("text")
    if not source:
        raise bad_request("message text is empty")
    text, entities = formatted(source, arguments.text("parse_mode"), read_entities(arguments, "entities"))
    if not text:
        raise bad_request("text must be non-empty")
    _check_length(text, TEXT_MAX, use, words="message is too long", code="MESSAGE_TOO_LONG")
    return {"text": text} | ({"entities": entities} if entities else {}) | link_preview(arguments, text, entities)


def read_entities(arguments: CallArguments, name: str) -> list[Any]:
    """Return what was given as entities. Like the real server, ignore what is not a list."""
    try:
        given = arguments.json(name, "entities")
    except ApiError:
        return []
    return given if isinstance(given, list) else []


def _check_length(text: str, limit: int, use: Use, *, words: str, code: str) -> None:
    if use == "edit":
        return
    if len(text) > limit:
        raise bad_request(words)
    if utf16(text) > limit:
        raise bad_request(words if use == "send" else code)


def check_edited(content: dict[str, Any]) -> None:
    """Measure an edit as Telegram behind the server does, after all other checks. Raises if it is too long."""
    if utf16(content.get("text", "")) > TEXT_MAX:
        raise bad_request("MESSAGE_TOO_LONG")
    if utf16(content.get("caption", "")) > CAPTION_MAX:
        raise bad_request("MEDIA_CAPTION_TOO_LONG")


def read_caption(text: str, mode: str, entities: list[Any], use: Use = "send") -> dict[str, Any]:
    """Caption and entities, which may be empty."""
    caption, found = formatted(text, mode, entities)
    _check_length(caption, CAPTION_MAX, use, words="message caption is too long", code="MEDIA_CAPTION_TOO_LONG")
    return ({"caption": caption} if caption else {}) | ({"caption_entities": found} if found else {})


def formatted(source: str, mode: str, entities: list[Any]) -> tuple[str, list[Entity]]:
    """Return the text as Telegram shows it, and its entities. Given entities count only without a parse mode."""
    if len(source.encode()) > SOURCE_BYTES_MAX:
        raise bad_request("text is too long")
    text, found = _trimmed(*_parsed(source, mode.lower(), entities))
    return text, in_order(found + _unmarked(text, found))


def _parsed(source: str, mode: str, entities: list[Any]) -> tuple[str, list[Entity]]:
    if not source or mode in {"", "none"}:
        return source, read_given(source, entities)
    if mode == "html":
        return parse_html(source)
    if mode in {"markdown", "markdownv2"}:
        return parse_markdown(source) if mode == "markdownv2" else parse_old_markdown(source)
    raise bad_request("unsupported parse_mode")


def _unmarked(text: str, marked: list[Entity]) -> list[Entity]:
    """Detected entities that do not overlap explicit ones, such as code; styles do not matter."""
    explicit = [entity for entity in marked if entity["type"] not in STYLES]
    return [
        entity
        for entity in found_entities(text)
        if not any(entity["offset"] < _end(other) and other["offset"] < _end(entity) for other in explicit)
    ]


def _end(entity: Entity) -> int:
    return int(entity["offset"] + entity["length"])


def _trimmed(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Return the text without what Telegram removes, and the entities at their places in it."""
    removed = [utf16(text[:place]) for place in removed_places(text)]
    kept, whole = trimmed(text), cleaned(text)
    cut = len(whole) - len(whole.lstrip(" \n"))
    length = utf16(kept)
    moved = []
    for entity in entities:
        start, end = (place - bisect_left(removed, place) - cut for place in (entity["offset"], _end(entity)))
        start, end = max(start, 0), min(end, length)
        if end > start:
            moved.append(entity | {"offset": start, "length": end - start})
    return kept, moved
