"""Classify Telegram's errors. Only `parameters` are documented, so descriptions are matched by parts, ignoring case.

ChannelError
├── ChannelBusy            429, no connection, a refused token: certainly not done
├── ChannelOutcomeUnknown  a lost or unreadable answer, a 5xx, an edit overtaken by another: may have been done
├── PlaceholderGone        the message to edit does not exist or may not be edited
├── RecipientUnreachable   the user or group cannot be reached
├── GroupMigrated          the group has become a supergroup with another id
├── MessageNotModified     the message already shows exactly this: counts as done
├── MessageHasMedia        a text edit was refused because the message shows a file
├── MessageHasNoMedia      a caption edit was refused because the message is a text
├── AlreadyRefunded        the payment was refunded before: counts as done
├── QueryTooOld            a callback query or a pre-checkout query has expired
└── LevelRefused           Telegram refuses this content: also every 400 that the table does not know
    ├── FileRefused        Telegram does not know this file id, or not as this kind
    └── TextRefused        our text or buttons are invalid: a bug of ours
"""

import re
from collections.abc import Callable, Iterator

from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from genlock.channels.telegram.http import NOT_SENT
from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)


class RateLimited(ChannelBusy):
    """Telegram answered 429; nothing was done."""


class TokenRefused(ChannelBusy):
    """Telegram refuses the bot's token: an operator must correct it; jobs wait until then."""


class GroupMigrated(ChannelError):
    """The group has become a supergroup; nothing was done."""

    def __init__(self, chat: int) -> None:
        super().__init__()
        self.chat = chat


class MessageNotModified(ChannelError):
    """The message already shows exactly this."""


class MessageHasMedia(ChannelError):
    """The message is no longer a text."""


class MessageHasNoMedia(ChannelError):
    """The message is still a text."""


class QueryTooOld(ChannelError):
    """The query has expired."""


class AlreadyRefunded(ChannelError):
    """Telegram has refunded this payment before."""


class FileRefused(LevelRefused):
    """Telegram does not accept the file id."""


class TextRefused(LevelRefused):
    """Telegram does not accept the text or the buttons."""


#: parts of descriptions by meaning; the first row that matches counts
TABLE: tuple[tuple[Callable[[str], ChannelError], tuple[str, ...]], ...] = (
    (MessageNotModified, ("message is not modified",)),
    (ChannelOutcomeUnknown, ("canceled by new edit message request", "cancelled by new edit message request")),
    (MessageHasMedia, ("there is no text in the message to edit",)),
    (MessageHasNoMedia, ("there is no caption in the message to edit",)),
    (AlreadyRefunded, ("already_refunded", "already refunded", "already been refunded")),
    (QueryTooOld, ("query is too old", "query id is invalid", "query_id_invalid")),
    (
        TextRefused,
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
    # Refusals of this content: a URL that cannot be fetched, an image too large, a kind not allowed in this chat.
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
#: seconds to wait when Telegram cannot be reached, and when it refuses the token
UNREACHABLE_SECONDS = 2.0
TOKEN_REFUSED_SECONDS = 60.0
_RETRY = re.compile(r"retry after (\d+)")


def classify_error(error: Exception) -> ChannelError:
    """Return what a failed call means. After an error of unknown meaning the call may have been done."""
    if isinstance(error, ChannelError):
        return error
    if isinstance(error, RetryAfter):
        after = error.retry_after
        return RateLimited(after if isinstance(after, int) else after.total_seconds(), "too many requests")
    if isinstance(error, ChatMigrated):
        return GroupMigrated(error.new_chat_id)
    if isinstance(error, InvalidToken):
        return TokenRefused(TOKEN_REFUSED_SECONDS, "Telegram refuses the bot's token")
    if any(isinstance(cause, NOT_SENT) for cause in _causes(error)):
        return ChannelBusy(UNREACHABLE_SECONDS, "Telegram cannot be reached")
    text = error.message if isinstance(error, TelegramError) else repr(error)
    return _look_up(error, text)


def _look_up(error: Exception, text: str) -> ChannelError:
    folded = text.casefold()
    if "too many requests" in folded:
        found = _RETRY.search(folded)
        return RateLimited(float(found[1]) if found else UNREACHABLE_SECONDS, "too many requests")
    if isinstance(error, BadRequest | Forbidden) or "too large" in folded:
        for meaning, fragments in TABLE:
            if any(fragment in folded for fragment in fragments):
                return meaning(text)
    if isinstance(error, Forbidden):
        return RecipientUnreachable(text)
    if isinstance(error, BadRequest):
        return LevelRefused(text)
    if isinstance(error, Conflict):
        return ChannelBusy(UNREACHABLE_SECONDS, text)
    return ChannelOutcomeUnknown(text)


def is_known_error(error: Exception) -> bool:
    """Whether the table has a row for this error."""
    text = str(error).casefold()
    return any(fragment in text for _, fragments in TABLE for fragment in fragments)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
