"""Numbered events of the Telegram simulator, for the chat page and for tests that wait."""

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import time
from typing import Any

EVENTS_KEPT = 5000
#: how long `until` and `sees` wait for a change
PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Event:
    number: int
    at: float
    kind: str
    data: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {"number": self.number, "at": self.at, "kind": self.kind, **self.data}


class Events:
    def __init__(self) -> None:
        #: a new id with every start
        self.id = secrets.token_hex(8)
        self.last = 0
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._changed = asyncio.Event()

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept."""
        return self._events[0].number if self._events else self.last + 1

    def add(self, kind: str, **data: Any) -> None:
        self.last += 1
        self._events.append(Event(number=self.last, at=time(), kind=kind, data=data))
        self.wake()

    def wake(self) -> None:
        """Let every waiting test look again, also after a change that the chat page does not show."""
        self._changed.set()
        self._changed = asyncio.Event()

    def since(self, number: int) -> list[Event]:
        """Return events after `number` that are still kept."""
        return [event for event in self._events if event.number > number]

    async def wait_after(self, number: int, seconds: float) -> bool:
        """Wait for an event after `number`; False on timeout."""
        return await self.wait_until(lambda: self.last > number, seconds)

    async def wait_until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until `holds()`, checked after every change; False on timeout."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            return holds()
        return True
