"""Say why Telegram does not answer the configured bot, and what to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from genlock.channels.telegram.errors import BotFrozen, GroupMigrated, RateLimited, TokenRefused
from genlock.doctor.check_failed import CheckFailed
from genlock.domain.errors import ChannelBusy, ChannelError, ChannelOutcomeUnknown, LevelRefused, RecipientUnreachable


@asynccontextmanager
async def telegram_answers(url: str, seconds: float) -> AsyncIterator[None]:
    """Limit the calls of the block to some seconds. Raises CheckFailed if one of them fails."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (ChannelError, TimeoutError) as error:
        raise CheckFailed(
            _why_no_call(error)
            or f"Telegram does not answer at {url} ({str(error) or 'no answer in time'}): check the network and "
            "GENLOCK_TELEGRAM_API_URL"
        ) from None


def why_no_text(error: ChannelError, chat: int, answer: str) -> str:
    """Return why the bot could not send a text to a chat, with Telegram's answer, and what to do."""
    return _why_no_call(error) or (
        f"the bot cannot write to the chat ({type(error).__name__}: {answer}): {_remedy(error, chat)}"
    )


def _why_no_call(error: Exception) -> str | None:
    """Return what keeps Telegram from doing any call of this bot now; None if it is something else."""
    match error:
        case TokenRefused():
            return "Telegram does not know the token in GENLOCK_TELEGRAM_TOKEN: copy it from @BotFather again"
        case BotFrozen():
            return (
                f"Telegram has frozen the bot or closed its session ({error}): read what @BotFather says, and appeal "
                "at @BotSupport from the owner's account"
            )
        case RateLimited():
            return f"Telegram asks the bot to wait {error.after:.0f} s: try again after that"
        case _:
            return None


def _remedy(error: ChannelError, chat: int) -> str:
    match error:
        case ChannelOutcomeUnknown():
            return "check the network; the text may be in the chat nevertheless, then delete it by hand"
        case ChannelBusy():
            return "check the network, and try again later"
        case GroupMigrated():
            return f"the group has become a supergroup, so name chat {error.chat}"
        case RecipientUnreachable() if chat < 0:  # a group or a channel
            return "add the bot to the chat with the right to write there, or name another chat"
        case LevelRefused():
            return "give the bot the right to send texts there, or name another chat"
        case _:
            return "open the chat with the bot and press Start, or name another chat"
