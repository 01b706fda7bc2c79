"""A message in Telegram's HTML: checked as Telegram checks it, and shown as Telegram would show it."""

from dataclasses import dataclass

from markupsafe import Markup, escape

from genlock.channels.telegram.cleaning import trimmed
from genlock.channels.telegram.html import HtmlRefused, StartTag, Token, read_html

#: characters of a message after its tags are read, counted in UTF-16 units
TEXT_MAX = 4096
#: how the preview shows each of Telegram's tags
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
    "tg-time": "span",
}
_CLASSES = {"tg-spoiler": "spoiler", "span": "spoiler", "a": "chat-link"}


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
    try:
        tokens = read_html(source)
    except HtmlRefused as refused:
        line = source.count("\n", 0, refused.place) + 1
        raise InvalidMessage(refused.code, detail=refused.detail, line=line) from None
    text = "".join(token for token in tokens if isinstance(token, str))
    length = len(trimmed(text).encode("utf-16-le")) // 2
    if not length:
        raise InvalidMessage("empty")
    if length > TEXT_MAX:
        raise InvalidMessage("long", detail=str(length))
    return ChatMessage(shown=Markup("").join(map(_show, tokens)), text=text, length=length)


def _show(token: Token) -> Markup:
    """Return a piece of the preview. The address of a link is shown on hover; the preview does not lead there."""
    if isinstance(token, str):
        return escape(token)
    if not isinstance(token, StartTag):
        return Markup("</{}>").format(_SHOWN[token.start.name])
    parts = Markup("")
    if token.name in _CLASSES:
        parts += Markup(' class="{}"').format(_CLASSES[token.name])
    if token.name == "a" and token.argument:
        parts += Markup(' title="{}"').format(token.argument)
    return Markup("<{}{}>").format(_SHOWN[token.name], parts)
