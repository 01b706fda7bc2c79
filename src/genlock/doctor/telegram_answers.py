"""Say why Telegram does not answer the configured bot, and what to do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from genlock.channels.telegram.errors import BotFrozen, TokenRefused
from genlock.doctor.check_failed import CheckFailed
from genlock.domain.errors import ChannelError


@asynccontextmanager
async def telegram_answers(url: str, seconds: float) -> AsyncIterator[None]:
    """Limit the calls of the block to some seconds. Raises CheckFailed if one of them fails."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TokenRefused:
        raise CheckFailed(
            "Telegram does not know the token in GENLOCK_TELEGRAM_TOKEN: copy it from @BotFather again"
        ) from None
    except BotFrozen as frozen:
        raise CheckFailed(
            f"Telegram has frozen the bot or closed its session ({frozen}): read what @BotFather says, and appeal at "
            "@BotSupport from the owner's account"
        ) from None
    except (ChannelError, TimeoutError) as error:
        raise CheckFailed(
            f"Telegram does not answer at {url} ({type(error).__name__}): check the network and "
            "GENLOCK_TELEGRAM_API_URL"
        ) from None
