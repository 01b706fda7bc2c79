"""Classify Telegram's errors: refusals by the table in `refusals.toml`, answers of a proxy by their HTTP status.

ChannelError
├── ChannelBusy            429, no connection, a passing failure: certainly not done
│   ├── TokenRefused       an operator must correct the token
│   └── BotFrozen          Telegram refuses everything this bot does: an operator must act
├── ChannelOutcomeUnknown  a lost or unreadable answer, a 5xx, an edit overtaken by another: may have been done
├── PlaceholderGone        the message to edit does not exist or may not be edited
├── RecipientUnreachable   the user, the group or the topic cannot be reached
├── GroupMigrated          the group has become a supergroup with another id
├── MessageNotModified     the message already shows exactly this: counts as done
├── MessageHasMedia        a text edit was refused because the message shows a file
├── MessageHasNoMedia      a caption edit was refused because the message is a text
├── AlreadyRefunded        the payment was refunded before: counts as done
├── QueryTooOld            a callback query or a pre-checkout query has expired
└── LevelRefused           Telegram refuses this content: also every 400 that the table does not know
    ├── FileRefused        Telegram does not know this file id, or not as this kind
    ├── TextRefused        our text is invalid or too long: show it plain or shorter
    │   └── ButtonsRefused our buttons are invalid: show the same without them
    └── CallInvalid        our call is wrong: a bug of ours
"""

import re
from collections.abc import Callable, Iterator, Mapping

from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError

from genlock.channels.telegram.http import NOT_SENT, ForeignAnswer
from genlock.channels.telegram.refusals import Meaning, meaning_of
from genlock.domain.errors import (
    ChannelBusy,
    ChannelError,
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)
from genlock.ports.call_fence import CallFenced


class RateLimited(ChannelBusy):
    """Telegram answered 429; nothing was done."""


class TokenRefused(ChannelBusy):
    """Telegram refuses the bot's token: an operator must correct it; jobs wait until then."""


class BotFrozen(ChannelBusy):
    """Telegram has frozen the bot or closed its session: an operator must act; jobs wait until then."""


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
    """Telegram does not accept the text."""


class ButtonsRefused(TextRefused):
    """Telegram does not accept the buttons."""


class CallInvalid(LevelRefused):
    """Telegram does not understand the call."""


def _token_refused(text: str) -> ChannelError:
    return TokenRefused(TOKEN_REFUSED_SECONDS, text)


def _frozen(text: str) -> ChannelError:
    return BotFrozen(BOT_FROZEN_SECONDS, text)


def _passing(text: str) -> ChannelError:
    return ChannelBusy(PASSING_FAILURE_SECONDS, text, failed=True)


def _conflict(text: str) -> ChannelError:
    return ChannelBusy(UNREACHABLE_SECONDS, text)


def _rate_limited(text: str) -> ChannelError:
    found = _RETRY.search(text.casefold())
    return RateLimited(float(found[1]) if found else UNREACHABLE_SECONDS, "too many requests")


_ERRORS: Mapping[Meaning, Callable[[str], ChannelError]] = {
    Meaning.NOT_MODIFIED: MessageNotModified,
    Meaning.OUTCOME_UNKNOWN: ChannelOutcomeUnknown,
    Meaning.HAS_MEDIA: MessageHasMedia,
    Meaning.HAS_NO_MEDIA: MessageHasNoMedia,
    Meaning.ALREADY_REFUNDED: AlreadyRefunded,
    Meaning.QUERY_TOO_OLD: QueryTooOld,
    Meaning.TOKEN_REFUSED: _token_refused,
    Meaning.BOT_FROZEN: _frozen,
    Meaning.RETRY: _passing,
    Meaning.FILE_REFUSED: FileRefused,
    Meaning.BUTTONS_REFUSED: ButtonsRefused,
    Meaning.TEXT_REFUSED: TextRefused,
    Meaning.PLACEHOLDER_GONE: PlaceholderGone,
    Meaning.TOPIC_GONE: RecipientUnreachable,
    Meaning.RECIPIENT_UNREACHABLE: RecipientUnreachable,
    Meaning.LEVEL_REFUSED: LevelRefused,
    Meaning.CALL_INVALID: CallInvalid,
}
#: what a refusal means whose text the table does not know
_BY_CODE: Mapping[type[TelegramError], Callable[[str], ChannelError]] = {
    Forbidden: RecipientUnreachable,  # the code alone says that the bot may not write there
    BadRequest: LevelRefused,
    Conflict: _conflict,
}
#: what an answer that is not the Bot API's means, by its HTTP status. A proxy that answers 4xx has not passed the call
#: on, except after a time limit; any other status leaves open what was done.
_FOREIGN: Mapping[int, Callable[[str], ChannelError]] = {
    **dict.fromkeys(range(400, 500), _passing),
    400: LevelRefused,  # the Bot API's HTTP server cannot read the request, for example the name of its file
    401: _token_refused,
    404: _token_refused,
    408: ChannelOutcomeUnknown,
    413: LevelRefused,
    429: _rate_limited,
    499: ChannelOutcomeUnknown,
}
#: seconds to wait when Telegram cannot be reached, after a passing failure, and when it refuses the token or the bot
UNREACHABLE_SECONDS = 2.0
PASSING_FAILURE_SECONDS = 5.0
TOKEN_REFUSED_SECONDS = 60.0
BOT_FROZEN_SECONDS = 60.0
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
    if (not_sent := _not_sent(error)) is not None:
        return not_sent
    return _look_up(error) if isinstance(error, TelegramError) else ChannelOutcomeUnknown(repr(error))


def _not_sent(error: Exception) -> ChannelBusy | None:
    """Return why nothing was sent; None if something may have been."""
    for cause in _causes(error):
        if isinstance(cause, CallFenced):
            return cause
        if isinstance(cause, NOT_SENT):
            return ChannelBusy(UNREACHABLE_SECONDS, "Telegram cannot be reached")
    return None


def _look_up(error: TelegramError) -> ChannelError:
    """Return what an answer means: by who gave it, by its text, and if the text is not known by its code."""
    text = error.message
    if isinstance(error, ForeignAnswer):
        return _FOREIGN.get(error.status, ChannelOutcomeUnknown)(text)
    if isinstance(error, InvalidToken) and "method not found" not in text.casefold():
        return _token_refused("Telegram refuses the bot's token")
    if text.casefold().startswith("too many requests"):
        return _rate_limited(text)
    if (meaning := meaning_of(text)) is not None:
        return _ERRORS[meaning](text)
    return next((make(text) for kind, make in _BY_CODE.items() if isinstance(error, kind)), ChannelOutcomeUnknown(text))


def is_known_error(error: Exception) -> bool:
    """Whether the table of refusals has a row for this error."""
    return meaning_of(str(error)) is not None


def is_bug_or_unknown(error: LevelRefused | RecipientUnreachable) -> bool:
    """Whether an operator should see a refusal: our call is wrong, or the table does not know the text."""
    return isinstance(error, CallInvalid) or not is_known_error(error)


def is_topic_gone(error: RecipientUnreachable) -> bool:
    """Whether only the topic does not exist any more, while the chat may still be reached."""
    return meaning_of(error.reason) is Meaning.TOPIC_GONE


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
