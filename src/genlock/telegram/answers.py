"""Short words that no job depends on: to operators, and to a press that was made twice."""

import json
from collections.abc import Iterable

from genlock.domain.errors import ChannelError, ChatClosed
from genlock.domain.update import NewUpdate
from genlock.telegram.calls import Caller, Priority
from genlock.telegram.errors import QueryTooOld


async def tell_operators(caller: Caller, operators: Iterable[int], text: str) -> None:
    """Say something to each operator who can be reached. Raises ChannelError if it reached none of those."""
    failed: ChannelError | None = None
    reached = False
    for operator in operators:
        try:
            await caller.call(caller.bot.send_message, chat=operator, priority=Priority.RESULT, text=text)
            reached = True
        except ChatClosed:
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
