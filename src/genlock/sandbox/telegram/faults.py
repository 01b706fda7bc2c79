"""What goes wrong at the simulated Telegram: by switch, for a method, a chat, a number of times, or by chance."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from random import Random
from typing import Any


class Fault(StrEnum):
    DROP_BEFORE = "drop_before"  #: the connection breaks, nothing is done
    DROP_AFTER = "drop_after"  #: it is done, and the connection breaks before the answer
    DELAY = "delay"  #: it is begun only after `seconds`
    DELAY_INSIDE = "delay_inside"  #: an edit is checked, and takes effect only after `seconds`
    DELAY_AFTER = "delay_after"  #: it is done at once and answered after `seconds`
    TOO_MANY = "too_many"  #: 429 with `seconds` to wait, nothing is done
    SERVER_ERROR = "server_error"  #: 500, nothing is done
    SERVER_ERROR_AFTER = "server_error_after"  #: 500, and it is done
    BAD_GATEWAY = "bad_gateway"  #: 502 with a page, nothing is done
    BAD_GATEWAY_AFTER = "bad_gateway_after"  #: 502 with a page, and it is done
    UNDECODABLE = "undecodable"  #: it is done, and the answer is half a JSON
    WRONG_SHAPE = "wrong_shape"  #: it is done, and the result is no object that a client knows


#: happen to calls that were carried out, and to no others
AFTER = frozenset(
    {
        Fault.DROP_AFTER,
        Fault.DELAY_AFTER,
        Fault.SERVER_ERROR_AFTER,
        Fault.BAD_GATEWAY_AFTER,
        Fault.UNDECODABLE,
        Fault.WRONG_SHAPE,
    }
)
BEFORE = frozenset(Fault) - AFTER


@dataclass(kw_only=True)
class Switch:
    id: int
    fault: Fault
    #: as in the Bot API, any case; None for all but the patient getUpdates, which would use up what is meant for others
    method: str | None
    chat: int | None
    #: how often it still happens; None for ever
    times: int | None
    probability: float
    seconds: float

    def fits(self, method: str, chat: int | None) -> bool:
        named = method != "getUpdates" if self.method is None else self.method.lower() == method.lower()
        return named and self.chat in {None, chat} and self.times != 0

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class Faults:
    """Decides what goes wrong, from a seed."""

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
    ) -> Switch:
        """From now on, for the calls that fit, `times` times."""
        made = Switch(
            id=next(self._ids),
            fault=Fault(fault),
            method=method,
            chat=chat,
            times=times,
            probability=probability,
            seconds=seconds,
        )
        self.switches.append(made)
        return made

    def once(self, fault: Fault, **reply_and_thread: Any) -> Switch:
        return self.switch(fault, times=1, **reply_and_thread)

    def off(self, switch: Switch | int) -> None:
        gone = switch if isinstance(switch, int) else switch.id
        self.switches = [one for one in self.switches if one.id != gone]

    def clear(self) -> None:
        self.switches.clear()

    def draw(self, method: str, chat: int | None, kinds: Collection[Fault]) -> dict[Fault, Switch]:
        """What goes wrong with one call: the first switch of each of these kinds that fits and happens."""
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
        self.switches = [one for one in self.switches if one.times != 0]
        return drawn

    def as_json(self) -> list[dict[str, Any]]:
        return [switch.as_json() for switch in self.switches]
