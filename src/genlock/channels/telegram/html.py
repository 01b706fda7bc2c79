"""Telegram's HTML, read as the Bot API server reads it: the same tags, attributes, references and refusals.

The dashboard checks and shows messages with it before they are sent. The simulated Telegram makes its entities with it,
so the two cannot disagree about what is refused.
"""

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

#: the tags, and what Telegram calls the formatting of each
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
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
#: a reference to a character; its semicolon may be missing
_REFERENCE = re.compile(r"&(?:#x([0-9a-fA-F]*)|#([0-9]*)|([A-Za-z]*));?")
_REFERENCE_LENGTH_MAX = 9
_CODE_END = 0x10FFFF  # the server leaves out the last code point too
_SPACE = " \t\r\n\0\v"
_END = "\0"  # stands after the source, as in the server
_TAG_NAME = re.compile(rf"[^{_SPACE}>]*")
_SPACES = re.compile(rf"(?:(?!\0)[{_SPACE}])*")
_ATTRIBUTE_NAME = re.compile(rf"""[^{_SPACE}=>/"']*""")
_NAME_TOKEN = re.compile(r"[A-Za-z0-9.-]*")
#: a number as the server reads it: without leading zeros
_NUMBER = re.compile(r"-?[1-9][0-9]{0,18}")
_NUMBER_MAX = 2**63 - 1
DATE_FORMAT = re.compile(r"[rR]|[tTdDwW]*")
_DATE_RANGE = 2**32
_SURROGATES = re.compile("[\ud800-\udfff]")
_SURROGATE_WORDS = (
    "Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate code units"
)


class HtmlRefused(Exception):
    """Telegram refuses the message. `code` says why, `detail` names the tag, and `place` is where it is in the source.

    The text is Telegram's own.
    """

    def __init__(self, code: str, words: str, *, place: int, detail: str = "") -> None:
        super().__init__(words)
        self.code = code
        self.detail = detail
        self.place = place


@dataclass(frozen=True, kw_only=True, slots=True)
class StartTag:
    name: str
    #: its one attribute that Telegram reads: the address of a link, the language of code, the id of an emoji, the
    #: format of a date; "1" for a block quote that can be expanded
    argument: str = ""
    #: Unix time of `tg-time`; 0 if there is none
    date: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EndTag:
    start: StartTag


Token = str | StartTag | EndTag


def read_html(source: str) -> list[Token]:
    """Return the characters and tags of a message, in order. Raises HtmlRefused."""
    return _Reader(source=source + _END).read()


class _OpenTag(NamedTuple):
    start: StartTag
    place: int
    #: how many characters came before it
    characters: int


@dataclass(kw_only=True)
class _Reader:
    source: str
    place: int = 0
    tokens: list[Token] = field(default_factory=list)
    opened: list[_OpenTag] = field(default_factory=list)
    characters: int = 0
    #: where the first half of a surrogate pair is
    surrogate_place: int | None = None

    def read(self) -> list[Token]:
        while self.place < len(self.source) - 1:
            if self.source[self.place] != "<":
                self._read_character()
            elif self.source[self.place + 1] == "/":
                self._read_end_tag()
            else:
                self._read_start_tag()
        if self.opened:
            last = self.opened[-1]
            words = f'Can\'t find end tag corresponding to start tag "{last.start.name}"'
            raise HtmlRefused("no_end", words, place=last.place, detail=last.start.name)
        if self.surrogate_place is not None:
            raise HtmlRefused("surrogate", _SURROGATE_WORDS, place=self.surrogate_place)
        return self.tokens

    def _read_character(self) -> None:
        begin = self.place
        piece, self.place = _character(self.source, begin)
        if self.surrogate_place is None and _SURROGATES.match(piece):
            self.surrogate_place = begin
        self.characters += 1
        self.tokens.append(piece)

    def _read_start_tag(self) -> None:
        begin = self.place
        name = self._take(_TAG_NAME, begin + 1)
        if self.source[self.place] == _END:
            raise self._refused("unclosed", "Unclosed start tag", begin, detail=self.source[begin:-1])
        tag = _lower(name)
        if tag not in TAGS:
            code, detail = ("unknown_tag", tag) if ">" in self.source[begin:] else ("unclosed", self.source[begin:-1])
            raise self._refused(code, f'Unsupported start tag "{tag}"', begin, detail=detail)
        start = StartTag(name=tag)
        while self.source[self.place] != ">":
            self._take(_SPACES, self.place)
            if self.source[self.place] != ">":
                start = _with_attribute(start, *self._read_attribute(tag, begin))
        self.place += 1
        if tag == "span" and start.argument != "spoiler":
            raise self._refused("span", 'Tag "span" must have class "tg-spoiler"', begin, detail=tag)
        self.opened.append(_OpenTag(start, begin, self.characters))
        self.tokens.append(start)

    def _read_attribute(self, tag: str, begin: int) -> tuple[str, str | None]:
        """Return the name and the value of an attribute; None for one without a value."""
        name = self._take(_ATTRIBUTE_NAME, self.place)
        if not name:
            raise self._refused("attribute", f'Empty attribute name in the tag "{tag}"', begin, detail=tag)
        self._take(_SPACES, self.place)
        has_value = self.source[self.place] == "="
        if has_value:
            self._take(_SPACES, self.place + 1)
        if self.source[self.place] == _END:
            raise self._refused("unclosed", f'Unclosed start tag "{tag}"', begin, detail=self.source[begin:-1])
        value = self._read_value() if has_value else None
        if self.source[self.place] == _END:
            raise self._refused("unclosed", "Unclosed start tag", begin, detail=self.source[begin:-1])
        return name, value

    def _read_value(self) -> str:
        quote = self.source[self.place]
        if quote not in "'\"":
            begin = self.place
            token = self._take(_NAME_TOKEN, begin)
            if self.source[self.place] not in f"{_SPACE}>":
                raise self._refused("value", "Unexpected end of name token", begin, detail=self.source[begin:-1])
            return token.lower()
        value: list[str] = []
        self.place += 1
        while self.source[self.place] not in {quote, _END}:
            piece, self.place = _character(self.source, self.place)
            value.append(piece)
        self.place += self.source[self.place] == quote
        return "".join(value)

    def _read_end_tag(self) -> None:
        begin = self.place
        found = _lower(self._take(_TAG_NAME, begin + 2))
        if not self.opened:
            raise self._refused("unexpected_end", "Unexpected end tag", begin, detail=found)
        self._take(_SPACES, self.place)
        if self.source[self.place] != ">":
            raise self._refused("unclosed", "Unclosed end tag", begin, detail=self.source[begin:-1])
        self.place += 1
        start, place, before = self.opened.pop()
        if found not in {"", start.name}:
            words = (
                f'Unmatched end tag at byte offset {self._bytes(begin)}, expected "</{start.name}>", found "</{found}>"'
            )
            raise HtmlRefused("other_end", words, place=begin, detail=f"</{found[:20]}>, </{start.name}>")
        if self.characters > before:
            _check_argument(start, place)
        self.tokens.append(EndTag(start=start))

    def _take(self, pattern: re.Pattern[str], begin: int) -> str:
        """Go on behind what matches at a place, and return it."""
        found = pattern.match(self.source, begin)
        assert found is not None
        self.place = found.end()
        return found.group()

    def _refused(self, code: str, words: str, begin: int, *, detail: str) -> HtmlRefused:
        return HtmlRefused(code, f"{words} at byte offset {self._bytes(begin)}", place=begin, detail=detail[:20])

    def _bytes(self, place: int) -> int:
        return len(self.source[:place].encode("utf-8", "surrogatepass"))


