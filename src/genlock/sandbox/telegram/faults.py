"""Faults of the Telegram simulator: per method, per chat, a number of times, or with a probability.

The values of `Fault` are the names in the control API; the comments beside them appear in the documentation.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any


class Fault(StrEnum):
    DROP_BEFORE = "drop_before"  #: the connection breaks; the call is not executed
    DROP_AFTER = "drop_after"  #: the call is executed; the connection breaks before the answer
    DELAY = "delay"  #: the call is executed after `seconds`
    DELAY_INSIDE = "delay_inside"  #: an edit is validated at once and takes effect after `seconds`
    DELAY_AFTER = "delay_after"  #: the call is executed at once and answered after `seconds`
    TOO_MANY = "too_many"  #: 429 with `seconds` to wait; the call is not executed
    REFUSED = "refused"  #: the error `text` (400, or 401 or 403 by its first word); the call is not executed
    SERVER_ERROR = "server_error"  #: 500; the call is not executed
    SERVER_ERROR_AFTER = "server_error_after"  #: 500 although the call is executed
    BAD_GATEWAY = "bad_gateway"  #: 502 with an HTML page; the call is not executed
    BAD_GATEWAY_AFTER = "bad_gateway_after"  #: 502 with an HTML page although the call is executed
    UNDECODABLE = "undecodable"  #: the call is executed; the JSON answer is truncated
    WRONG_SHAPE = "wrong_shape"  #: the call is executed; the result is an unknown object
    UNNUMBERED = "unnumbered"  #: the message is sent; its message_id is 0, as for a video still being processed


#: faults that only happen to calls that were executed
AFTER = frozenset(
    {
        Fault.DROP_AFTER,
        Fault.DELAY_AFTER,
        Fault.SERVER_ERROR_AFTER,
        Fault.BAD_GATEWAY_AFTER,
        Fault.UNDECODABLE,
        Fault.WRONG_SHAPE,
        Fault.UNNUMBERED,
    }
)
BEFORE = frozenset(Fault) - AFTER


#: stands for the download of a file, which is no method; only DELAY happens to it
DOWNLOAD = "download"
#: what a fault without a method does not happen to
_NOT_MEANT = frozenset({"getUpdates", DOWNLOAD})


@dataclass(kw_only=True)
class Switch:
    id: int
    fault: Fault
    #: Bot API method in any case, or DOWNLOAD; None: all methods but getUpdates, whose long polls would use up faults
    #: meant for other calls
    method: str | None
    chat: int | None
    #: how many times it still happens; None: no limit
    times: int | None
    probability: float
    seconds: float
    #: description of the error, for REFUSED
    text: str

    def fits(self, method: str, chat: int | None) -> bool:
        named = method not in _NOT_MEANT if self.method is None else self.method.lower() == method.lower()
        return named and self.chat in {None, chat} and self.times != 0

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Faults:
    """Decides from a seeded random generator which faults happen."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._ids = count(1)
        self.switches: list[Switch] = []

    def switch(
        self,
        fault: Fault,
        *,
        method: str | None = None,
        chat: int | None = None,
        times: int | None = None,
        probability: float = 1.0,
        seconds: float = 3.0,
        text: str = "Bad Request: SOMETHING_INVALID",
    ) -> Switch:
        """Switch a fault on for matching calls, `times` times."""
        made = Switch(
            id=next(self._ids),
            fault=Fault(fault),
            method=method,
            chat=chat,
            times=times,
            probability=probability,
            seconds=seconds,
            text=text,
        )
        self.switches.append(made)
        return made

    def once(self, fault: Fault, **options: Any) -> Switch:
        return self.switch(fault, times=1, **options)

    def off(self, switch: Switch | int) -> None:
        gone = switch if isinstance(switch, int) else switch.id
        self.switches = [other for other in self.switches if other.id != gone]

    def clear(self) -> None:
        self.switches.clear()

    def draw(self, method: str, chat: int | None, kinds: Collection[Fault]) -> dict[Fault, Switch]:
        """Return faults of one call: for each of these kinds the first switch that matches and happens."""
        drawn: dict[Fault, Switch] = {}
        for switch in self.switches:
            if (
                switch.fault not in kinds
                or switch.fault in drawn
                or not switch.fits(method, chat)
                or self._rng.random() >= switch.probability
            ):
                continue
            drawn[switch.fault] = switch
            if switch.times is not None:
                switch.times -= 1
        self.switches = [switch for switch in self.switches if switch.times != 0]
        return drawn

    def as_json(self) -> list[dict[str, Any]]:
        return [switch.as_json() for switch in self.switches]
