"""The store as the engine uses it."""

from typing import Protocol

from genlock.ports.accounts import AccountStore
from genlock.ports.breakers import BreakerStore
from genlock.ports.callbacks import CallbackStore
from genlock.ports.instances import InstanceStore
from genlock.ports.job_queries import JobQueries
from genlock.ports.jobs import JobStore
from genlock.ports.kv import KvStore
from genlock.ports.limits import LimitStore
from genlock.ports.retention import RetentionStore
from genlock.ports.stats import InvariantStore
from genlock.ports.task_slots import TaskSlotStore


class Store(
    AccountStore,
    JobStore,
    JobQueries,
    CallbackStore,
    InstanceStore,
    LimitStore,
    BreakerStore,
    TaskSlotStore,
    InvariantStore,
    RetentionStore,
    KvStore,
    Protocol,
):
    """Accounts, jobs, callbacks, instances and limits. Every method is one commit."""

    #: the migrations that opening the store applied
    applied: list[str]

    @property
    def uncertain_commits(self) -> int:
        """Grows when a statement was retried after a lost connection: we may own a lease that we never saw."""

    async def close(self) -> None: ...
