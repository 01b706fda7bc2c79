"""What the engine needs from the outside: a page for each thing one can implement."""

from genlock.ports.channel import Channel, Placed
from genlock.ports.chat import ChatStore
from genlock.ports.clock import Clock
from genlock.ports.database import Database, DatabaseCheck
from genlock.ports.limits import LimitStore
from genlock.ports.observer import Observer
from genlock.ports.provider import Provider, ProviderBundle, PublicLists, RateLimit
from genlock.ports.store import (
    Accepted,
    DeliveryEnd,
    EndJob,
    FinishDelivery,
    JobEnd,
    Lease,
    NewCallback,
    Reschedule,
    Role,
    Store,
    Violation,
)
from genlock.ports.updates import Settled, UpdateStore
from genlock.ports.upkeep import KvEntry, UpkeepStore

__all__ = [
    "Accepted",
    "Channel",
    "ChatStore",
    "Clock",
    "Database",
    "DatabaseCheck",
    "DeliveryEnd",
    "EndJob",
    "FinishDelivery",
    "JobEnd",
    "KvEntry",
    "Lease",
    "LimitStore",
    "NewCallback",
    "Observer",
    "Placed",
    "Provider",
    "ProviderBundle",
    "PublicLists",
    "RateLimit",
    "Reschedule",
    "Role",
    "Settled",
    "Store",
    "UpdateStore",
    "UpkeepStore",
    "Violation",
]
