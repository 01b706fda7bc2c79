"""Telegram's updates: read the fields that the update queue needs, and acknowledge repeated button presses."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from genlock.channels.telegram.caller import Caller, Priority
from genlock.channels.telegram.errors import QueryTooOld
from genlock.domain.api_key import mask_api_secrets
from genlock.domain.update import NewUpdate

#: Telegram waits ten seconds for the answer, so this kind has a queue of its own
_PRE_CHECKOUT = "pre_checkout_query"
_BUTTON_PRESS = "callback_query"
_ID_MAX = 2**63
#: The character that PostgreSQL stores in no text, as JSON writes it. Telegram's own servers make it a space, too.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


def read_update(bot: str, update: Any, body: str) -> NewUpdate:
    """Read a parsed update; `body` is its JSON text. Raises ValueError if it is not an update.

    Telegram repeats a message with every press of its buttons, also the one with a new API key, which no row may hold.
    """
    update_id = update.get("update_id") if isinstance(update, Mapping) else None
    if not isinstance(update_id, int) or isinstance(update_id, bool) or not 0 <= update_id < _ID_MAX:
        raise ValueError("it has no update_id")
    kind = next(
        (name for name, value in update.items() if isinstance(value, Mapping) and name.isidentifier()), "nothing"
    )
    content = update.get(kind, {})
    urgent = kind == _PRE_CHECKOUT
    sender = _id_of(content.get("from")) or _id_of(content.get("chat")) or "unknown"
    return NewUpdate(
        bot=bot,
        update_id=update_id,
        ordering_key=f"{sender}/{kind}" if urgent else sender,
        kind=kind[:64],
        urgent=urgent,
        dedup_key=_button_key(content) if kind == _BUTTON_PRESS else None,
        body=mask_api_secrets(_NUL.sub(r"\1 ", body)),
    )


def moved_update(body: str, chat: int) -> str:
    """Return the JSON text of an update as if it came from the supergroup that its group has become."""
    update = json.loads(body)
    content = next(value for value in update.values() if isinstance(value, dict))
    content.get("message", content)["chat"].update(id=chat, type="supergroup")
    return json.dumps(update)


async def acknowledge_repeated_press(caller: Caller, update: NewUpdate) -> None:
    """Answer the callback query of a repeated press: the user's client shows a spinner until it is answered."""
    query = json.loads(update.body)["callback_query"]["id"]
    try:
        await caller.call(
            caller.bot.answer_callback_query, chat=None, priority=Priority.RESULT, callback_query_id=query
        )
    except QueryTooOld:
        return


def _id_of(chat_or_user: Any) -> str | None:
    number = chat_or_user.get("id") if isinstance(chat_or_user, Mapping) else None
    return str(number) if isinstance(number, int) and abs(number) < _ID_MAX else None


def _button_key(content: Mapping[str, Any]) -> str | None:
    """Identify the button and its message; None if the callback query does not name them."""
    data, message = content.get("data"), content.get("message")
    if not isinstance(data, str) or not isinstance(message, Mapping) or not isinstance(message.get("message_id"), int):
        return None
    # Hashed, because a client may send any text as data, also one that a database cannot store.
    digest = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{_id_of(message.get('chat'))}/{message['message_id']}/{digest}"
