"""The whole database, and a database as the doctor checks it."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from genlock.ports.api_jobs import ApiJobStore
from genlock.ports.api_keys import ApiKeyStore
from genlock.ports.attention import AttentionStore
from genlock.ports.audit import AuditStore
from genlock.ports.broadcasts import BroadcastStore
from genlock.ports.bulk import BulkStore
from genlock.ports.catalog_changes import CatalogChangeStore
from genlock.ports.clock import Clock
from genlock.ports.drafts import DraftStore
from genlock.ports.erasure import ErasureStore
from genlock.ports.gallery import GalleryStore
from genlock.ports.hourly_figures import HourlyFigureStore
from genlock.ports.job_events import JobEventStore
from genlock.ports.job_search import JobSearchStore
from genlock.ports.limits import PermitBlockStore
from genlock.ports.money_lists import MoneyLists
from genlock.ports.operators import OperatorStore
from genlock.ports.payments import PaymentStore
from genlock.ports.preferences import PreferenceStore
from genlock.ports.profiles import ProfileStore
from genlock.ports.promos import PromoStore
from genlock.ports.stats import StatsStore
from genlock.ports.store import Store
from genlock.ports.system import SystemStore
from genlock.ports.updates import UpdateStore
from genlock.ports.users import UserLists
from genlock.ports.webhooks import WebhookStore


class Database(
    Store,
    UpdateStore,
    ProfileStore,
    DraftStore,
    GalleryStore,
    PreferenceStore,
    PaymentStore,
    PromoStore,
    BroadcastStore,
    AuditStore,
    OperatorStore,
    CatalogChangeStore,
    StatsStore,
    ErasureStore,
    UserLists,
    MoneyLists,
    HourlyFigureStore,
    JobSearchStore,
    BulkStore,
    JobEventStore,
    AttentionStore,
    SystemStore,
    ApiKeyStore,
    ApiJobStore,
    WebhookStore,
    PermitBlockStore,
    Protocol,
):
    """Everything the database does: the engine's store, and what the bot and the operators need besides."""


class DatabaseCheck(Protocol):
    """A database as the doctor checks it: compared with a fresh schema, tried out, and left unchanged."""

    dialect: str

    @property
    def store(self) -> Database: ...

    async def missing(self) -> list[str]:
        """Return the migrations that are not applied. Raises SchemaMismatch if others were applied."""

    async def differences(self) -> list[str]:
        """Return what a fresh schema has and this database has not."""

    def rehearsal(self, clock: Clock) -> AbstractAsyncContextManager[Database]:
        """A database whose statements really run, in a transaction that is rolled back at the end of the block."""

    def description(self) -> str:
        """Return the kind of database, and which process uses it."""

    async def close(self) -> None: ...