def _with_attribute(start: StartTag, name: str, value: str | None) -> StartTag:
    """Return the tag with the attribute if Telegram reads it; of several, the last one counts."""
    match start.name, name, value:
        case ("a", "href", str(given)) | ("tg-emoji", "emoji-id", str(given)) | ("tg-time", "format", str(given)):
            return replace(start, argument=given)
        case "code", "class", str(given) if given.startswith("language-"):
            return replace(start, argument=given.removeprefix("language-"))
        case "span", "class", str(given) if given.startswith("tg-"):
            return replace(start, argument=given.removeprefix("tg-"))
        case "blockquote", "expandable", _:
            return replace(start, argument="1")
        case "tg-time", "unix", str(given):
            return replace(start, date=_date(given))
        case _:
            return start


def _check_argument(start: StartTag, place: int) -> None:
    """Check what Telegram checks at the end of a tag, and only of one with text in it. Raises HtmlRefused."""
    if start.name == "tg-emoji" and not is_emoji_id(start.argument):
        raise HtmlRefused("emoji", "Invalid custom emoji identifier specified", place=place, detail=start.argument[:20])
    if start.name == "tg-time" and not DATE_FORMAT.fullmatch(start.argument):
        raise HtmlRefused("date", "Invalid date format used", place=place, detail=start.argument[:20])
    if _SURROGATES.search(start.argument):
        raise HtmlRefused("surrogate", "Strings must be encoded in UTF-8", place=place)


def is_emoji_id(text: str) -> bool:
    """Whether a text is a number of 64 bits in the server's form, and not 0."""
    return bool(_NUMBER.fullmatch(text)) and -_NUMBER_MAX - 1 <= int(text) <= _NUMBER_MAX


def _lower(name: str) -> str:
    """Return a name with small letters a to z, as the server compares it; other letters stay."""
    return name.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")


def _date(text: str) -> int:
    """Return the Unix time of a text as the server reads it: its first digits, cut to 32 bits."""
    found = re.match(r"(-?)([0-9]*)", text)
    assert found is not None
    # A power of 2 divides a power of 10 with as many zeros, so the last 32 digits decide.
    number = int(found.group(2)[-32:] or "0") * (-1 if found.group(1) else 1) % _DATE_RANGE
    return number if number < _DATE_RANGE // 2 else number - _DATE_RANGE


def _character(source: str, place: int) -> tuple[str, int]:
    """Return the character at a place, which may be a reference, and the place behind it."""
    found = _REFERENCE.match(source, place)
    if found is None:
        return source[place], place + 1
    hexadecimal, decimal, name = found.groups()
    if name is not None:
        return (_CHARACTERS[name], found.end()) if name in _CHARACTERS else ("&", place + 1)
    if len(found.group().rstrip(";")) > _REFERENCE_LENGTH_MAX:
        return "&", place + 1
    code = int(hexadecimal or "0", 16) if decimal is None else int(decimal or "0")
    return (chr(code), found.end()) if 0 < code < _CODE_END else ("&", place + 1)
