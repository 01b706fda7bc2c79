"""What the engine needs from the outside: a page for each thing one can implement."""

from genlock.ports.channel import Channel, Placed
from genlock.ports.chat import ChatStore
from genlock.ports.clock import Clock
from genlock.ports.limits import LimitStore
from genlock.ports.observer import Observer
from genlock.ports.provider import Provider
from genlock.ports.store import (
    Acceptance,
    Arrival,
    Ended,
    Ending,
    Finish,
    Finished,
    Lease,
    Role,
    Store,
    Violation,
    Wait,
)
from genlock.ports.updates import Settled, UpdateStore
from genlock.ports.upkeep import Fact, UpkeepStore
from genlock.ports.whole import ExaminedStore, WholeStore

__all__ = [
    "Acceptance",
    "Arrival",
    "Channel",
    "ChatStore",
    "Clock",
    "Ended",
    "Ending",
    "ExaminedStore",
    "Fact",
    "Finish",
    "Finished",
    "Lease",
    "LimitStore",
    "Observer",
    "Placed",
    "Provider",
    "Role",
    "Settled",
    "Store",
    "UpdateStore",
    "UpkeepStore",
    "Violation",
    "Wait",
    "WholeStore",
]
