"""What Telegram's refusals mean. Only `parameters` are promised; texts are matched in pieces, whatever their case.

ChannelError
├── ChannelBusy            429, no connection, a refused token: provably not done
├── ChannelOutcomeUnknown         a lost or unreadable answer, a 5xx, an edit overtaken by another: may have been done
├── PlaceholderGone        there is no message to edit, or not one that may be edited
├── RecipientUnreachable             nobody can be reached there
├── Migrated               the group is a supergroup now, under another id
├── Unchanged              the message shows exactly this already: as good as done
├── HasMedia               a text was to be edited, and the message is a picture by now
├── HasNoMedia             a caption was to be edited, and the message is still a text
├── AlreadyRefunded        the payment was refunded before: as good as done
├── QueryTooOld            a press or a payment that nobody waits for any more
└── LevelRefused           this content is not taken: anything else, and every 400 that is not in the table
    ├── FileRefused        Telegram does not know this file id, or not as this kind
    └── WordsRefused       our own text or buttons are wrong: a bug of ours
"""

import re
from collections.abc import Callable, Iterator

import httpx
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)


class Flooded(ChannelBusy):
    """Telegram asks to stop for a while; nothing was done."""


class TokenRefused(ChannelBusy):
    """Telegram does not know this bot: an operator must look, the work is kept."""


class Migrated(ChannelError):
    """The group has become a supergroup; nothing was done."""

    def __init__(self, chat: int) -> None:
        super().__init__()
        self.chat = chat


class Unchanged(ChannelError):
    """The message shows exactly this already."""


class HasMedia(ChannelError):
    """The message is not a text any more."""


class HasNoMedia(ChannelError):
    """The message is still a text."""


class QueryTooOld(ChannelError):
    """Nobody waits for this answer any more."""


class AlreadyRefunded(ChannelError):
    """Telegram has refunded this payment before."""


class FileRefused(LevelRefused):
    """The file id does not work."""


class WordsRefused(LevelRefused):
    """The text or the buttons are not taken."""


#: Which pieces of a description mean what; the first row that matches counts.
TABLE: tuple[tuple[Callable[[str], ChannelError], tuple[str, ...]], ...] = (
    (Unchanged, ("message is not modified",)),
    (ChannelOutcomeUnknown, ("canceled by new edit message request", "cancelled by new edit message request")),
    (HasMedia, ("there is no text in the message to edit",)),
    (HasNoMedia, ("there is no caption in the message to edit",)),
    (AlreadyRefunded, ("charge_already_refunded",)),
    (QueryTooOld, ("query is too old", "query id is invalid", "query_id_invalid")),
    (
        WordsRefused,
        (
            "message to be replied not found",
            "reply message not found",
            "replied message not found",
            "caption is too long",
            "message is too long",
            "message_too_long",
            "message text is empty",
            "text must be non-empty",
            "can't parse entities",
            "entity_",
            "button_",
            "reply markup is too long",
            "reply_markup_too_long",
            "can't parse inline keyboard",
            "can't parse reply keyboard",
        ),
    ),
    (
        PlaceholderGone,
        (
            "message to edit not found",
            "message_id_invalid",
            "message was deleted",
            "message not found",
            "message can't be edited",
            "message media can't be edited",
            "message_edit_time_expired",
        ),
    ),
    (FileRefused, ("wrong remote file identifier", "can't use file of type", "file_reference_", "file_id_invalid")),
    (
        RecipientUnreachable,
        (
            "chat_write_forbidden",
            "have no rights to send a message",
            "user_banned_in_channel",
            "topic_closed",
            "topic_deleted",
            "message thread not found",
            "chat not found",
            "user not found",
            "peer_id_invalid",
            "chat_restricted",
            "user_is_blocked",
            "user_is_bot",
            "input_user_deactivated",
            "channel_private",
            "the group chat was deleted",
            "bot was blocked",
            "bot was kicked",
            "bot is not a member",
            "user is deactivated",
            "can't initiate conversation",
            "can't send messages to",
        ),
    ),
    # The rest is about this content: an address that cannot be fetched, a picture too large, a kind not allowed here.
    (
        LevelRefused,
        (
            "failed to get http url content",
            "wrong type of the web page content",
            "wrong http url specified",
            "wrong file identifier/http url specified",
            "invalid file http url specified",
            "can't upload file by url",
            "webpage_",
            "external_url_invalid",
            "photo_",
            "dimensions of the photo",
            "of the photo is too big",
            "photo has unsupported extension",
            "image_process_failed",
            "video_",
            "media_",
            "document_invalid",
            "file of size",
            "file is too big",
            "request entity too large",
            "payload too large",
            "file must be non-empty",
            "not enough rights to send",
            "chat_send_",
        ),
    ),
)
#: Of these the request surely did not leave us.
NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
#: How long to leave Telegram alone when it could not be reached, and when it does not know us.
UNREACHABLE_SECONDS = 2.0
STRANGER_SECONDS = 60.0
_RETRY = re.compile(r"retry after (\d+)")


def sort(error: Exception) -> ChannelError:
    """What a failed call means. Whatever is not understood may have been done."""
    if isinstance(error, ChannelError):
        return error
    if isinstance(error, RetryAfter):
        after = error.retry_after
        return Flooded(after if isinstance(after, int) else after.total_seconds(), "too many requests")
    if isinstance(error, ChatMigrated):
        return Migrated(error.new_chat_id)
    if isinstance(error, InvalidToken):
        return TokenRefused(STRANGER_SECONDS, "Telegram refuses the bot's token")
    if any(isinstance(cause, NOT_SENT) for cause in _causes(error)):
        return ChannelBusy(UNREACHABLE_SECONDS, "Telegram cannot be reached")
    text = error.message if isinstance(error, TelegramError) else repr(error)
    return _look_up(error, text)


def _look_up(error: Exception, text: str) -> ChannelError:
    folded = text.casefold()
    if "too many requests" in folded:
        found = _RETRY.search(folded)
        return Flooded(float(found[1]) if found else UNREACHABLE_SECONDS, "too many requests")
    if isinstance(error, BadRequest | Forbidden) or "too large" in folded:
        for meaning, pieces in TABLE:
            if any(piece in folded for piece in pieces):
                return meaning(text)
    if isinstance(error, Forbidden):
        return RecipientUnreachable(text)
    if isinstance(error, BadRequest):
        return LevelRefused(text)
    if isinstance(error, Conflict):
        return ChannelBusy(UNREACHABLE_SECONDS, text)
    return ChannelOutcomeUnknown(text)


def known(error: Exception) -> bool:
    """Whether the table has a row for this refusal."""
    text = str(error).casefold()
    return any(piece in text for _, pieces in TABLE for piece in pieces)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
