"""Messages to operators, who are named by their Telegram user ids."""

import re
from collections.abc import Awaitable, Callable, Iterable
from html import escape

from telegram.constants import ParseMode

from genlock.channels.telegram.caller import Caller, Priority
from genlock.domain.alarm import Words
from genlock.domain.errors import ChannelError, RecipientUnreachable

LanguageOf = Callable[[int], Awaitable[str]]
_CODE = re.compile(r"`([^`]+)`")


async def notify_operators(caller: Caller, operators: Iterable[int], language_of: LanguageOf, words: Words) -> None:
    """Send a message to each operator. Operators who have not opened the chat, or have blocked the bot, are skipped.

    Raises ChannelError if the message reached no operator and Telegram failed for at least one.
    """
    failed: ChannelError | None = None
    reached = False
    for operator in operators:
        try:
            text = words.russian if await language_of(operator) == "ru" else words.english
            await caller.call(
                caller.bot.send_message,
                chat=operator,
                priority=Priority.RESULT,
                text=_CODE.sub(r"<code>\1</code>", escape(text, quote=False)),
                parse_mode=ParseMode.HTML,
            )
            reached = True
        except RecipientUnreachable:
            continue
        except ChannelError as error:
            failed = error
    if failed is not None and not reached:
        raise failed
