"""Telegram's errors are classified; some failures prove that nothing was sent."""

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from genlock.channels.telegram.errors import (
    AlreadyRefunded,
    FileRefused,
    GroupMigrated,
    MessageHasMedia,
    MessageHasNoMedia,
    MessageNotModified,
    QueryTooOld,
    RateLimited,
    TextRefused,
    TokenRefused,
    classify_error,
    is_known_error,
)
from genlock.domain.errors import (
    ChannelBusy,
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)

REFUSALS = [
    (
        "Message is not modified: specified new message content and reply markup are exactly the same",
        MessageNotModified,
    ),
    ("Canceled by new edit message request", ChannelOutcomeUnknown),
    ("message to edit not found", PlaceholderGone),
    ("MESSAGE_ID_INVALID", PlaceholderGone),
    ("message was deleted", PlaceholderGone),
    ("message can't be edited", PlaceholderGone),
    ("message media can't be edited", PlaceholderGone),
    ("there is no text in the message to edit", MessageHasMedia),
    ("there is no caption in the message to edit", MessageHasNoMedia),
    ("failed to get HTTP URL content", LevelRefused),
    ("wrong type of the web page content", LevelRefused),
    ("wrong file identifier/HTTP URL specified", LevelRefused),
    ("PHOTO_INVALID_DIMENSIONS", LevelRefused),
    ("IMAGE_PROCESS_FAILED", LevelRefused),
    ("VIDEO_CONTENT_TYPE_INVALID", LevelRefused),
    ("MEDIA_NEW_INVALID", LevelRefused),
    ("wrong remote file identifier specified: can't unserialize it", FileRefused),
    ("can't use file of type Photo as Video", FileRefused),
    ("FILE_REFERENCE_EXPIRED", FileRefused),
    ("file of size 52428801 bytes is too big for a photo", LevelRefused),
    ("file must be non-empty", LevelRefused),
    ("message caption is too long", TextRefused),
    ("can't parse entities: unsupported start tag", TextRefused),
    ("BUTTON_DATA_INVALID", TextRefused),
    ("reply markup is too long", TextRefused),
    ("message to be replied not found", TextRefused),
    ("reply message not found", TextRefused),
    ("not enough rights to send photos to the chat", LevelRefused),
    ("CHAT_SEND_PHOTOS_FORBIDDEN", LevelRefused),
    ("CHAT_WRITE_FORBIDDEN", RecipientUnreachable),
    ("USER_BANNED_IN_CHANNEL", RecipientUnreachable),
    ("TOPIC_CLOSED", RecipientUnreachable),
    ("message thread not found", RecipientUnreachable),
    ("chat not found", RecipientUnreachable),
    ("PEER_ID_INVALID", RecipientUnreachable),
    ("CHARGE_ALREADY_REFUNDED", AlreadyRefunded),
    ("the payment was already refunded", AlreadyRefunded),
    ("query is too old and response timeout expired or query ID is invalid", QueryTooOld),
]


def test_an_error_is_classified_by_part_of_its_text_ignoring_case() -> None:
    wrong = []
    for text, meaning in REFUSALS:
        for spelling in (text, text.upper(), text.lower(), f"Bad Request: {text}"):
            found = classify_error(BadRequest(spelling))
            if type(found) is not meaning or not is_known_error(found):
                wrong.append(f"{spelling}: {found!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "bot was blocked by the user",
        "user is deactivated",
        "bot was kicked from the supergroup chat",
        "bot is not a member of the channel chat",
        "the group chat was deleted",
        "bot can't initiate conversation with a user",
        "bot can't send messages to bots",
        "some unknown description",
    ],
)
def test_forbidden_means_unreachable_and_keeps_the_reason(text: str) -> None:
    found = classify_error(Forbidden(f"Forbidden: {text}"))
    assert isinstance(found, RecipientUnreachable)
    assert text in found.reason


def test_an_unknown_refusal_refuses_the_level_and_is_reported() -> None:
    found = classify_error(BadRequest("SOMETHING_NEW_INVALID"))
    assert type(found) is LevelRefused
    assert not is_known_error(found)


NO_CONNECTION = aiohttp.ClientConnectorError(ConnectionKey("h", 443, True, True, None, None, None), OSError(111, "no"))  # noqa: FBT003


def caused(error: TelegramError, cause: Exception) -> TelegramError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "cause", [NO_CONNECTION, aiohttp.ConnectionTimeoutError(""), aiohttp.InvalidURL("x")], ids=repr
)
@pytest.mark.parametrize("error", [NetworkError("x"), TimedOut()], ids=repr)
def test_without_a_connection_nothing_was_sent(error: TelegramError, cause: Exception) -> None:
    assert type(classify_error(caused(error, cause))) is ChannelBusy


@pytest.mark.parametrize(
    "cause",
    [
        TimeoutError(),
        aiohttp.SocketTimeoutError(""),
        aiohttp.ClientOSError(),
        aiohttp.ClientConnectionResetError(),
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError(),
        ValueError("not JSON"),
    ],
    ids=repr,
)
def test_after_a_connection_was_made_the_outcome_is_unknown(cause: Exception) -> None:
    assert type(classify_error(caused(NetworkError("x"), cause))) is ChannelOutcomeUnknown


@pytest.mark.parametrize(
    "error",
    [
        NetworkError("Internal Server Error: restart"),
        NetworkError("Bad Gateway (502). Parsing the server response b'<html>' failed"),
        TelegramError("Invalid server response"),
        KeyError("message_id"),
        TypeError("missing argument"),
    ],
    ids=repr,
)
def test_after_an_unreadable_answer_the_outcome_is_unknown(error: Exception) -> None:
    assert type(classify_error(error)) is ChannelOutcomeUnknown


def test_a_429_keeps_its_retry_time() -> None:
    for error in (RetryAfter(137), NetworkError("Too Many Requests: retry after 137")):
        found = classify_error(error)
        assert isinstance(found, RateLimited)
        assert found.after == 137


def test_too_large_refuses_the_level() -> None:
    assert type(classify_error(NetworkError("Request Entity Too Large"))) is LevelRefused


def test_a_migrated_group_keeps_its_new_id() -> None:
    found = classify_error(ChatMigrated(-100777))
    assert isinstance(found, GroupMigrated)
    assert found.chat == -100777


def test_a_refused_token_and_a_conflict_can_be_retried() -> None:
    assert isinstance(classify_error(InvalidToken("Unauthorized")), TokenRefused)
    assert type(classify_error(Conflict("terminated by other getUpdates request"))) is ChannelBusy
