"""A live trial with the configured bot, and its table in Markdown, to attach to an issue."""

from collections.abc import Sequence

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
_ANSWER_LENGTH = 160
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


async def examine_live(settings: Settings, chat: int, *, keep: bool, picture_url: str) -> list[Observation]:
    """Run a live trial with the configured bot, within the rate limits that it shares with the running service."""
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
        return await LiveTrial(caller, chat, mask, keep=keep, picture_url=picture_url).run()
    finally:
        await caller.close()
        await database.close()
