"""Read from a Telegram update what the update queue needs: its id, its ordering key, whether it is urgent."""

import hashlib
from collections.abc import Mapping
from typing import Any

from genlock.domain.update import NewUpdate

#: Telegram cancels a payment whose pre-checkout query is not answered within ten seconds
_PRE_CHECKOUT = "pre_checkout_query"
_BUTTON = "callback_query"
_ID_MAX = 2**63


def read_update(bot: str, data: Any, body: str) -> NewUpdate:
    """Make a NewUpdate of an update's JSON. Raises ValueError if it has no valid update id."""
    update_id = data.get("update_id") if isinstance(data, Mapping) else None
    if not isinstance(update_id, int) or isinstance(update_id, bool) or not 0 <= update_id < _ID_MAX:
        raise ValueError("it has no update_id")
    kind = next((name for name, value in data.items() if isinstance(value, Mapping) and name.isidentifier()), "nothing")
    content = data.get(kind, {})
    urgent = kind == _PRE_CHECKOUT
    sender = _id_of(content.get("from")) or _id_of(content.get("chat")) or "nobody"
    return NewUpdate(
        bot=bot,
        update_id=update_id,
        ordering_key=f"{sender}/{kind}" if urgent else sender,
        kind=kind[:64],
        urgent=urgent,
        dedup_key=_button_key(content) if kind == _BUTTON else None,
        body=body,
    )


def _id_of(entity: Any) -> str | None:
    number = entity.get("id") if isinstance(entity, Mapping) else None
    return str(number) if isinstance(number, int) and abs(number) < _ID_MAX else None


def _button_key(content: Mapping[str, Any]) -> str | None:
    """Identify a button by its message and data; None if the update lacks either."""
    data, message = content.get("data"), content.get("message")
    if not isinstance(data, str) or not isinstance(message, Mapping) or not isinstance(message.get("message_id"), int):
        return None
    # A client may send any string as data, including lone surrogates, which no database can store.
    digest = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{_id_of(message.get('chat'))}/{message['message_id']}/{digest}"
