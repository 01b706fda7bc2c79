"""Text formatting: parse MarkdownV2 into entities, with the real server's errors. The older mode: `old_markdown.py`."""

import re
from dataclasses import dataclass, field
from typing import Any

from genlock.channels.telegram.html import is_emoji_id
from genlock.sandbox.telegram.api_call import ApiError
from genlock.sandbox.telegram.detection import utf16
from genlock.sandbox.telegram.formats import Entity, date_time, in_order, link, unparsable
from genlock.sandbox.telegram.links import own_query

#: longer marks first
MARKS = {
    "```": "pre",
    "||": "spoiler",
    "__": "underline",
    "![": "custom_emoji",
    "`": "code",
    "_": "italic",
    "*": "bold",
    "~": "strikethrough",
    "[": "text_link",
}
RESERVED = frozenset("_*[]()~`>#+-=|{}.!\n")
#: the server's names where they are not those of the Bot API with a capital
NAMES = {"pre": "Pre", "text_link": "TextUrl", "custom_emoji": "CustomEmoji", "blockquote": "BlockQuote"}
#: the name of the language behind the mark of a code block
LANGUAGE = re.compile(r"([^ \t\r\n\0\v`]+)(?=[^`])")
#: one end of a line directly behind it is not shown
LINE_END = re.compile(r"\r\n|\n\r|\n|\r")
UNIX_TIME = re.compile(r"[1-9][0-9]{0,9}")
ESCAPED = re.compile(r"\\([\x01-\x7e])")
URL = re.compile(r"((?:\\[\x01-\x7e]|\\(?![\x01-\x7e])|[^)\\])*)\)")


@dataclass(kw_only=True)
class _Open:
    type: str
    mark: str
    offset: int
    #: where its mark begins, and how many pieces of text came before it
    start: int
    pieces: int
    language: str = ""


@dataclass(kw_only=True)
class _Parser:
    source: str
    place: int = 0
    text: list[str] = field(default_factory=list)
    offset: int = 0
    opened: list[_Open] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)
    #: whether a `>` here begins or continues a quotation
    line_begins: bool = True

    def parse(self) -> tuple[str, list[Entity]]:
        while self.place < len(self.source):
            self._step()
        if self._quoted():
            self._end_quote(len(self.source))
        if self.opened:
            raise self._unclosed()
        return "".join(self.text), in_order(self.entities)

    def _step(self) -> None:
        character = self.source[self.place]
        inside = self.opened[-1] if self.opened else None
        reserved = {"`"} if inside is not None and inside.mark in {"`", "```"} else RESERVED
        if escaped := ESCAPED.match(self.source, self.place):
            self._add(escaped[1], 2)
        elif character not in reserved:
            self._add(character, 1)
        elif character == "\n":
            self._end_line()
        elif inside is not None and self._closes(inside):
            self._close(self.opened.pop())
        elif character == ">" and self.line_begins:
            self._begin_quote()
        else:
            self._begin()

    def _add(self, character: str, length: int) -> None:
        self.text.append(character)
        self.offset += utf16(character)
        self.place += length
        if character != "\r":
            self.line_begins = character == "\n"

    def _closes(self, mark: _Open) -> bool:
        closing = {"[": "]", "![": "]"}.get(mark.mark, mark.mark)
        if not closing or not self.source.startswith(closing, self.place):
            return False
        return mark.mark != "_" or not self.source.startswith("__", self.place)

    def _begin(self) -> None:
        mark = next((mark for mark in MARKS if self.source.startswith(mark, self.place)), None)
        if mark is None:
            character = self.source[self.place]
            raise unparsable(f"Character '{character}' is reserved and must be escaped with the preceding '\\'")
        self._open(MARKS[mark], mark)
        if mark == "```":
            if found := LANGUAGE.match(self.source, self.place):
                self.opened[-1].language = found[1]
                self.place = found.end()
            if line_end := LINE_END.match(self.source, self.place):
                self.place = line_end.end()

    def _open(self, type_: str, mark: str) -> None:
        self.opened.append(_Open(type=type_, mark=mark, offset=self.offset, start=self.place, pieces=len(self.text)))
        self.place += len(mark)

    def _quoted(self) -> bool:
        return any(mark.type == "blockquote" for mark in self.opened)

    def _begin_quote(self) -> None:
        if not self._quoted():
            self._open("blockquote", "")
        self.place += 1

    def _end_line(self) -> None:
        """Add the end of a line. It ends a quotation, too, unless the next line is quoted."""
        ends = self._quoted() and not self.source.startswith(">", self.place + 1)
        place = self.place
        self._add("\n", 1)
        if ends:
            self._end_quote(place)

    def _end_quote(self, place: int) -> None:
        """End the quotation. Two bars before its end make it expandable: they look like the begin of a spoiler."""
        last = self.opened[-1]
        between = self.source[last.start + 2 : place]
        is_expandable = last.type == "spoiler" and between in ({"", "\r"} if place < len(self.source) else {""})
        if is_expandable:
            self.opened.pop()
        if self.opened[-1].type != "blockquote":
            raise self._unclosed()
        mark = self.opened.pop()
        if is_expandable:
            mark.type = "expandable_blockquote"
        self._add_entity(mark, {})

    def _close(self, mark: _Open) -> None:
        self.place += 1 if mark.mark in {"[", "!["} else len(mark.mark)
        more: dict[str, Any] | None = {"language": mark.language} if mark.language else {}
        if mark.type == "text_link":
            has_url = self.source.startswith("(", self.place)
            more = link(self._read_url() if has_url else "".join(self.text[mark.pieces :]))
        elif mark.type == "custom_emoji":
            if not self.source.startswith("(", self.place):
                raise unparsable("The entity must contain a tg://emoji or tg://time URL")
            more = _emoji_or_time(self._read_url())
        if more is not None:
            self._add_entity(mark, more)

    def _read_url(self) -> str:
        found = URL.match(self.source, self.place + 1)
        if found is None:
            raise unparsable(f"Can't find end of a URL at byte offset {self._bytes(self.place + 1)}")
        self.place = found.end()
        return ESCAPED.sub(r"\1", found[1])

    def _add_entity(self, mark: _Open, more: dict[str, Any]) -> None:
        if self.offset > mark.offset:
            self.entities.append({"type": mark.type, "offset": mark.offset, "length": self.offset - mark.offset} | more)

    def _unclosed(self) -> ApiError:
        mark = self.opened[-1]
        name = "PreCode" if mark.language else NAMES.get(mark.type, mark.type.capitalize())
        return unparsable(f"Can't find end of {name} entity at byte offset {self._bytes(mark.start)}")

    def _bytes(self, place: int) -> int:
        return len(self.source[:place].encode())


def parse_markdown(source: str) -> tuple[str, list[Entity]]:
    return _Parser(source=source).parse()


def _emoji_or_time(url: str) -> dict[str, Any]:
    """Return the fields of a custom emoji or of a date, by the link that stands for it."""
    emoji = own_query(url, "emoji") or {}
    if is_emoji_id(emoji.get("id", "")):
        return {"custom_emoji_id": emoji["id"]}
    time = own_query(url, "time") or {}
    found = UNIX_TIME.fullmatch(time.get("unix", ""))
    date = date_time(int(found.group()), time.get("format", "")) if found and int(found.group()) < 2**31 else None
    if date is None:
        raise unparsable("Invalid tg://emoji or tg://time URL specified")
    return {"type": "date_time"} | date
