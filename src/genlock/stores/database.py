"""The whole database: one class per subject, composed over one session."""

from genlock.stores.accounts import Accounts
from genlock.stores.api_jobs import ApiJobs
from genlock.stores.api_keys import ApiKeys
from genlock.stores.attention import Attention
from genlock.stores.audit import Audit
from genlock.stores.breakers import Breakers
from genlock.stores.broadcasts import Broadcasts
from genlock.stores.bulk import BulkActions
from genlock.stores.callbacks import Callbacks
from genlock.stores.catalog_changes import CatalogChanges
from genlock.stores.drafts import Drafts
from genlock.stores.erasure import Erasures
from genlock.stores.gallery import Gallery
from genlock.stores.hour_parts import HourParts
from genlock.stores.instances import Instances
from genlock.stores.invariants import Invariants
from genlock.stores.job_events import JobEvents
from genlock.stores.job_queries import JobLookups
from genlock.stores.job_search import JobSearch
from genlock.stores.jobs import Jobs
from genlock.stores.kv import KeyValues
from genlock.stores.limits import Limits
from genlock.stores.money_lists import MoneyTables
from genlock.stores.operators import Operators
from genlock.stores.payments import Payments
from genlock.stores.preferences import Preferences
from genlock.stores.profiles import Profiles
from genlock.stores.promos import Promos
from genlock.stores.retention import Retention
from genlock.stores.session import Session
from genlock.stores.stats import Statistics
from genlock.stores.system import System
from genlock.stores.task_slots import TaskSlots
from genlock.stores.updates import Updates
from genlock.stores.users import Users
from genlock.stores.webhooks import Webhooks


class SqlDatabase(
    Accounts,
    Jobs,
    JobLookups,
    JobSearch,
    BulkActions,
    Callbacks,
    Instances,
    Limits,
    Breakers,
    TaskSlots,
    Updates,
    KeyValues,
    Profiles,
    Drafts,
    Gallery,
    Preferences,
    Payments,
    Promos,
    Broadcasts,
    Audit,
    Operators,
    CatalogChanges,
    Statistics,
    Invariants,
    Retention,
    Erasures,
    Users,
    MoneyTables,
    HourParts,
    JobEvents,
    Attention,
    System,
    ApiKeys,
    ApiJobs,
    Webhooks,
):
    """The Database port. The session decides which database it is."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        #: the migrations that opening the database applied
        self.applied: list[str] = []

    @property
    def uncertain_commits(self) -> int:
        return self.session.uncertain_commits

    async def close(self) -> None:
        await self.session.close()
