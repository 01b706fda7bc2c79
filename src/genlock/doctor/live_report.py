"""A live trial with the configured bot, and its table in Markdown, to attach to an issue."""

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

from genlock import __version__
from genlock.app.databases import open_database_check
from genlock.channels.telegram.caller import Caller, Priority, bot_id, make_bot
from genlock.channels.telegram.rate_limiter import TelegramRateLimiter
from genlock.doctor.check_failed import CheckFailed
from genlock.doctor.live import NOT_TESTED, LiveTrial, Observation
from genlock.doctor.telegram_answers import telegram_answers
from genlock.log import Mask, Silent
from genlock.settings import Settings

#: how long the first call may take
ANSWER_SECONDS = 15.0
_ANSWER_LENGTH = 300
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_HEAD = "| attempt | expected | Telegram | its words | genlock reads it as |\n|---|---|---|---|---|"


def live_table(observations: Sequence[Observation], *, server: str) -> str:
    """Return the table. It names the server, but neither the bot nor the chat."""
    different = sum(not observation.as_expected for observation in observations)
    return "\n".join(
        [
            f"genlock {__version__}, {server}: {len(observations)} attempts, {different} not as expected (marked ≠)",
            "",
            _HEAD,
            *map(_row, observations),
            "",
            f"Not tested: {'; '.join(NOT_TESTED)}.",
        ]
    )


def _row(observation: Observation) -> str:
    outcome = observation.outcome if observation.as_expected else f"≠ {observation.outcome}"
    cells = (observation.attempt, observation.expected, outcome, observation.answer, observation.read_as)
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(text: str) -> str:
    """Return a text that can break neither the table nor a terminal."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return printable.replace("|", "\\|")[:_ANSWER_LENGTH]


class Interruption:
    """Ends a trial on Ctrl-C or SIGTERM: it deletes its messages first, unless a second signal comes meanwhile."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        #: the signal that came
        self.signal: int | None = None

    @contextmanager
    def handled(self) -> Iterator[None]:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def interrupt(number: int) -> None:
            if self.signal is None:
                self._tell()
            self.signal = number
            task.cancel()

        for number in _SIGNALS:
            loop.add_signal_handler(number, interrupt, number)
        try:
            yield
        except asyncio.CancelledError:
            if self.signal is None:
                raise
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)


async def examine_live(
    settings: Settings, chat: int, *, keep: bool, picture_url: str, interruption: Interruption | None = None
) -> list[Observation]:
    """Run a live trial with the configured bot, within the rate limits that it shares with the running service.

    After an interruption, returns what was observed until then.
    """
    if settings.telegram_token is None:
        raise CheckFailed("GENLOCK_TELEGRAM_TOKEN is not set: get a token from @BotFather")
    token = settings.telegram_token.get_secret_value()
    database = await open_database_check(settings.database_url, observer=Silent())
    caller = Caller(
        make_bot(token, settings.telegram_api_url), TelegramRateLimiter(database.store, bot_id(token)), Silent()
    )
    try:
        async with telegram_answers(settings.telegram_api_url, ANSWER_SECONDS):
            await caller.call(caller.bot.get_me, chat=None, priority=Priority.RESULT)
        mask = Mask(settings.secrets())
        trial = LiveTrial(caller, chat, mask, keep=keep, picture_url=picture_url)
        with interruption.handled() if interruption else nullcontext():
            await trial.run()
        return trial.observations
    finally:
        await caller.close()
        await database.close()
