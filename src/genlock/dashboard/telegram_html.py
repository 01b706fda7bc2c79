"""A message in Telegram's HTML: checked as Telegram checks it, and shown as Telegram would show it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup, escape

#: characters of a message after its tags are read, counted in UTF-16 units
TEXT_MAX = 4096
#: Telegram's tags and how the preview shows them
_SHOWN = {
    "b": "b",
    "strong": "b",
    "i": "i",
    "em": "i",
    "u": "u",
    "ins": "u",
    "s": "s",
    "strike": "s",
    "del": "s",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
    "tg-spoiler": "span",
    "span": "span",
    "a": "span",
    "tg-emoji": "span",
}
_CLASSES = {"tg-spoiler": "spoiler", "span": "spoiler", "a": "chat-link"}
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_CHARACTER = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(lt|gt|amp|quot));")
_ATTRIBUTE = re.compile(r"""\s*([^\s=>"']+)\s*(?:=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?""")
_SURROGATES, _CODES = range(0xD800, 0xE000), range(1, 0x110000)


class InvalidMessage(Exception):
    """Telegram would refuse the message. `code` says why; `detail` is the tag, and `line` where it is."""

    def __init__(self, code: str, *, detail: str = "", line: int = 1) -> None:
        super().__init__(f"{code} {detail} in line {line}")
        self.code = code
        self.detail = detail
        self.line = line


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatMessage:
    #: as Telegram would show it, safe for a page
    shown: Markup
    #: without tags
    text: str
    #: in UTF-16 units, as Telegram counts
    length: int


def read_message(source: str) -> ChatMessage:
    """Read a message. Raises InvalidMessage."""
    shown, text = _parse(source)
    length = len(text.strip().encode("utf-16-le")) // 2
    if not length:
        raise InvalidMessage("empty")
    if length > TEXT_MAX:
        raise InvalidMessage("long", detail=str(length))
    return ChatMessage(shown=shown, text=text, length=length)


def _parse(source: str) -> tuple[Markup, str]:
    shown: list[Markup] = []
    text: list[str] = []
    opened: list[str] = []
    place = 0
    while place < len(source):
        if source[place] != "<":
            match = _CHARACTER.match(source, place)
            piece = _decoded(match) if match else source[place]
            text.append(piece)
            shown.append(escape(piece))
            place = match.end() if match else place + 1
            continue
        line = source.count("\n", 0, place) + 1
        end = source.find(">", place)
        if end < 0:
            raise InvalidMessage("unclosed", detail=source[place : place + 20], line=line)
        shown.append(_tag(source[place + 1 : end], opened, line))
        place = end + 1
    if opened:
        raise InvalidMessage("no_end", detail=opened[-1], line=source.count("\n") + 1)
    return Markup("").join(shown), "".join(text)


def _tag(inside: str, opened: list[str], line: int) -> Markup:
    if not inside.startswith("/"):
        tag = re.split(r"\s", inside, maxsplit=1)[0].lower()
        if tag not in _SHOWN:
            raise InvalidMessage("unknown_tag", detail=tag[:20], line=line)
        attributes = {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(inside[len(tag) :])}
        if tag == "span" and attributes.get("class") != "tg-spoiler":
            raise InvalidMessage("span", detail=tag, line=line)
        opened.append(tag)
        return _start(tag, attributes)
    name = inside[1:].strip().lower()
    if not opened:
        raise InvalidMessage("unexpected_end", detail=name[:20], line=line)
    last = opened.pop()
    if name not in ("", last):
        raise InvalidMessage("other_end", detail=f"</{name[:20]}>, </{last}>", line=line)
    return Markup("</{}>").format(_SHOWN[last])


def _start(tag: str, attributes: Mapping[str, str]) -> Markup:
    """Return the start tag of the preview. An address is shown on hover; the preview does not lead there."""
    parts = Markup("")
    if tag in _CLASSES:
        parts += Markup(' class="{}"').format(_CLASSES[tag])
    if tag == "a" and attributes.get("href"):
        parts += Markup(' title="{}"').format(_CHARACTER.sub(_decoded, attributes["href"]))
    return Markup("<{}{}>").format(_SHOWN[tag], parts)


def _decoded(match: "re.Match[str]") -> str:
    decimal, hexadecimal, name = match.groups()
    if name:
        return _CHARACTERS[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code in _CODES and code not in _SURROGATES else match.group()
