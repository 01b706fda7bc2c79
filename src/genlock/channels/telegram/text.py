"""Telegram's rules for texts: lengths in UTF-16 units, its own HTML, limits, inline keyboards."""

import html
import re
from dataclasses import replace

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from genlock.ports import OutgoingMessage

TEXT_MAX = 4096
CAPTION_MAX = 1024
_TAG = re.compile(r"<[^<>]*>")


def length(text: str) -> int:
    """Return the length of a text in UTF-16 units, as Telegram counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, limit: int = TEXT_MAX) -> list[str]:
    """Split a text into pieces within the limit, at a paragraph, a line or a space if there is one."""
    pieces = []
    rest = text.strip()
    while length(rest) > limit:
        piece = cut(rest, limit)
        end = next((at for mark in ("\n\n", "\n", " ") if (at := piece.rfind(mark)) > len(piece) // 2), len(piece))
        pieces.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*pieces, rest] if rest else pieces


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of a text within the limit."""
    end = min(len(text), limit)
    while length(text[:end]) > limit:
        end -= max(1, (length(text[:end]) - limit) // 2)
    return text[:end]


def plain(message: OutgoingMessage, limit: int) -> OutgoingMessage:
    """Return a message whose text Telegram refused without tags and cut to be safe; it keeps its buttons."""
    return replace(message, text=html.escape(cut(without_tags(message.text), limit // 2), quote=False))


def without_links(message: OutgoingMessage) -> OutgoingMessage:
    """Return the message without the buttons that open a URL."""
    rows = (tuple(button for button in row if button.url is None) for row in message.buttons)
    return replace(message, buttons=tuple(row for row in rows if row))


def without_buttons(message: OutgoingMessage) -> OutgoingMessage:
    return replace(message, buttons=())


def fitted(message: OutgoingMessage, limit: int = TEXT_MAX) -> OutgoingMessage:
    """Return the message; one over the limit loses its tags and its end, and keeps its buttons."""
    text = without_tags(message.text)
    if length(text) <= limit:
        return message
    return OutgoingMessage(text=f"{html.escape(cut(text, limit - 1), quote=False)}…", buttons=message.buttons)


def fits_caption(message: OutgoingMessage) -> bool:
    """Whether the text can stand under a file."""
    return length(without_tags(message.text)) <= CAPTION_MAX


def without_tags(text: str) -> str:
    return html.unescape(_TAG.sub("", text))


def keyboard(message: OutgoingMessage) -> InlineKeyboardMarkup | None:
    """Return the buttons of a message. None in an edit removes the buttons that were there."""
    rows = [
        [InlineKeyboardButton(text=button.text, callback_data=button.data, url=button.url) for button in row]
        for row in message.buttons
    ]
    return InlineKeyboardMarkup(rows) if rows else None
