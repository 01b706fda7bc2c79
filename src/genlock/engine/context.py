"""What every stage works with, and the rules it keeps."""

import asyncio
import random
import secrets
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from genlock.domain.events import Event
from genlock.domain.job import Job
from genlock.domain.retry import POLL_SECONDS
from genlock.engine.limits import RateLimit, RateLimiter
from genlock.engine.poll_interval import PollInterval
from genlock.ports import Channel, Lease, Observer, Provider, Store

#: the correlation of the update that this task handles
handled: ContextVar[str] = ContextVar("handled", default="")


class UnknownSubmit(StrEnum):
    """What becomes of a submit whose outcome stays unknown after the grace time."""

    RELEASE = "release"  #: stop waiting, give the money back, tell the person; a late result is still shown
    PARK = "park"  #: leave it, with its money held, on the operator's list


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRules:
    lease_seconds: float = 30.0
    heartbeat_seconds: float = 1.0
    #: a peer silent for so long is dead; its work is taken over at the next heartbeat
    silent_seconds: float = 3.0
    role_seconds: float = 3.0
    claim_seconds: float = 0.5
    sweep_seconds: float = 1.0
    orphan_expire_seconds: float = 3600.0
    #: how long a callback for a provider that we do not have waits for an instance that has it, as in a deploy
    unknown_provider_expire_seconds: float = 3600.0
    #: between the first status queries of a task, where there are no callbacks
    poll_seconds: float = POLL_SECONDS
    grace_seconds: float = 120.0
    #: how long past its deadline a job waits for one last answer of the provider
    last_answer_seconds: float = 600.0
    unknown_submit: UnknownSubmit = UnknownSubmit.RELEASE
    delivery_attempts: int = 40
    stage_attempts: int = 10
    #: a job that was in hand at so many crash_count in a row, at most of them as the only one of its kind, is left alone
    crashes_max: int = 8
    #: jobs one instance works on at the same time; waiting ones do not count, they are only rows
    capacity: int = 1000
    stop_seconds: float = 15.0
    #: a progress edit is over so many seconds after its lease was seen to hold; shorter than a peer's silence
    progress_seconds: float = 2.0
    #: limits that nobody has used for so long are forgotten
    limits_idle_seconds: float = 600.0
    #: shared limits by key, as `create:NAME` and `status:NAME` of a provider
    limits: Mapping[str, RateLimit] = field(default_factory=dict)

    @property
    def settle_seconds(self) -> float:
        """How long after a job ended a progress edit may still come in, at the worst."""
        return 2 * self.progress_seconds


class LeaseLost(Exception):
    """Somebody else holds the job now: stop, touch nothing."""


@dataclass(frozen=True, kw_only=True)
class EngineContext:
    store: Store
    providers: Mapping[str, Provider]
    channels: Mapping[str, Channel]
    observer: Observer
    #: fresh with every start of the process: names that come back hide the dead
    instance: str
    limits: RateLimiter
    rules: EngineRules = field(default_factory=EngineRules)
    rng: random.Random = field(default_factory=random.Random)
    make_secret: Callable[[], str] = secrets.token_urlsafe
    #: where callbacks reach us; without it there is only polling
    public_url: str | None = None
    #: how many seconds a job is expected to run, if anybody knows; without it no progress is shown
    expected: Callable[[Job], float | None] | None = None
    #: what a job's price was made from, in thousandths of the provider's credit; None where it was not
    paid_for: Callable[[Job], int | None] | None = None

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop this instance lives in. Asking for it anew is a system call each time."""
        return asyncio.get_running_loop()

    @cached_property
    def lease(self) -> Lease:
        return Lease(owner=self.instance, seconds=self.rules.lease_seconds)

    @property
    def shows_progress(self) -> bool:
        return self.expected is not None

    @cached_property
    def poll_interval(self) -> PollInterval:
        return PollInterval(first=self.rules.poll_seconds, callbacks=self.public_url is not None)

    def event(self, event: Event, job: Job, /, **facts: object) -> None:
        self.observer.event(event, job.correlation_id, job=job.id, **facts)

    def fenced(self, held: object, job: Job) -> None:
        """Stop a zombie: the answer of every fenced write goes through here."""
        if not held:
            self.event(Event.LEASE_LOST, job, token=job.lease_token)
            raise LeaseLost
