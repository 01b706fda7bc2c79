"""The HTTP client of the bot: what it sends arrives unchanged, and it knows which calls were certainly not made."""

from collections.abc import AsyncIterator

import pytest

from genlock.channels.telegram.caller import Caller, Priority, make_bot
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.domain.errors import ChannelBusy, ChannelError, ChannelOutcomeUnknown
from genlock.domain.events import Event
from genlock.sandbox.processes import find_free_port
from genlock.sandbox.telegram.faults import Fault
from genlock.sandbox.telegram.simulator import TelegramSimulator
from tests.engine.recorder import Recorder


class Free(TelegramRateLimiter):
    async def acquire(self, chat: int, priority: Priority) -> None:
        """Grant the permit at once."""


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
async def caller(telegram: TelegramSimulator, recorder: Recorder) -> AsyncIterator[Caller]:
    caller = Caller(make_bot(telegram.token, telegram.url), Free(None, "42"), recorder)  # type: ignore[arg-type]
    yield caller
    await caller.close()


async def test_texts_and_files_arrive_unchanged(caller: Caller, telegram: TelegramSimulator) -> None:
    ann, text = telegram.add_user("Ann"), "a+b & c=d; 100 % «ё» 😀\nnext line"
    sent = await caller.call(caller.bot.send_message, chat=ann.id, priority=Priority.RESULT, text=text)
    assert ann.last.text == sent.text == text
    content = bytes(range(256)) * 5
    sent = await caller.call(
        caller.bot.send_document,
        chat=ann.id,
        priority=Priority.RESULT,
        document=content,
        filename="ё.bin",
        caption=text,
    )
    assert sent.document is not None
    assert (sent.document.file_size, sent.document.file_name, sent.caption) == (len(content), "ё.bin", text)


async def test_without_a_connection_the_call_was_certainly_not_made() -> None:
    caller = Caller(make_bot("42:sandbox", f"http://127.0.0.1:{find_free_port()}"), Free(None, "42"), Recorder())  # type: ignore[arg-type]
    with pytest.raises(ChannelBusy):
        await caller.call(caller.bot.send_message, chat=5, priority=Priority.RESULT, text="hello")
    await caller.close()


async def test_a_lost_answer_is_reported_and_the_call_is_not_repeated(
    caller: Caller, telegram: TelegramSimulator
) -> None:
    ann = telegram.add_user("Ann")
    await caller.call(caller.bot.send_message, chat=ann.id, priority=Priority.RESULT, text="first")
    telegram.faults.once(Fault.DROP_AFTER, chat=ann.id)  # on a connection that has been used before
    with pytest.raises(ChannelOutcomeUnknown):
        await caller.call(caller.bot.send_message, chat=ann.id, priority=Priority.RESULT, text="second")
    assert [message.text for message in ann.messages] == ["first", "second"]


async def test_a_screen_that_is_already_deleted_is_no_strange_refusal(
    caller: Caller, telegram: TelegramSimulator, recorder: Recorder
) -> None:
    ann = telegram.add_user("Ann")
    sent = await caller.call(caller.bot.send_message, chat=ann.id, priority=Priority.RESULT, text="a screen")
    await ann.delete(ann.last)
    with pytest.raises(ChannelError):
        await caller.call(
            caller.bot.delete_message, chat=None, priority=Priority.SCREEN, chat_id=ann.id, message_id=sent.message_id
        )
    assert recorder.of(Event.CHANNEL_REFUSAL_UNKNOWN) == []
