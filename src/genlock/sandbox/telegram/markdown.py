"""Text formatting: parse Markdown (the older mode) and MarkdownV2 into entities, with the real server's errors."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from genlock.sandbox.telegram.api_call import ApiError, bad_request

Entity = dict[str, Any]
#: longer marks first
MARKS = {
    "```": "pre",
    "`": "code",
    "||": "spoiler",
    "__": "underline",
    "_": "italic",
    "*": "bold",
    "~": "strikethrough",
}
OLD_MARKS = {"```": "pre", "`": "code", "_": "italic", "*": "bold"}
RESERVED = frozenset("_*[]()~`>#+-=|{}.!")
NAMES = {"pre": "PreCode", "text_link": "TextUrl", "custom_emoji": "CustomEmoji"}
QUOTES = ("blockquote", "expandable_blockquote")
#: the end of a line that does not go on with a quotation
QUOTE_END = re.compile(r"\n(?!>)|\Z")
LANGUAGE = re.compile(r"([^\s`]+)\n|[^\S\n]*\n")


@dataclass(kw_only=True)
class _Open:
    type: str
    mark: str
    offset: int
    start: int
    language: str = ""


@dataclass(kw_only=True)
class _Parser:
    source: str
    marks: dict[str, str]
    #: MarkdownV2: entities may be nested, and reserved characters must be escaped
    strict: bool
    place: int = 0
    text: list[str] = field(default_factory=list)
    offset: int = 0
    opened: list[_Open] = field(default_factory=list)
    entities: list[Entity] = field(default_factory=list)

    def parse(self) -> tuple[str, list[Entity]]:
        while self.place < len(self.source):
            self._step()
        if self.opened and self.opened[-1].type in QUOTES:
            self._close(self.opened.pop())
        if self.opened:
            raise self._unclosed(self.opened[-1])
        return "".join(self.text), sorted(self.entities, key=lambda entity: (entity["offset"], -entity["length"]))

    def _step(self) -> None:
        rest = self.source[self.place : self.place + 3]
        inside = self.opened[-1] if self.opened else None
        if rest[0] == "\\" and self._escapes(rest[1:2]):
            self._add(rest[1], 2)
        elif inside is not None and inside.mark in {"`", "```"}:
            self._close_or_add(inside)
        elif self.strict and self._quote(rest[0]):
            return
        elif inside is not None and inside.mark == "]" and rest[0] == "]":
            self._close_link(self.opened.pop())
        elif rest[0] == "[" or (self.strict and rest.startswith("![")):
            self._open("text_link" if rest[0] == "[" else "custom_emoji", "]", 1 if rest[0] == "[" else 2)
        elif mark := next((mark for mark in self.marks if rest.startswith(mark)), None):
            self._mark(mark)
        elif self.strict and rest[0] in RESERVED:
            raise unparsable(f"Character '{rest[0]}' is reserved and must be escaped with the preceding '\\'")
        else:
            self._add(rest[0], 1)

    def _escapes(self, character: str) -> bool:
        return bool(character) and (character.isascii() if self.strict else character in "_*`[")

    def _close_or_add(self, inside: _Open) -> None:
        if self.source.startswith(inside.mark, self.place):
            self._close(self.opened.pop())
            self.place += len(inside.mark)
        else:
            self._add(self.source[self.place], 1)

    def _quote(self, character: str) -> bool:
        """Begin, continue or end a quotation, which is made of lines that begin with `>`."""
        quoted = any(open_mark.type in QUOTES for open_mark in self.opened)
        at_line_start = self.place == 0 or self.source[self.place - 1] == "\n"
        # `**`, an empty bold text, separates a quotation from the one before it
        if character == ">" and (at_line_start or (not quoted and self._is_line_empty())):
            if quoted:
                self.place += 1
            else:
                self._open("blockquote", "", 1)
            return True
        if at_line_start and self.opened and self.opened[-1].type in QUOTES:
            self._close(self.opened.pop())
        return False

    def _ends_quote(self) -> bool:
        """Whether the mark stands at the end of a quotation, which it makes expandable."""
        inside = self.opened[-1] if self.opened else None
        return inside is not None and inside.type in QUOTES and bool(QUOTE_END.match(self.source, self.place + 2))

    def _is_line_empty(self) -> bool:
        """Whether the line has no text yet, only marks."""
        return not self.opened and (not self.text or self.text[-1] == "\n")

    def _mark(self, mark: str) -> None:
        type_ = self.marks[mark]
        if mark == "||" and self._ends_quote():
            self.opened[-1].type = "expandable_blockquote"
            self.place += len(mark)
        elif self.opened and self.opened[-1].mark == mark:
            self._close(self.opened.pop())
            self.place += len(mark)
        elif any(open_mark.type == type_ for open_mark in self.opened):
            raise self._unclosed(self.opened[-1])
        else:
            self._open(type_, mark, len(mark))

    def _open(self, type_: str, mark: str, length: int) -> None:
        self.opened.append(_Open(type=type_, mark=mark, offset=self.offset, start=self.place))
        self.place += length
        if type_ == "pre" and (found := LANGUAGE.match(self.source, self.place)):
            self.opened[-1].language = found[1] or ""
            self.place = found.end()

    def _close(self, mark: _Open, **more: Any) -> None:
        entity: Entity = {"type": mark.type, "offset": mark.offset, "length": self.offset - mark.offset, **more}
        if mark.language:
            entity["language"] = mark.language
        if entity["length"] > 0:
            self.entities.append(entity)

    def _close_link(self, mark: _Open) -> None:
        self.place += 1
        end = self.source.find(")", self.place) if self.source.startswith("(", self.place) else -1
        if end < 0:
            if not self.strict:
                return
            raise self._unclosed(mark)
        url = self.source[self.place + 1 : end].replace("\\", "")
        self.place = end + 1
        if mark.type == "custom_emoji":
            self._close(mark, custom_emoji_id=parse_qs(urlsplit(url).query).get("id", [""])[0])
        elif "." in url or "://" in url:
            self._close(mark, url=url)

    def _add(self, piece: str, length: int) -> None:
        self.text.append(piece)
        self.offset += len(piece.encode("utf-16-le")) // 2
        self.place += length

    def _unclosed(self, mark: _Open) -> ApiError:
        offset = len(self.source[: mark.start].encode())
        if not self.strict:
            return unparsable(f"Can't find end of the entity starting at byte offset {offset}")
        name = NAMES.get(mark.type, mark.type.capitalize())
        return unparsable(f"Can't find end of {name} entity at byte offset {offset}")


def parse_markdown(source: str, *, strict: bool) -> tuple[str, list[Entity]]:
    """Return the text and its entities; `strict` is MarkdownV2, otherwise the older Markdown."""
    return _Parser(source=source, marks=MARKS if strict else OLD_MARKS, strict=strict).parse()


def unparsable(text: str) -> ApiError:
    return bad_request(f"can't parse entities: {text}")
