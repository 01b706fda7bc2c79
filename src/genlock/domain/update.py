"""Updates as the chat sent them: kept first, worked off later, in one lane per person."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

#: asked before a payment goes through, and only for ten seconds
_PRE_CHECKOUT = "pre_checkout_query"
_PRESS = "callback_query"
_ID_MAX = 2**63


class Received(StrEnum):
    """What became of an update at the door."""

    FRESH = "fresh"  #: kept; somebody works it off
    KNOWN = "known"  #: kept before, under the same id
    REPEATED = "repeated"  #: the same press again, under a new id; kept, not worked off


class UpdateState(StrEnum):
    NEW = "new"  #: kept and acknowledged → done by the handler, or → aside when it fails too often
    DONE = "done"  #: its handler came to an end
    REPEATED = "repeated"  #: a press that the person's client sent twice; nothing to do
    DEAD = "dead"  #: its handler failed every time; kept for the operator


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUpdate:
    """An update on the doorstep."""

    bot: str
    update_id: int
    #: whose it is: updates of one lane are worked off one at a time, in order
    ordering_key: str
    kind: str
    #: its lane goes before all others
    urgent: bool
    #: tells what was pressed from all else, if it is a press
    dedup_key: str | None
    #: as it was sent, JSON
    body: str

    @property
    def correlation_id(self) -> str:
        return correlation_id(self.update_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """A kept update."""

    id: int
    bot: str
    update_id: int
    kind: str
    body: str
    state: UpdateState
    note: str
    received_at: datetime
    #: tries that were begun, this one too; more than one if somebody failed or died with it
    attempts: int

    @property
    def correlation_id(self) -> str:
        return correlation_id(self.update_id)


@dataclass(frozen=True, kw_only=True, slots=True)
class UpdateQueue:
    """A person's lane, leased, with the first update in it (None: it was not to be seen yet)."""

    id: int
    token: int
    update: Update | None
    #: so many instances died with this update in hand, one after the other
    crash_count: int = 0


def read_update(bot: str, said: Any, body: str) -> NewUpdate:
    """What the door must know of an update. Raises ValueError if it is none."""
    update_id = said.get("update_id") if isinstance(said, Mapping) else None
    if not isinstance(update_id, int) or isinstance(update_id, bool) or not 0 <= update_id < _ID_MAX:
        raise ValueError("it has no update_id")
    kind = next((name for name, value in said.items() if isinstance(value, Mapping) and name.isidentifier()), "nothing")
    content = said.get(kind, {})
    urgent = kind == _PRE_CHECKOUT
    whose = _number(content.get("from")) or _number(content.get("chat")) or "nobody"
    return NewUpdate(
        bot=bot,
        update_id=update_id,
        ordering_key=f"{whose}/{kind}" if urgent else whose,
        kind=kind[:64],
        urgent=urgent,
        dedup_key=_press(content) if kind == _PRESS else None,
        body=body,
    )


def correlation_id(update_id: int) -> str:
    """Ties an update's log lines to those of the job it orders."""
    return f"u{update_id}"


def _number(whose: Any) -> str | None:
    number = whose.get("id") if isinstance(whose, Mapping) else None
    return str(number) if isinstance(number, int) and abs(number) < _ID_MAX else None


def _press(content: Mapping[str, Any]) -> str | None:
    """Which button on which message; None where that cannot be told."""
    data, message = content.get("data"), content.get("message")
    if not isinstance(data, str) or not isinstance(message, Mapping) or not isinstance(message.get("message_id"), int):
        return None
    # A client may send any text as its data, also one that no database keeps.
    digest = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{_number(message.get('chat'))}/{message['message_id']}/{digest}"
