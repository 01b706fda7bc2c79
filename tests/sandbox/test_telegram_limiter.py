"""Blocks of the simulated limiter: calls that were on their way do not prolong them, early repeats do."""

import pytest

from genlock.sandbox.telegram.api_call import ApiError
from genlock.sandbox.telegram.limiter import IN_FLIGHT_SECONDS, Limiter, Limits

CHATS = range(1, 21)


class Telegram:
    """A limiter with a clock that stands still, and a bot that may send five messages a second."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._limiter = Limiter(limits=Limits(bot_per_second=5), clock=lambda: self.now)

    def send(self, chat: int) -> int:
        """Return the seconds that a call to a chat is told to wait."""
        try:
            self._limiter.admit("sendMessage", chat)
        except ApiError as refused:
            return int(refused.parameters["retry_after"])
        return 0


@pytest.fixture
def telegram() -> Telegram:
    return Telegram()


def test_calls_to_many_chats_at_once_are_refused_for_the_same_time(telegram: Telegram) -> None:
    assert [telegram.send(chat) for chat in CHATS] == [0] * 5 + [3] * 15
    telegram.now += 3.0
    assert telegram.send(20) == 0


def test_a_call_to_a_chat_whose_call_was_refused_doubles_the_block_of_the_whole_bot(telegram: Telegram) -> None:
    assert [telegram.send(chat) for chat in (*CHATS[:5], 6, 6, 7)] == [0] * 5 + [3, 6, 6]


def test_a_call_to_any_chat_doubles_the_block_when_its_refusal_must_be_known(telegram: Telegram) -> None:
    assert [telegram.send(chat) for chat in CHATS[:6]] == [0] * 5 + [3]
    telegram.now += IN_FLIGHT_SECONDS
    assert [telegram.send(chat) for chat in (7, 8)] == [6, 6]


def test_a_webhook_can_be_set_once_a_second() -> None:
    now = [1000.0]
    limiter = Limiter(limits=Limits(), clock=lambda: now[0])
    limiter.admit_webhook()
    with pytest.raises(ApiError, match="retry after 1"):
        limiter.admit_webhook()
    now[0] += 1.0
    limiter.admit_webhook()
