"""Short words that no job depends on: to operators, and to a press that was made twice."""

import json
import re
from collections.abc import Awaitable, Callable, Iterable
from html import escape

from telegram.constants import ParseMode

from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.errors import QueryTooOld
from genlock.domain.errors import ChannelError, RecipientUnreachable
from genlock.domain.update import NewUpdate

LanguageOf = Callable[[int], Awaitable[str]]
_CODE = re.compile(r"`([^`]+)`")


async def tell_operators(
    caller: Caller, operators: Iterable[int], language_of: LanguageOf, text_in: Callable[[str], str]
) -> None:
    """Send each operator the text in their language. Raises ChannelError if it reached none of those it can reach."""
    failed: ChannelError | None = None
    reached = False
    for operator in operators:
        try:
            text = text_in(await language_of(operator))
            await caller.call(
                caller.bot.send_message,
                chat=operator,
                priority=Priority.RESULT,
                text=_CODE.sub(r"<code>\1</code>", escape(text, quote=False)),
                parse_mode=ParseMode.HTML,
            )
            reached = True
        except RecipientUnreachable:
            continue  # has never opened the chat, or closed it
        except ChannelError as error:
            failed = error
    if failed is not None and not reached:
        raise failed


async def answer_repeated(caller: Caller, update: NewUpdate) -> None:
    """The person's client shows that it waits until the press is answered."""
    query = json.loads(update.body)["callback_query"]["id"]
    try:
        await caller.call(
            caller.bot.answer_callback_query, chat=None, priority=Priority.RESULT, callback_query_id=query
        )
    except QueryTooOld:
        return
