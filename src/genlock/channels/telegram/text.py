"""Texts as Telegram counts and takes them: UTF-16 units, HTML of its own, limits."""

import html
import re

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from genlock.channels.telegram.messages import OutgoingMessage

TEXT_MAX = 4096
CAPTION_MAX = 1024
_TAG = re.compile(r"<[^<>]*>")


def length(text: str) -> int:
    """How long Telegram takes a text to be."""
    return len(text) + sum(character > "\uffff" for character in text)


def split(text: str, limit: int = TEXT_MAX) -> list[str]:
    """The text in pieces that fit a message each, broken at a paragraph, a line or a space where there is one."""
    pieces = []
    rest = text.strip()
    while length(rest) > limit:
        piece = cut(rest, limit)
        end = next((at for mark in ("\n\n", "\n", " ") if (at := piece.rfind(mark)) > len(piece) // 2), len(piece))
        pieces.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*pieces, rest] if rest else pieces


def cut(text: str, limit: int) -> str:
    """As much of the text's beginning as fits."""
    end = min(len(text), limit)
    while length(text[:end]) > limit:
        end -= max(1, (length(text[:end]) - limit) // 2)
    return text[:end]


def plain(said: OutgoingMessage, limit: int) -> OutgoingMessage:
    """The bare words of what Telegram would not take as it was: no tags, no buttons, not too long."""
    return OutgoingMessage(text=html.escape(cut(html.unescape(_TAG.sub("", said.text)), limit // 2), quote=False))


def fitted(said: OutgoingMessage, limit: int = TEXT_MAX) -> OutgoingMessage:
    """The same; what is too long for a message loses its looks and its end, and keeps its buttons."""
    words = html.unescape(_TAG.sub("", said.text))
    if length(words) <= limit:
        return said
    return OutgoingMessage(text=f"{html.escape(cut(words, limit - 1), quote=False)}…", buttons=said.buttons)


def keyboard(said: OutgoingMessage) -> InlineKeyboardMarkup | None:
    """The buttons under a message. None takes those away that were there."""
    rows = [
        [InlineKeyboardButton(text=button.text, callback_data=button.data, url=button.url) for button in row]
        for row in said.buttons
    ]
    return InlineKeyboardMarkup(rows) if rows else None
