"""Reads a message: whether it is addressed to the bot, its command, and its text without the mention."""

from dataclasses import dataclass, replace

from telegram import Message
from telegram.constants import ChatType, MessageEntityType

from genlock.bot.context import is_own


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingText:
    """A message addressed to the bot, without the mention of the bot."""

    command: str = ""
    text: str = ""
    #: a command that the user did not write: it is not carried out
    borrowed_command: bool = False


def start_payload(message: Message) -> str:
    """Return the payload of /start; empty if there is none, or if the sender did not write it."""
    if not is_own(message):
        return ""
    command, _, rest = (message.text or "").partition(" ")
    return rest.strip() if command.partition("@")[0] == "/start" else ""


def read_message(message: Message, username: str) -> IncomingText | None:
    """Read a message; None if it is not addressed to the bot or has no content."""
    if not _has_content(message) or message.sender_chat is not None:
        return None
    private = message.chat.type == ChatType.PRIVATE
    if _is_shared_by(username, message):
        return IncomingText() if private else None  # its caption is ours, not the user's
    text = message.text or message.caption or ""
    command, name, rest = _command(message)
    if name and name != username:
        return None
    said = IncomingText(command=command, text=rest if command else text)
    incoming = said if private else _read_in_group(message, said, username, text)
    if incoming is None or is_own(message) or not (incoming.command or incoming.text.startswith("/")):
        return incoming
    return IncomingText(text=text, borrowed_command=True) if private else None


def _read_in_group(message: Message, said: IncomingText, username: str, text: str) -> IncomingText | None:
    """Return a message of a group without the mention of the bot; None if it is not addressed to the bot."""
    mention = f"@{username}"
    answered = message.reply_to_message is not None and _is_of(username, message.reply_to_message)
    if not said.command and mention not in text.lower() and not answered:
        return None
    position = said.text.lower().find(mention)
    if position < 0:
        return said
    without = f"{said.text[:position].rstrip()} {said.text[position + len(mention) :].lstrip()}".strip()
    return replace(said, text=without)


def _is_shared_by(username: str, message: Message) -> bool:
    """Whether the message is a result that the user shared by the inline mode of the bot."""
    return message.via_bot is not None and (message.via_bot.username or "").lower() == username


def _is_of(username: str, message: Message) -> bool:
    return message.from_user is not None and (message.from_user.username or "").lower() == username


def admin_line(message: Message, incoming: IncomingText) -> str | None:
    """Return the line after /admin, also in a caption that the sender wrote; None for other messages."""
    if incoming.command == "admin":
        return incoming.text
    first, _, rest = (message.caption or "").partition(" ")
    return rest if first == "/admin" and is_own(message) else None


def _has_content(message: Message) -> bool:
    """Whether the message has content; service messages such as joins and pins have none."""
    content = (
        message.text, message.caption, message.photo, message.live_photo, message.video, message.animation,
        message.audio, message.voice, message.document, message.video_note, message.sticker, message.contact,
        message.location, message.poll, message.dice, message.venue, message.game, message.story, message.paid_media,
        message.checklist, message.invoice, message.giveaway, message.giveaway_winners, message.successful_payment,
    )  # fmt: skip
    return any(content)


def _command(message: Message) -> tuple[str, str, str]:
    """Return the command, the bot it names (empty if none), and the rest of the line."""
    text = message.text or ""
    entities = message.entities or ()
    if not any(entity.type == MessageEntityType.BOT_COMMAND and entity.offset == 0 for entity in entities):
        return "", "", text
    first, _, rest = text.partition(" ")
    if "\n" in first:
        first, _, more = first.partition("\n")
        rest = f"{more} {rest}".strip()
    command, _, name = first.removeprefix("/").partition("@")
    return command.lower(), name.lower(), rest.strip()
