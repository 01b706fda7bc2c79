"""Text formatting: parse the older Markdown, whose entities cannot be nested, with the real server's errors."""

import re
from typing import Any

from genlock.sandbox.telegram.detection import utf16
from genlock.sandbox.telegram.formats import Entity, in_order, link, unparsable
from genlock.sandbox.telegram.markdown import LANGUAGE, LINE_END

TYPES = {"_": "italic", "*": "bold", "`": "code", "```": "pre", "[": "text_link"}
MARK = re.compile(r"```|[_*`\[]")
ESCAPED = re.compile(r"\\([_*`\[])")
URL = re.compile(r"\(([^)]*)\)?")


def parse_old_markdown(source: str) -> tuple[str, list[Entity]]:
    text: list[str] = []
    offset = 0
    entities: list[Entity] = []
    place = 0
    while place < len(source):
        mark = MARK.match(source, place)
        if mark is None:
            escaped = ESCAPED.match(source, place)
            piece = escaped[1] if escaped else source[place]
            place += 2 if escaped else 1
        else:
            piece, more, place = _read_entity(source, place, mark.group())
            if piece and more is not None:
                entities.append({"type": TYPES[mark.group()], "offset": offset, "length": utf16(piece)} | more)
        text.append(piece)
        offset += utf16(piece)
    return "".join(text), in_order(entities)


def _read_entity(source: str, begin: int, mark: str) -> tuple[str, dict[str, Any] | None, int]:
    """Return the text of an entity, its further fields (None: it is left out), and the place behind it."""
    place = begin + len(mark)
    more: dict[str, Any] | None = {}
    if mark == "```":
        if language := LANGUAGE.match(source, place):
            more, place = {"language": language[1]}, language.end()
        if line_end := LINE_END.match(source, place):
            place = line_end.end()
    closing = "]" if mark == "[" else mark
    end = source.find(closing, place)
    if end < 0:
        raise unparsable(f"Can't find end of the entity starting at byte offset {len(source[:begin].encode())}")
    text, place = source[place:end], end + len(closing)
    if mark == "[":
        url = URL.match(source, place)
        more, place = link(url[1] if url else text), url.end() if url else place
    return text, more, place
