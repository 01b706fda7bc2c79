"""The interfaces between the engine and everything it uses: one module for each thing that can be implemented."""

from genlock.ports.accounts import AccountStore
from genlock.ports.api_jobs import ApiJobStore, JobVersion
from genlock.ports.api_keys import ApiKeyStore
from genlock.ports.attention import AttentionStore
from genlock.ports.audit import AuditStore
from genlock.ports.breakers import BreakerStore
from genlock.ports.broadcasts import BroadcastStore
from genlock.ports.bulk import BulkStore
from genlock.ports.callbacks import CallbackStore
from genlock.ports.catalog_changes import CatalogChangeStore
from genlock.ports.channel import Channel, Placed
from genlock.ports.clock import Clock
from genlock.ports.database import Database, DatabaseCheck
from genlock.ports.drafts import DraftStore
from genlock.ports.hourly_figures import (
    UNITED_DAYS,
    FiguresProgress,
    HourlyFigureStore,
    InstanceInfo,
    NewAccount,
    NewOrder,
    NewPayment,
    PartOrders,
    SetKey,
    TimeSpan,
    united_kind,
)
from genlock.ports.instances import InstanceStore, Role
from genlock.ports.job_events import JobEventStore, JobEventWriter
from genlock.ports.job_queries import JobQueries, OrderState
from genlock.ports.job_search import JobSearchStore
from genlock.ports.jobs import (
    Accepted,
    DeliveryEnd,
    EndJob,
    FailedAttempt,
    FinishDelivery,
    JobEnd,
    JobStore,
    Lease,
    NewCallback,
    Reschedule,
)
from genlock.ports.kv import KvEntry, KvStore
from genlock.ports.limits import LimitStore, PermitBlockStore, SharedLimit, TakenPermits
from genlock.ports.media_store import MediaStore
from genlock.ports.message_texts import Button, FileLabel, MessageTexts, OutgoingMessage
from genlock.ports.observer import Observer
from genlock.ports.operators import OperatorStore
from genlock.ports.payments import PaymentStore
from genlock.ports.plugin import (
    PORT_VERSION,
    ChannelBundle,
    ChannelContext,
    ChannelPlugin,
    OrderRefused,
    Orders,
    ProviderContext,
    ProviderPlugin,
)
from genlock.ports.profiles import ProfileStore
from genlock.ports.promos import PromoStore
from genlock.ports.provider import Provider, ProviderBundle, ProviderHealth, PublicLists, RateLimit
from genlock.ports.retention import RetentionStore
from genlock.ports.stats import AgedJob, InvariantStore, StatsStore, Violation
from genlock.ports.store import Store
from genlock.ports.system import AppliedMigration, DatabaseFacts, RoleHolder, SystemStore
from genlock.ports.updates import Settled, UpdateStore
from genlock.ports.webhooks import WebhookStore

__all__ = [
    "PORT_VERSION",
    "UNITED_DAYS",
    "Accepted",
    "AccountStore",
    "AgedJob",
    "ApiJobStore",
    "ApiKeyStore",
    "AppliedMigration",
    "AttentionStore",
    "AuditStore",
    "BreakerStore",
    "BroadcastStore",
    "BulkStore",
    "Button",
    "CallbackStore",
    "CatalogChangeStore",
    "Channel",
    "ChannelBundle",
    "ChannelContext",
    "ChannelPlugin",
    "Clock",
    "Database",
    "DatabaseCheck",
    "DatabaseFacts",
    "DeliveryEnd",
    "DraftStore",
    "EndJob",
    "FailedAttempt",
    "FiguresProgress",
    "FileLabel",
    "FinishDelivery",
    "HourlyFigureStore",
    "InstanceInfo",
    "InstanceStore",
    "InvariantStore",
    "JobEnd",
    "JobEventStore",
    "JobEventWriter",
    "JobQueries",
    "JobSearchStore",
    "JobStore",
    "JobVersion",
    "KvEntry",
    "KvStore",
    "Lease",
    "LimitStore",
    "MediaStore",
    "MessageTexts",
    "NewAccount",
    "NewCallback",
    "NewOrder",
    "NewPayment",
    "Observer",
    "OperatorStore",
    "OrderRefused",
    "OrderState",
    "Orders",
    "OutgoingMessage",
    "PartOrders",
    "PaymentStore",
    "PermitBlockStore",
    "Placed",
    "ProfileStore",
    "PromoStore",
    "Provider",
    "ProviderBundle",
    "ProviderContext",
    "ProviderHealth",
    "ProviderPlugin",
    "PublicLists",
    "RateLimit",
    "Reschedule",
    "RetentionStore",
    "Role",
    "RoleHolder",
    "SetKey",
    "Settled",
    "SharedLimit",
    "StatsStore",
    "Store",
    "SystemStore",
    "TakenPermits",
    "TimeSpan",
    "UpdateStore",
    "Violation",
    "WebhookStore",
    "united_kind",
]
