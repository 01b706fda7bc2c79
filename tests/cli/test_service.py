"""The error of a handler is stored with its update, without secrets."""

import pytest

from genlock.app.bot import handle_update
from genlock.domain.errors import ChannelBusy
from genlock.domain.update import Update, UpdateState
from genlock.log import Mask
from tests.engine.manual_clock import ManualClock

TOKEN = "7123456789:AAF0dQ-x5R9fJ3k1Lm_pQ7rS2tU4vW6xY8z"


class Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error
        self.first: bool | None = None

    async def handle_stored(self, stored: Update) -> None:
        self.first = stored.attempts == 1
        raise self.error


def update(attempts: int = 1) -> Update:
    return Update(
        id=1,
        bot="7123456789",
        update_id=1,
        kind="message",
        body='{"update_id":1}',
        state=UpdateState.NEW,
        note="",
        received_at=ManualClock().now(),
        attempts=attempts,
    )


async def handle(chat: Failing, attempts: int = 1) -> None:
    await handle_update(chat, Mask([TOKEN]), update(attempts))  # type: ignore[arg-type]


async def test_a_token_in_an_error_is_masked() -> None:
    with pytest.raises(RuntimeError) as raised:
        await handle(Failing(OSError(f"http://api/file/bot{TOKEN}/photo.jpg")))
    assert TOKEN not in repr(raised.value)
    assert raised.value.__cause__ is None
    assert "photo.jpg" in repr(raised.value)


@pytest.mark.parametrize("error", [ChannelBusy(1.0), KeyError("harmless")])
async def test_other_errors_are_not_changed(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        await handle(Failing(error))
    assert raised.value is error


@pytest.mark.parametrize(("attempts", "first"), [(1, True), (2, False)])
async def test_a_handler_knows_whether_it_is_the_first_attempt(attempts: int, first: bool) -> None:  # noqa: FBT001
    chat = Failing(ValueError())
    with pytest.raises(ValueError):  # noqa: PT011 - ours
        await handle(chat, attempts)
    assert chat.first is first
