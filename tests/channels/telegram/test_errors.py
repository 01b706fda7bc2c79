"""Telegram's errors are classified; some failures prove that nothing was sent."""

from collections.abc import Callable, Iterator

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
    GroupMigrated,
    RateLimited,
    TokenRefused,
    classify_error,
    is_known_error,
)
from genlock.channels.telegram.http import ForeignAnswer
from genlock.channels.telegram.refusals import meaning_of, read_patterns
from genlock.domain.errors import (
    ChannelBusy,
    ChannelOutcomeUnknown,
    LevelRefused,
    RecipientUnreachable,
)
from tests.channels.telegram.telegram_answers import ANSWERS

#: what the library raises for an answer, by the beginning of its description
RAISED: dict[str, Callable[[str], TelegramError]] = {
    "Bad Request": BadRequest,
    "Forbidden": Forbidden,
    "Unauthorized": InvalidToken,
    "Not Found": InvalidToken,
    "Conflict": Conflict,
}


def raised(description: str) -> TelegramError:
    make = next((make for beginning, make in RAISED.items() if description.startswith(beginning)), NetworkError)
    return make(description)


def spellings(text: str) -> Iterator[str]:
    """Yield a text of the table as it is, in lower case and, after its prefix, in capitals."""
    text = text.replace("{quoted}", "x.example")
    prefix, colon, rest = text.partition(": ")
    yield from (text, f"{prefix}{colon}{rest.lower()}", f"{prefix}{colon}{rest.upper()}")


def test_every_answer_of_telegram_is_classified_ignoring_case() -> None:
    wrong = []
    for meaning, texts in ANSWERS.items():
        for spelling in (spelling for text in texts for spelling in spellings(text)):
            found = classify_error(raised(spelling))
            if type(found).__name__ != meaning:
                wrong.append(f"{spelling}: {found!r}, not {meaning}")
            if isinstance(found, LevelRefused) and not is_known_error(found):
                wrong.append(f"{spelling}: not known")
    assert not wrong, "\n".join(wrong)


def test_no_pattern_of_the_table_is_hidden_by_an_earlier_one() -> None:
    for meaning, patterns in read_patterns().items():
        for pattern in patterns:
            assert meaning_of(pattern.replace("*", "x")) is meaning, pattern


def test_content_that_telegram_quotes_does_not_decide_what_an_error_means() -> None:
    quoted = [text.partition(": ")[2] for texts in ANSWERS.values() for text in texts if ": " in text]
    wrong = []
    for meaning, texts in ANSWERS.items():
        for text in (text for text in texts if "{quoted}" in text):
            for content in (*quoted, "Too Many Requests: retry after 9", "Bad Request: chat not found"):
                found = classify_error(raised(text.replace("{quoted}", content)))
                if type(found).__name__ != meaning:
                    wrong.append(f"{text} with {content}: {found!r}")
    assert not wrong, "\n".join(wrong[:20])


def test_a_passing_failure_inside_telegram_counts_as_an_attempt() -> None:
    found = classify_error(BadRequest("FILE_PART_17_MISSING"))
    assert isinstance(found, ChannelBusy)
    assert found.failed, "otherwise it could be repeated without end"


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


@pytest.mark.parametrize("error", [NetworkError("Request Entity Too Large"), ForeignAnswer(413)], ids=repr)
def test_too_large_refuses_the_level(error: TelegramError) -> None:
    found = classify_error(error)
    assert type(found) is LevelRefused
    assert is_known_error(found)


@pytest.mark.parametrize("status", [403, 405, 407, 409, 421, 431, 451])
def test_a_refusal_by_a_proxy_says_nothing_about_the_user_and_counts_as_an_attempt(status: int) -> None:
    found = classify_error(ForeignAnswer(status))
    assert type(found) is ChannelBusy
    assert found.failed, "otherwise it could be repeated without end"


@pytest.mark.parametrize("status", [401, 404])
def test_a_page_instead_of_the_bot_api_waits_for_an_operator(status: int) -> None:
    assert isinstance(classify_error(ForeignAnswer(status)), TokenRefused)


@pytest.mark.parametrize("status", [200, 204, 302, 408, 499, 500, 502, 503, 504, 520])
def test_after_an_answer_of_a_proxy_that_may_have_passed_the_call_on_the_outcome_is_unknown(status: int) -> None:
    assert type(classify_error(ForeignAnswer(status))) is ChannelOutcomeUnknown


def test_a_request_that_the_http_server_cannot_read_refuses_the_level_and_is_reported() -> None:
    found = classify_error(ForeignAnswer(400))
    assert type(found) is LevelRefused
    assert not is_known_error(found)


def test_a_migrated_group_keeps_its_new_id() -> None:
    found = classify_error(ChatMigrated(-100777))
    assert isinstance(found, GroupMigrated)
    assert found.chat == -100777


def test_a_refused_token_and_a_conflict_can_be_retried() -> None:
    assert isinstance(classify_error(InvalidToken("Unauthorized")), TokenRefused)
    assert type(classify_error(Conflict("terminated by other getUpdates request"))) is ChannelBusy
