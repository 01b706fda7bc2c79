"""Text formatting: parse HTML into entities, with the real server's errors."""

import re
from dataclasses import dataclass, field
from typing import Any

from genlock.sandbox.telegram.detection import utf16
from genlock.sandbox.telegram.formats import NUMBER, Entity, date_time, in_order, link, unparsable

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
    "tg-time": "date_time",
    "span": "spoiler",
    "a": "text_link",
    "code": "code",
    "pre": "pre",
    "blockquote": "blockquote",
}
CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
#: a reference to a character; its semicolon may be missing
REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]*)|#([0-9]*)|([A-Za-z]*));?")
REFERENCE_LENGTH_MAX = 9
SPACE = " \t\r\n\0\v"
END = "\0"  # stands after the source, as in the server
TAG_NAME = re.compile(rf"[^{SPACE}>]*")
SPACES = re.compile(rf"(?:(?!\0)[{SPACE}])*")
ATTRIBUTE_NAME = re.compile(rf"""[^{SPACE}=>/"']*""")
NAME_TOKEN = re.compile(r"[A-Za-z0-9.-]*")


@dataclass(kw_only=True)
class _Open:
    tag: str
    offset: int
    #: how many pieces of text came before it
    pieces: int
    attributes: dict[str, str]


@dataclass(kw_only=True)
class _Parser:
    source: str
    place: int = 0
    text: list[str] = field(default_factory=list)
    offset: int = 0
    opened: list[_Open] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)

    def parse(self) -> tuple[str, list[Entity]]:
        while self.place < len(self.source) - 1:
            if self.source[self.place] != "<":
                self._read_character()
            elif self.source[self.place + 1] == "/":
                self._read_end_tag()
            else:
                self._read_start_tag()
        if self.opened:
            raise unparsable(f'Can\'t find end tag corresponding to start tag "{self.opened[-1].tag}"')
        if any("\ud800" <= piece <= "\udfff" for piece in self.text):
            raise unparsable(
                "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate "
                "code units"
            )
        for entity in self.entities:
            if entity["type"] == "code":
                entity.pop("language", None)
        return "".join(self.text), in_order(self.entities)

    def _read_character(self) -> None:
        piece, self.place = _character(self.source, self.place)
        self.text.append(piece)
        self.offset += 1 if "\ud800" <= piece <= "\udfff" else utf16(piece)

    def _read_start_tag(self) -> None:
        begin = self.place
        name = self._take(TAG_NAME, begin + 1)
        if self.source[self.place] == END:
            raise unparsable(f"Unclosed start tag at byte offset {self._bytes(begin)}")
        tag = name.lower()
        if tag not in TAGS:
            raise unparsable(f'Unsupported start tag "{tag}" at byte offset {self._bytes(begin)}')
        attributes: dict[str, str] = {}
        while self.source[self.place] != ">":
            self._take(SPACES, self.place)
            if self.source[self.place] != ">":
                self._read_attribute(tag, begin, attributes)
        self.place += 1
        if tag == "span" and attributes.get("class") != "tg-spoiler":
            raise unparsable(f'Tag "span" must have class "tg-spoiler" at byte offset {self._bytes(begin)}')
        self.opened.append(_Open(tag=tag, offset=self.offset, pieces=len(self.text), attributes=attributes))

    def _read_attribute(self, tag: str, begin: int, attributes: dict[str, str]) -> None:
        name = self._take(ATTRIBUTE_NAME, self.place)
        if not name:
            raise unparsable(f'Empty attribute name in the tag "{tag}" at byte offset {self._bytes(begin)}')
        self._take(SPACES, self.place)
        has_value = self.source[self.place] == "="
        if has_value:
            self._take(SPACES, self.place + 1)
        if self.source[self.place] == END:
            raise unparsable(f'Unclosed start tag "{tag}" at byte offset {self._bytes(begin)}')
        attributes[name] = self._read_value() if has_value else "1"
        if self.source[self.place] == END:
            raise unparsable(f"Unclosed start tag at byte offset {self._bytes(begin)}")

    def _read_value(self) -> str:
        quote = self.source[self.place]
        if quote not in "'\"":
            begin = self.place
            token = self._take(NAME_TOKEN, begin)
            if self.source[self.place] not in f"{SPACE}>":
                raise unparsable(f"Unexpected end of name token at byte offset {self._bytes(begin)}")
            return token.lower()
        value: list[str] = []
        self.place += 1
        while self.source[self.place] not in {quote, END}:
            piece, self.place = _character(self.source, self.place)
            value.append(piece)
        self.place += self.source[self.place] == quote
        return "".join(value)

    def _read_end_tag(self) -> None:
        begin = self.place
        if not self.opened:
            raise unparsable(f"Unexpected end tag at byte offset {self._bytes(begin)}")
        found = self._take(TAG_NAME, begin + 2).lower()
        self._take(SPACES, self.place)
        if self.source[self.place] != ">":
            raise unparsable(f"Unclosed end tag at byte offset {self._bytes(begin)}")
        self.place += 1
        tag = self.opened[-1].tag
        if found not in {"", tag}:
            raise unparsable(
                f'Unmatched end tag at byte offset {self._bytes(begin)}, expected "</{tag}>", found "</{found}>"'
            )
        self._close(self.opened.pop())

    def _close(self, mark: _Open) -> None:
        if self.offset == mark.offset:
            return
        entity: Entity = {"type": TAGS[mark.tag], "offset": mark.offset, "length": self.offset - mark.offset}
        same_place = self.entities and _place(self.entities[-1]) == _place(entity)
        inner = self.entities[-1] if same_place else {"type": ""}
        language = mark.attributes.get("class", "")
        language = language.removeprefix("language-") if language.startswith("language-") else ""
        if mark.tag == "pre" and inner["type"] == "code" and inner.get("language"):
            inner["type"] = "pre"
        elif mark.tag == "code" and inner["type"] == "pre" and language:
            inner["language"] = language
        elif (more := self._values(mark, language)) is not None:
            self.entities.append(entity | more)

    def _values(self, mark: _Open, language: str) -> dict[str, Any] | None:
        """Return the further fields of an entity; None if the server leaves it out."""
        match mark.tag:
            case "a":
                return link(mark.attributes.get("href") or "".join(self.text[mark.pieces :]))
            case "code" if language:
                return {"language": language}
            case "tg-emoji":
                emoji = mark.attributes.get("emoji-id", "")
                if not NUMBER.fullmatch(emoji):
                    raise unparsable("Invalid custom emoji identifier specified")
                return {"custom_emoji_id": emoji}
            case "tg-time":
                return date_time(mark.attributes.get("unix", ""), mark.attributes.get("format", ""))
            case "blockquote" if mark.attributes.get("expandable"):
                return {"type": "expandable_blockquote"}
            case _:
                return {}

    def _take(self, pattern: re.Pattern[str], begin: int) -> str:
        """Go on behind what matches at a place, and return it."""
        found = pattern.match(self.source, begin)
        assert found is not None
        self.place = found.end()
        return found.group()

    def _bytes(self, place: int) -> int:
        return len(self.source[:place].encode("utf-8", "surrogatepass"))


def parse_html(source: str) -> tuple[str, list[Entity]]:
    return _Parser(source=source + END).parse()


def _place(entity: Entity) -> tuple[int, int]:
    return entity["offset"], entity["length"]


def _character(source: str, place: int) -> tuple[str, int]:
    """Return the character at a place, which may be a reference, and the place behind it."""
    found = REFERENCE.match(source, place)
    if found is None:
        return source[place], place + 1
    hexadecimal, decimal, name = found.groups()
    if name is not None:
        return (CHARACTERS[name], found.end()) if name in CHARACTERS else ("&", place + 1)
    code = int(hexadecimal or "0", 16) if decimal is None else int(decimal or "0")
    length = len(found.group().rstrip(";"))
    if not 0 < code < 0x10FFFF or length > REFERENCE_LENGTH_MAX:
        return "&", place + 1
    return chr(code), found.end()
