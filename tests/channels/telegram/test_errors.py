"""Facts 2: what Telegram's answers mean, and which failures prove that nothing was sent."""

import httpx
import pytest
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
    FileRefused,
    Flooded,
    HasMedia,
    HasNoMedia,
    Migrated,
    QueryTooOld,
    TokenRefused,
    Unchanged,
    WordsRefused,
    known,
    sort,
)
from genlock.domain.errors import (
    ChannelBusy,
    ChannelOutcomeUnknown,
    LevelRefused,
    PlaceholderGone,
    RecipientUnreachable,
)

REFUSALS = [
    ("Message is not modified: specified new message content and reply markup are exactly the same", Unchanged),
    ("Canceled by new edit message request", ChannelOutcomeUnknown),
    ("message to edit not found", PlaceholderGone),
    ("MESSAGE_ID_INVALID", PlaceholderGone),
    ("message was deleted", PlaceholderGone),
    ("message can't be edited", PlaceholderGone),
    ("message media can't be edited", PlaceholderGone),
    ("there is no text in the message to edit", HasMedia),
    ("there is no caption in the message to edit", HasNoMedia),
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
    ("message caption is too long", WordsRefused),
    ("can't parse entities: unsupported start tag", WordsRefused),
    ("BUTTON_DATA_INVALID", WordsRefused),
    ("reply markup is too long", WordsRefused),
    ("message to be replied not found", WordsRefused),
    ("reply message not found", WordsRefused),
    ("not enough rights to send photos to the chat", LevelRefused),
    ("CHAT_SEND_PHOTOS_FORBIDDEN", LevelRefused),
    ("CHAT_WRITE_FORBIDDEN", RecipientUnreachable),
    ("USER_BANNED_IN_CHANNEL", RecipientUnreachable),
    ("TOPIC_CLOSED", RecipientUnreachable),
    ("message thread not found", RecipientUnreachable),
    ("chat not found", RecipientUnreachable),
    ("PEER_ID_INVALID", RecipientUnreachable),
    ("query is too old and response timeout expired or query ID is invalid", QueryTooOld),
]


def test_a_refusal_is_known_by_a_piece_of_its_text_in_any_case() -> None:
    wrong = []
    for text, meaning in REFUSALS:
        for spelling in (text, text.upper(), text.lower(), f"Bad Request: {text}"):
            found = sort(BadRequest(spelling))
            if type(found) is not meaning or not known(found):
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
        "something nobody has read before",
    ],
)
def test_whatever_is_forbidden_closes_the_chat_and_says_why(text: str) -> None:
    found = sort(Forbidden(f"Forbidden: {text}"))
    assert isinstance(found, RecipientUnreachable)
    assert text in found.reason


def test_a_refusal_nobody_knows_is_about_this_content_and_is_told() -> None:
    found = sort(BadRequest("SOMETHING_NEW_INVALID"))
    assert type(found) is LevelRefused
    assert not known(found)


def caused(error: TelegramError, cause: Exception) -> TelegramError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("cause", [httpx.ConnectError(""), httpx.ConnectTimeout(""), httpx.PoolTimeout("")], ids=repr)
@pytest.mark.parametrize("error", [NetworkError("x"), TimedOut()], ids=repr)
def test_without_a_connection_nothing_was_sent(error: TelegramError, cause: Exception) -> None:
    assert type(sort(caused(error, cause))) is ChannelBusy


@pytest.mark.parametrize(
    "cause",
    [
        httpx.ReadTimeout(""),
        httpx.WriteTimeout(""),
        httpx.WriteError(""),
        httpx.ReadError(""),
        httpx.RemoteProtocolError(""),
        ValueError("not JSON"),
    ],
    ids=repr,
)
def test_with_a_connection_it_may_have_been_done(cause: Exception) -> None:
    assert type(sort(caused(NetworkError("x"), cause))) is ChannelOutcomeUnknown


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
def test_an_answer_that_tells_nothing_may_have_been_a_success(error: Exception) -> None:
    assert type(sort(error)) is ChannelOutcomeUnknown


def test_a_flood_is_obeyed_for_as_long_as_it_says() -> None:
    for error in (RetryAfter(137), NetworkError("Too Many Requests: retry after 137")):
        found = sort(error)
        assert isinstance(found, Flooded)
        assert found.after == 137


def test_too_large_is_about_the_content() -> None:
    assert type(sort(NetworkError("Request Entity Too Large"))) is LevelRefused


def test_a_moved_group_says_where_it_is_now() -> None:
    found = sort(ChatMigrated(-100777))
    assert isinstance(found, Migrated)
    assert found.chat == -100777


def test_a_refused_token_and_a_rival_keep_the_work() -> None:
    assert isinstance(sort(InvalidToken("Unauthorized")), TokenRefused)
    assert type(sort(Conflict("terminated by other getUpdates request"))) is ChannelBusy
