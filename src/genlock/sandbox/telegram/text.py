"""Text formatting: parse HTML into entities, trim and measure, with the real server's errors.

The Bot API server counts code points and answers in words; Telegram behind it counts UTF-16 units and answers with a
code, which the server puts into words for a send but not for an edit.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from genlock.sandbox.telegram.api_call import CallArguments, bad_request
from genlock.sandbox.telegram.detection import found_entities, utf16
from genlock.sandbox.telegram.link_preview import link_preview
from genlock.sandbox.telegram.markdown import parse_markdown, unparsable

SOURCE_BYTES_MAX = 32_768
TEXT_MAX = 4096
CAPTION_MAX = 1024
TAGS = {
    "b": "bold",
    "strong": "bold",
    "i": "italic",
    "em": "italic",
    "u": "underline",
    "ins": "underline",
    "s": "strikethrough",
    "strike": "strikethrough",
    "del": "strikethrough",
    "tg-spoiler": "spoiler",
    "tg-emoji": "custom_emoji",
    "span": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
CHARACTER = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(lt|gt|amp|quot));")
ATTRIBUTE = re.compile(r"""\s*([^\s=>"']+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""")
#: styles within which links and commands are detected; in other entities, such as code, they are not
STYLES = ("bold", "italic", "underline", "strikethrough", "spoiler", "blockquote", "expandable_blockquote")
Entity = dict[str, Any]
#: what the text is for: the server itself measures sends and new media, but not the other edits (see `check_edited`)
Use = Literal["send", "edit", "media edit"]


@dataclass(kw_only=True)
class _Open:
    tag: str
    offset: int
    start: int
    attributes: dict[str, str]


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


def read_entities(arguments: CallArguments, name: str) -> list[Entity]:
    entities = arguments.objects(name, "entities")
    for entity in entities:
        whole = isinstance(entity.get("offset"), int) and isinstance(entity.get("length"), int)
        if not whole or not isinstance(entity.get("type"), str):
            raise bad_request("can't parse MessageEntity: Can't find field \"type\"")
    return entities


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


def read_caption(text: str, mode: str, entities: list[Entity], use: Use = "send") -> dict[str, Any]:
    """Caption and entities, which may be empty."""
    caption, found = formatted(text, mode, entities)
    _check_length(caption, CAPTION_MAX, use, words="message caption is too long", code="MEDIA_CAPTION_TOO_LONG")
    return ({"caption": caption} if caption else {}) | ({"caption_entities": found} if found else {})


def formatted(source: str, mode: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    if len(source.encode()) > SOURCE_BYTES_MAX:
        raise bad_request("text is too long")
    text, found = _trimmed(*_parsed(source, mode.lower(), entities))
    return text, sorted(found + _unmarked(text, found), key=_place)


def _parsed(source: str, mode: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    if mode in {"", "none"}:
        return source, entities
    if mode == "html":
        return parse_html(source)
    if mode in {"markdown", "markdownv2"}:
        return parse_markdown(source, strict=mode == "markdownv2")
    raise bad_request("unsupported parse_mode")


def _unmarked(text: str, marked: list[Entity]) -> list[Entity]:
    """Detected entities that do not overlap explicit ones, such as code; styles do not matter."""
    explicit = [entity for entity in marked if entity["type"] not in STYLES]
    return [
        entity
        for entity in found_entities(text)
        if not any(entity["offset"] < _end(other) and other["offset"] < _end(entity) for other in explicit)
    ]


def _place(entity: Entity) -> tuple[int, int, bool]:
    return entity["offset"], -entity["length"], entity["type"] in STYLES


def _end(entity: Entity) -> int:
    return int(entity["offset"] + entity["length"])


def parse_html(source: str) -> tuple[str, list[Entity]]:
    text: list[str] = []
    offset = 0
    opened: list[_Open] = []
    entities: list[Entity] = []
    place = 0
    while place < len(source):
        if source[place] == "<":
            end = _tag_end(source, place)
            inside = source[place + 1 : end]
            if inside.startswith("/"):
                entity = _close(source, place, inside[1:], opened, "".join(text), offset)
                entities += [entity] if entity else []
            else:
                opened.append(_opened(source, place, inside, offset))
            place = end + 1
            continue
        match = CHARACTER.match(source, place)
        piece = _character(match) if match else source[place]
        text.append(piece)
        offset += utf16(piece)
        place = match.end() if match else place + 1
    if opened:
        raise unparsable(f'Can\'t find end tag corresponding to start tag "{opened[-1].tag}"')
    return "".join(text), sorted(_merged(entities), key=_place)


def _tag_end(source: str, place: int) -> int:
    end = source.find(">", place)
    if end < 0:
        what = "end" if source[place + 1 : place + 2] == "/" else "start"
        raise unparsable(f"Unclosed {what} tag at byte offset {_bytes(source, place)}")
    return end


def _opened(source: str, place: int, inside: str, offset: int) -> _Open:
    tag = re.split(r"\s", inside, maxsplit=1)[0].lower()
    byte_offset = _bytes(source, place)
    if tag not in TAGS:
        raise unparsable(f'Unsupported start tag "{tag}" at byte offset {byte_offset}')
    found = ATTRIBUTE.findall(inside[len(tag) :])
    attributes = {name.lower(): _decoded(double or single or bare) for name, double, single, bare in found}
    if tag == "span" and attributes.get("class") != "tg-spoiler":
        raise unparsable(f'Tag "span" must have class "tg-spoiler" at byte offset {byte_offset}')
    return _Open(tag=tag, offset=offset, start=place, attributes=attributes)


def _close(source: str, place: int, name: str, opened: list[_Open], text: str, offset: int) -> Entity | None:
    byte_offset = _bytes(source, place)
    if not opened:
        raise unparsable(f"Unexpected end tag at byte offset {byte_offset}")
    last = opened.pop()
    found = name.strip().lower()
    if found not in {"", last.tag}:
        raise unparsable(
            f'Unmatched end tag at byte offset {byte_offset}, expected "</{last.tag}>", found "</{found}>"'
        )
    if offset == last.offset:
        return None
    entity: Entity = {"type": TAGS[last.tag], "offset": last.offset, "length": offset - last.offset}
    if last.tag == "a":
        link_text = text.encode("utf-16-le")[last.offset * 2 :].decode("utf-16-le")
        url = last.attributes.get("href") or link_text
        return entity | {"url": url} if "." in url or "://" in url else None
    if last.tag == "code" and last.attributes.get("class", "").startswith("language-"):
        entity["language"] = last.attributes["class"].removeprefix("language-")
    if last.tag == "tg-emoji":
        entity["custom_emoji_id"] = last.attributes.get("emoji-id", "")
    if last.tag == "blockquote" and "expandable" in last.attributes:
        entity["type"] = "expandable_blockquote"
    return entity


def _merged(entities: list[Entity]) -> list[Entity]:
    """A language named by the `code` inside a `pre` belongs to the `pre`."""
    places = {(entity["offset"], entity["length"]): entity for entity in entities if entity["type"] == "pre"}
    kept: list[Entity] = []
    for entity in entities:
        around = places.get((entity["offset"], entity["length"]))
        if entity["type"] == "code" and around is not None:
            around |= {"language": entity["language"]} if "language" in entity else {}
            continue
        if entity["type"] == "code":
            entity.pop("language", None)
        kept.append(entity)
    return kept


def _character(match: "re.Match[str]") -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return CHARACTERS[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else match.group()


def _decoded(value: str) -> str:
    return CHARACTER.sub(_character, value)


def _bytes(source: str, place: int) -> int:
    return len(source[:place].encode())


def _trimmed(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    kept = text.strip()
    cut = utf16(text[: len(text) - len(text.lstrip())])
    whole = utf16(kept)
    moved = []
    for entity in entities:
        start = max(entity["offset"] - cut, 0)
        end = min(entity["offset"] + entity["length"] - cut, whole)
        if end > start:
            moved.append(entity | {"offset": start, "length": end - start})
    return kept, moved
